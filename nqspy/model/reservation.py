"""A promised start: what lies with its request, and the event that makes, moves or takes it back."""

from typing import ClassVar

from msgspec import Struct, field

from nqspy.model.event import Event
from nqspy.model.ids import Instant, Seq

MOMENT = 1_000
"""Time that a start may take, ms: limits count from then. A start so much late is not reported as late."""


class Reservation(Struct, frozen=True):
    """A start that is promised to a waiting request: at ``at`` at the latest, None where nobody can say when
    as what it waits for has no wall limit. ``by``: requests whose ends it waits for. ``late``: why the
    promise could not be kept. ``turn``: the promises that stand were made in the order of it. ``pes``: on how
    many PEs, of one that has several sizes; else 0."""

    at: Instant | None
    by: tuple[Seq, ...] = ()
    late: str = ""
    turn: int = 0
    pes: int = 0


class Reserved(Event, frozen=True):
    """Waiting requests were promised a start, or an earlier one, or it is told why that could not be kept;
    None: the promise is taken back, for a cause in ``causes``. ``as_of``: the number of the event by which
    something had become free when all promises were last gone through."""

    kind: ClassVar[str] = "reserved"
    starts: dict[Seq, Reservation | None]
    as_of: int = 0
    causes: dict[Seq, str] = field(default_factory=dict)

    @property
    def seqs(self) -> tuple[Seq, ...]:
        """The requests."""
        return tuple(self.starts)
