"""No user exits: the `Exits` door where none is loaded (tests, simulator, a daemon without ``exits/``)."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from nqspy.model.actions import Action, ExitFailure
from nqspy.model.errors import BadValue
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Request
from nqspy.model.site import Site
from nqspy.ports import Answer, Known, PassView, RequestView, SubmitAnswer


class NoExits:
    """Answers every question with "the standard rules". A site's own exits may be a subclass that overrides
    a few."""

    def begin(self, site: Site) -> None:
        """Nothing to take over."""

    def has(self, hook: str) -> bool:
        """No hook is implemented."""
        return False

    def jobselect(self, request: RequestView, view: PassView) -> Answer | None:
        """The standard rules."""
        return None

    def elected(self, request: RequestView, view: PassView) -> Sequence[Action]:
        """No further actions."""
        return ()

    def shrpri(self, owner: str, group: str, view: PassView) -> float | None:
        """The stock rule."""
        return None

    def shrpris(self, pairs: Sequence[tuple[str, str]], view: PassView) -> Sequence[float | None]:
        """What `shrpri` says of each."""
        return [self.shrpri(owner, group, view) for owner, group in pairs]

    def submit(self, request: RequestView, view: PassView) -> SubmitAnswer | None:
        """Accepted as it is."""
        return None

    def route(self, request: RequestView, destinations: Sequence[str], view: PassView) -> Sequence[str]:
        """The destinations in their own order."""
        return destinations

    def forces(self) -> bool:
        """Nobody forces."""
        return False

    def recall(self, site: Site) -> Mapping[str, Mapping[Seq, Answer]]:
        """None."""
        return {}

    def asks_again(self) -> Instant | None:
        """Nobody is left out."""
        return None

    def known(self, seq: Seq) -> Known | None:
        """Nothing is known."""
        return None

    def stir(self, requests: Sequence[Request]) -> None:
        """Nothing rests on anything."""

    def keep(self, refused: Mapping[str, Mapping[Seq, Answer]]) -> bool:
        """Nobody has refused anything."""
        return False

    def rehearsal(self, now: Instant) -> AbstractContextManager[None]:
        """Nothing leaves a mark anyhow."""
        return nullcontext()

    def failures(self) -> tuple[ExitFailure, ...]:
        """None."""
        return ()

    def declared(self) -> Mapping[str, Mapping[str, str]]:
        """No exits."""
        return {}

    def check_setting(self, exit: str, setting: str, text: str) -> None:
        """Raises BadValue: there is no such exit."""
        raise BadValue(f"there is no exit {exit}: none is loaded")

    def reload(self) -> str:
        """Nothing to load."""
        return "no exits"

    def listing(self) -> list[dict[str, Any]]:
        """Empty."""
        return []
