"""How long an attempt takes that leaves its PEs, or comes back to some, on the invented machine: the door
`StateMoves` and two models behind it."""

from typing import Protocol

from nqspy.model.ids import Instant

_SECOND = 1000


class StateMoves(Protocol):
    """StateMoves the memory of attempts out and in."""

    def done_at(self, pes: int, now: Instant, back: bool = False) -> Instant:
        """When the memory of one on so many PEs has been moved that begins to move now, ``back`` in or
        out."""


class NothingToMove:
    """Memory that need not be moved."""

    def done_at(self, pes: int, now: Instant, back: bool = False) -> Instant:
        """Now."""
        return now


class OutOnly:
    """Who leaves takes so long for each PE (ms); who comes back goes on at once, as on a real machine: the
    kernel brings in what a process touches, and that is part of its run."""

    def __init__(self, per_pe: float) -> None:
        self._per_pe = per_pe

    def done_at(self, pes: int, now: Instant, back: bool = False) -> Instant:
        """That much later, the way out."""
        return now if back else Instant(now + round(pes * self._per_pe))


class Channel:
    """One channel to a disk, for out and in alike, one move after the other (LLNL's T3D: the whole of 256 PEs
    with 64 MB each in about eight minutes, seed 000).

    ``per_pe``: bytes of each PE, ``rate``: bytes per second. ``busy``: ms in which it moved something,
    ``idled``: PE-ms that were held meanwhile and did nothing; both of all moves that were begun.
    """

    def __init__(self, per_pe: int, rate: float) -> None:
        self._per_pe, self._rate = per_pe, rate
        self._free_at = Instant(0)
        self.busy = 0
        self.idled = 0

    def done_at(self, pes: int, now: Instant, back: bool = False) -> Instant:
        """Behind the moves that were begun before."""
        takes = round(pes * self._per_pe / self._rate * _SECOND)
        done = Instant(max(self._free_at, now) + takes)
        self.busy += takes
        self.idled += pes * (done - now)
        self._free_at = done
        return done
