"""The `Exits` door without user exits (tests, simulator, a daemon without ``exits/``)."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from nqspy.model.actions import Action, ExitFailure
from nqspy.model.errors import BadValue
from nqspy.model.ids import Instant
from nqspy.model.site import Site
from nqspy.ports import Answer, OfferRound, PassView, RequestView, SubmitAnswer


class NoExits:
    """Answers every question with "the standard rules". A subclass may override some answers."""

    def begin(self, site: Site) -> None:
        """Do nothing."""

    def has(self, hook: str) -> bool:
        """Return False: no hook is implemented."""
        return False

    def jobselect(self, request: RequestView, view: PassView) -> Answer | None:
        """Return None: the standard rules decide."""
        return None

    def elected(self, request: RequestView, view: PassView) -> Sequence[Action]:
        """Return no further actions."""
        return ()

    def shrpri(self, owner: str, group: str, view: PassView) -> float | None:
        """Return None: the stock rule decides."""
        return None

    def shrpris(self, pairs: Sequence[tuple[str, str]], view: PassView) -> Sequence[float | None]:
        """Return the answer of `shrpri` for each pair."""
        return [self.shrpri(owner, group, view) for owner, group in pairs]

    def submit(self, request: RequestView, view: PassView) -> SubmitAnswer | None:
        """Return None: the request is accepted as it is."""
        return None

    def route(self, request: RequestView, destinations: Sequence[str], view: PassView) -> Sequence[str]:
        """Return the destinations in their own order."""
        return destinations

    def forces(self) -> bool:
        """Return False: no exit forces a start."""
        return False

    def rounds(self, site: Site) -> Mapping[str, OfferRound]:
        """Return no round: none is kept."""
        return {}

    def keep(self, site: Site, rounds: Mapping[str, OfferRound]) -> bool:
        """Keep no round."""
        return False

    def asks_again(self) -> Instant | None:
        """Return None: no exit is asked again."""
        return None

    def rehearsal(self, now: Instant) -> AbstractContextManager[None]:
        """Return a context that does nothing."""
        return nullcontext()

    def failures(self) -> tuple[ExitFailure, ...]:
        """Return no failures."""
        return ()

    def declared(self) -> Mapping[str, Mapping[str, str]]:
        """Return no exits."""
        return {}

    def check_setting(self, exit: str, setting: str, text: str) -> None:
        """Raise BadValue: there is no such exit."""
        raise BadValue(f"there is no exit {exit}: none is loaded")

    def reload(self) -> str:
        """Return the message that there are no exits."""
        return "no exits"

    def files(self) -> Mapping[str, bytes]:
        """Return no files."""
        return {}

    def listing(self) -> list[dict[str, Any]]:
        """Return an empty list."""
        return []
