"""Time in which an attempt leaves its PEs or comes back, on the invented machine: none, and two models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nqspy.engine.virtual.processors import Key
from nqspy.model.ids import Instant

_SECOND = 1000


class StateMoves:
    """Moves the memory of attempts out and in: here at once."""

    def begin(self, key: Key, pes: int, now: Instant, back: bool = False) -> Instant | None:
        """Begin to move the memory of an attempt on so many PEs, ``back`` in or out, in place of what was
        still to be moved of it. Return when that is done; None: `done` will tell."""
        return now

    def order(self, rank: Callable[[Key], int], now: Instant) -> None:
        """Moves of higher rank go first from now on."""

    def next_done(self) -> Instant | None:
        """Return when the next move is done, if nothing changes; None: nothing is moved."""
        return None

    def done(self, now: Instant) -> Sequence[Key]:
        """Return the attempts that have had their memory moved since the last call."""
        return ()


@dataclass(slots=True)
class _Move:
    """Memory of an attempt that is still to be moved, ms."""

    key: Key
    pes: int
    remaining: int


class OutOnly(StateMoves):
    """An attempt that leaves takes so long for each PE (ms); coming back takes no time, as on a real machine:
    the kernel brings in what a process touches, and that is part of its run."""

    def __init__(self, per_pe: float) -> None:
        self._per_pe = per_pe

    def begin(self, key: Key, pes: int, now: Instant, back: bool = False) -> Instant | None:
        """That much later, the way out."""
        return now if back else Instant(now + round(pes * self._per_pe))


class Channel(StateMoves):
    """A channel to a disk, for out and in alike, one move at a time (LLNL's T3D: the whole of 256 PEs
    with 64 MB each in about eight minutes, seed 000). The one of the highest rank goes first, of equal ones
    the one that was begun first; one that is overtaken goes on later from where it was.

    ``per_pe``: bytes of each PE, ``rate``: bytes per second. ``busy``: ms in which it moved something,
    ``idled``: PE-ms that were held meanwhile and did nothing.
    """

    def __init__(self, per_pe: int, rate: float) -> None:
        self._per_pe, self._rate = per_pe, rate
        self._moves: list[_Move] = []
        self._done: list[Key] = []
        self._at = Instant(0)
        self.busy = 0
        self.idled = 0

    def begin(self, key: Key, pes: int, now: Instant, back: bool = False) -> Instant | None:
        """Behind all others, until they are put in order."""
        self._pass_to(now)
        self._moves = [move for move in self._moves if move.key != key]
        self._moves.append(_Move(key, pes, round(pes * self._per_pe / self._rate * _SECOND)))
        return None

    def order(self, rank: Callable[[Key], int], now: Instant) -> None:
        """The highest first; equal ones stay as they are."""
        self._pass_to(now)
        self._moves.sort(key=lambda move: -rank(move.key))

    def next_done(self) -> Instant | None:
        """Return when the first is done."""
        return Instant(self._at + self._moves[0].remaining) if self._moves else None

    def done(self, now: Instant) -> Sequence[Key]:
        """In the order in which they were."""
        self._pass_to(now)
        done, self._done = self._done, []
        return done

    def _pass_to(self, now: Instant) -> None:
        """Moves one after the other up to an instant."""
        while self._moves and (self._at < now or not self._moves[0].remaining):
            first = self._moves[0]
            step = min(first.remaining, now - self._at)
            self._at, first.remaining = Instant(self._at + step), first.remaining - step
            self.busy += step
            self.idled += step * sum(move.pes for move in self._moves)
            if not first.remaining:
                self._done.append(self._moves.pop(0).key)
        self._at = max(self._at, now)
