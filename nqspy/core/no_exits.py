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
    """Stand-in for user exits where none is loaded: the standard rules decide, and nothing is stored."""

    def begin(self, site: Site) -> None:
        """Do nothing."""

    def has(self, hook: str) -> bool:
        return False

    def jobselect(self, request: RequestView, view: PassView) -> Answer | None:
        return None

    def elected(self, request: RequestView, view: PassView) -> Sequence[Action]:
        return ()

    def shrpri(self, owner: str, group: str, view: PassView) -> float | None:
        return None

    def shrpris(self, pairs: Sequence[tuple[str, str]], view: PassView) -> Sequence[float | None]:
        return [self.shrpri(owner, group, view) for owner, group in pairs]

    def submit(self, request: RequestView, view: PassView) -> SubmitAnswer | None:
        return None

    def route(self, request: RequestView, destinations: Sequence[str], view: PassView) -> Sequence[str]:
        return destinations

    def forces(self) -> bool:
        return False

    def rounds(self, site: Site) -> Mapping[str, OfferRound]:
        return {}

    def store(self, site: Site, rounds: Mapping[str, OfferRound]) -> bool:
        return False

    def asks_again(self) -> Instant | None:
        return None

    def rehearsal(self, now: Instant) -> AbstractContextManager[None]:
        return nullcontext()

    def failures(self) -> tuple[ExitFailure, ...]:
        return ()

    def declared(self) -> Mapping[str, Mapping[str, str]]:
        return {}

    def check_setting(self, exit: str, setting: str, text: str) -> None:
        raise BadValue(f"there is no exit {exit}: none is loaded")

    def reload(self) -> str:
        return "no exits"

    def files(self) -> Mapping[str, bytes]:
        return {}

    def listing(self) -> list[dict[str, Any]]:
        return []
