"""What site code names in annotations: kinds that an editor completes and mypy checks, whatever stands behind
them in a pass."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from nqspy.model.ids import Instant
from nqspy.model.machine import Machine
from nqspy.model.queues import Queue
from nqspy.model.site import Settings
from nqspy.ports import Answer, RequestView, Selection

T = TypeVar("T")


class SubmittedRequest(RequestView, Protocol):
    """A request as the exit ``submit`` sees it: with its script, the first 64 KiB of it as text."""

    script: str


class ExitView(Protocol):
    """The site in this pass, with what the pass has decided so far. Read only."""

    @property
    def now(self) -> Instant:
        """The instant of the pass, ms."""

    @property
    def shift(self) -> str | None:
        """Name of the shift in force."""

    @property
    def local(self) -> datetime:
        """The instant of the pass in the site's time zone."""

    @property
    def shift_ends(self) -> Instant | None:
        """The instant, ms, at which another shift begins; None where no shift does."""

    def at(self, time: str) -> Instant:
        """Return the next instant, ms, at which the site's clock shows a time of day, such as ``"06:00"``."""

    @property
    def exit(self) -> str:
        """The name of the exit that looks (``answer.who == view.exit``: an answer of its own)."""

    @property
    def machine(self) -> Machine:
        """PEs and memory (bytes) of the machine."""

    @property
    def settings(self) -> Settings:
        """Settings of the whole site; an exit's own are its ``setting(...).value``."""

    def once(self, make: Callable[["ExitView"], T]) -> T:
        """What a function makes of the view, made once until the pass starts or changes something."""

    def queue(self, name: str) -> Queue:
        """The settings of a queue. Raises KeyError."""

    def waiting(self, *, queue: str | None = None, owner: str | None = None, group: str | None = None,
                name: str | None = None) -> Selection:  # fmt: skip
        """Requests in state queued that this pass has not chosen, by date; narrowed by what is given."""

    def running(self, *, queue: str | None = None, owner: str | None = None, group: str | None = None,
                name: str | None = None) -> Sequence[RequestView]:  # fmt: skip
        """Started requests, and those this pass has chosen; narrowed by what is given."""

    def ahead(self, request: RequestView) -> Sequence[tuple[RequestView, Answer | None]]:
        """The candidates of its queue offered before it in this pass, with their answers."""

    def usage(self, *, group: str | None = None, owner: str | None = None) -> float:
        """Decayed use as a fraction of the whole, running and committed use included."""

    def share(self, *, group: str | None = None, owner: str | None = None) -> float:
        """Entitlement as a fraction of the whole."""

    def stock_shrpri(self, owner: str | None, group: str) -> float:
        """What the stock share rule (``set global share_rule``) gives a user in a group, in [0, 1]; without a
        user the group: what a site may scale."""
