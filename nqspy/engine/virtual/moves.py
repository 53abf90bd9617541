"""Times in which attempts leave their PEs or come back, on the simulated machine: none, and two models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nqspy.engine.virtual.processors import Key
from nqspy.model.ids import Instant

_SECOND = 1000


class StateMoves:
    """Moves of attempts' memory out and in; in this base class they take no time."""

    def begin(self, key: Key, pes: int, now: Instant, back: bool = False) -> Instant | None:
        """Begin to move an attempt's memory off so many PEs, or ``back``; an unfinished move of it is given
        up. Return the instant at which that is done; None: `done` reports it."""
        return now

    def order(self, rank: Callable[[Key], int], now: Instant) -> None:
        """Put unfinished moves of higher ``rank`` (of their attempt) first from now on."""

    def next_done(self) -> Instant | None:
        """Return when the next move is done, if nothing changes; None: no move is under way."""
        return None

    def done(self, now: Instant) -> Sequence[Key]:
        """Return the attempts with moves that ended since the last call."""
        return ()


@dataclass(slots=True)
class _Move:
    """Unfinished move of an attempt; ``remaining``: time (ms) that it still takes."""

    key: Key
    pes: int
    remaining: int


class OutOnly(StateMoves):
    """Model in which leaving takes ``per_pe`` ms for each PE, and coming back no time, as on a real machine:
    the kernel brings in pages when a process uses them, which is part of its run."""

    def __init__(self, per_pe: float) -> None:
        self._per_pe = per_pe

    def begin(self, key: Key, pes: int, now: Instant, back: bool = False) -> Instant | None:
        """Return the instant at which the move ends: ``back`` at once, out after the time for its PEs."""
        return now if back else Instant(now + round(pes * self._per_pe))


class Channel(StateMoves):
    """Model of a channel to a disk, for moves out and in, one at a time (LLNL's T3D: the whole of 256 PEs
    with 64 MB each in about eight minutes, seed 000). The move of the highest rank goes first, of equal ones
    the earliest; one that is overtaken goes on later from where it was.

    ``per_pe``: bytes of each PE, ``rate``: bytes per second. ``busy``: time (ms) in which it moved something;
    ``idled``: PE ms that were held meanwhile without work.
    """

    def __init__(self, per_pe: int, rate: float) -> None:
        self._per_pe, self._rate = per_pe, rate
        self._moves: list[_Move] = []
        self._done: list[Key] = []
        self._at = Instant(0)
        self.busy = 0
        self.idled = 0

    def begin(self, key: Key, pes: int, now: Instant, back: bool = False) -> Instant | None:
        """Append a move to the waiting ones; return None, because `done` reports its end."""
        self._pass_to(now)
        self._moves = [move for move in self._moves if move.key != key]
        self._moves.append(_Move(key, pes, round(pes * self._per_pe / self._rate * _SECOND)))
        return None

    def order(self, rank: Callable[[Key], int], now: Instant) -> None:
        """Put moves of higher rank first; equal ones stay in order."""
        self._pass_to(now)
        self._moves.sort(key=lambda move: -rank(move.key))

    def next_done(self) -> Instant | None:
        """Return when the first move is done; None: there is none."""
        return Instant(self._at + self._moves[0].remaining) if self._moves else None

    def done(self, now: Instant) -> Sequence[Key]:
        """Return the attempts with moves that ended since the last call, in order."""
        self._pass_to(now)
        done, self._done = self._done, []
        return done

    def _pass_to(self, now: Instant) -> None:
        """Process the moves one after the other up to an instant."""
        while self._moves and (self._at < now or not self._moves[0].remaining):
            first = self._moves[0]
            step = min(first.remaining, now - self._at)
            self._at, first.remaining = Instant(self._at + step), first.remaining - step
            self.busy += step
            self.idled += step * sum(move.pes for move in self._moves)
            if not first.remaining:
                self._done.append(self._moves.pop(0).key)
        self._at = max(self._at, now)
