"""The event that tells of one that has left its PEs (`core.preemption.bumper`), and what is known by it of
how long that takes."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from nqspy.model.event import Event
from nqspy.model.ids import Seq

RECENT_MOVES = 20
"""So many of the last moves say how long the next ones take."""

MeasuredMove = tuple[int, int]
"""How many PEs one left, and how long that took, ms."""


class MovedOut(Event, frozen=True):
    """A suspended attempt has left its PEs: others may have them. ``took``: how long that took, ms;
    ``paged``: bytes that left the memory meanwhile."""

    kind: ClassVar[str] = "moved_out"
    seq: Seq
    attempt: int
    took: int = 0
    paged: int = 0


class MovesMade(NamedTuple):
    """How often an attempt left its PEs for others: how long that took in all (ms), and what left the memory
    (bytes)."""

    times: int = 0
    took: int = 0
    paged: int = 0

    def and_one(self, took: int, paged: int) -> "MovesMade":
        """With one more."""
        return MovesMade(self.times + 1, self.took + took, self.paged + paged)


def with_move(moves: Sequence[MeasuredMove], pes: int, took: int) -> tuple[MeasuredMove, ...]:
    """The last moves, with one more."""
    return (*moves, (pes, took))[-RECENT_MOVES:]


def mean_move(moves: Sequence[MeasuredMove]) -> float | None:
    """How long a move took for each PE, on the average (ms); None: there was none."""
    pes = sum(pes for pes, _ in moves)
    return sum(took for _, took in moves) / pes if pes else None


def slowest_move(moves: Sequence[MeasuredMove]) -> float | None:
    """The same of the one that took longest for its PEs."""
    return max((took / pes for pes, took in moves if pes), default=None)
