"""Run times of requests that have ended: the last lifetimes of each owner, name and size, in wall time and as
parts of their wall limits and best guesses. `backfill=probable` rests on them (time-ahead.md 1), what is told
of starts to come (3), and notes to owners on their limits. A lifetime is that of an attempt that ended by
itself or by a limit; of others it is only known that they would have run longer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import Struct

from nqspy.model import events as ev
from nqspy.model.requests import Request

WHOLE = 1_000
"""The part of one that ran as long as it may; parts are rounded up."""
PER_KEY = 50
"""Lifetimes of one owner, name and size: so many can tell a chance of 98 in 100."""
KEYS = 2_000
"""Owners, names and sizes: those of which none has ended for longest are forgotten first."""
FARTHEST = 1_000_000
"""Thousandths of a best guess at most: whoever ran longer was a thousand times as long as guessed."""
ENOUGH, RECENT = 3, 16
"""Of fewer alike a wider kind is asked; of a wider kind so many are known."""

Key = tuple[str, str, int]
"""Owner, name, PEs."""
Kind = tuple[str, ...]
"""A wider one: owner and name, owner, nothing."""

_INFORMATIVE = frozenset(("exit", "cpu_limit", "wall_limit", "memory_limit", "file_limit", "process_limit"))
_CRASHES = frozenset((4, 5, 6, 7, 8, 11, 31))
"""Signals by which programs end themselves: ILL TRAP ABRT BUS FPE SEGV SYS. Others somebody has sent."""


class Lived(NamedTuple):
    """Wall time (ms) of one that ended, which part of its wall limit that was (thousandths; 0: it had none),
    and how many thousandths of its owner's best guess (0: none was given)."""

    wall: int
    part: int
    guess: int = 0


class Lifetime(Struct, frozen=True):
    """``runs``: of the last that ended, oldest first; ``last``: number of the event by which one did."""

    runs: tuple[Lived, ...]
    last: int

    def sure_part(self, percent: float) -> int:
        """The least part by which the next has ended with that chance; `WHOLE`: only its limit is."""
        parts = sorted(run.part for run in self.runs if run.part)
        place = int(-(-percent * (len(parts) + 1) // 100))
        return parts[place - 1] if place <= len(parts) else WHOLE


@dataclass(slots=True)
class Lifetimes:
    """Known lifetimes, in the order in which one ended last; ``wider``: the last of each wider kind, which
    follows from it (after a restart with those of one key side by side). ``closed``: nothing is learnt any
    more (what a look ahead makes up is no evidence)."""

    known: dict[Key, Lifetime] = field(default_factory=dict)
    closed: bool = field(default=False, compare=False)
    wider: dict[Kind, tuple[Lived, ...]] = field(default_factory=dict, compare=False)

    def add(self, key: Key, run: Lived, n: int) -> Iterator[Key]:
        """Yield one more ended, by event ``n``; gives the keys that have changed or are forgotten."""
        if self.closed:
            return
        former = self.known.pop(key, None)
        runs = () if former is None else former.runs
        self.known[key] = Lifetime((*runs, run)[-PER_KEY:], n)
        self._widen(key, (run,))
        yield key
        while len(self.known) > KEYS:
            oldest = next(iter(self.known))
            del self.known[oldest]
            yield oldest

    def _widen(self, key: Key, runs: tuple[Lived, ...]) -> None:
        for kind in _wider(key):
            before = self.wider.pop(kind, ())
            self.wider[kind] = (*before, *runs)[-RECENT:]
        while len(self.wider) > 2 * KEYS:
            del self.wider[next(iter(self.wider))]

    def sure(self, key: Key, percent: float) -> int:
        """The least part of its limit by which a request of that key has ended with that chance."""
        found = self.known.get(key)
        return WHOLE if found is None else found.sure_part(percent)

    def kinds(self, key: Key) -> Iterator[Sequence[Lived]]:
        """Last runs of those like it, of ever wider kinds with enough of them; of all, however few."""
        found = self.known.get(key)
        if found is not None and len(found.runs) >= ENOUGH:
            yield found.runs[-RECENT:]
        for kind in _wider(key):
            runs = self.wider.get(kind, ())
            if len(runs) >= ENOUGH or not kind:
                yield runs

    def of_owner(self, key: Key) -> Sequence[Sequence[Lived]]:
        """Return the same without those of all owners."""
        return tuple(self.kinds(key))[:-1]

    def latest(self) -> Sequence[Lived]:
        """The last runs of all."""
        return self.wider.get((), ())

    def copy(self, closed: bool = False) -> "Lifetimes":
        """A copy of its own."""
        return Lifetimes(dict(self.known), closed, dict(self.wider))

    @classmethod
    def of(cls, known: Mapping[Key, Lifetime]) -> "Lifetimes":
        """Return what was kept, in any order."""
        made = cls(dict(sorted(known.items(), key=lambda each: each[1].last)))
        for key, lifetime in made.known.items():
            made._widen(key, lifetime.runs[-RECENT:])
        return made


def _wider(key: Key) -> tuple[Kind, ...]:
    owner, name, _ = key
    return (owner, name), (owner,), ()


def key_of(request: Request) -> Key:
    """Return the key under which a request's lifetime is kept."""
    spec = request.spec
    return spec.owner, spec.name, spec.ask.pes


def run_of(event: ev.Ended, limit: int | None, guess: int | None = None) -> Lived | None:
    """Return what an end says of run times, by wall limit and best guess (ms; None: none); None: nothing."""
    crashed = event.end_reason == "signal" and event.exit_signal in _CRASHES
    if event.end_reason not in _INFORMATIVE and not crashed:
        return None
    wall = event.used.wall
    return Lived(wall, _part(wall, limit, WHOLE), _part(wall, guess, FARTHEST))


def _part(wall: int, of: int | None, most: int) -> int:
    """Return how many thousandths, rounded up, 1 at least; 0: of nothing."""
    return min(most, max(1, -(-wall * WHOLE // of))) if of and of > 0 else 0


RECENT_MOVES = 20
"""So many of the last moves say how long the next ones take."""
MeasuredMove = tuple[int, int]
"""How many PEs one left, and how long that took, ms."""


def with_move(moves: Sequence[MeasuredMove], pes: int, took: int) -> tuple[MeasuredMove, ...]:
    """The last moves, with one more."""
    return (*moves, (pes, took))[-RECENT_MOVES:]


def mean_move(moves: Sequence[MeasuredMove]) -> float | None:
    """Return how long a move took for each PE, on the average (ms); None: there was none."""
    pes = sum(pes for pes, _ in moves)
    return sum(took for _, took in moves) / pes if pes else None


def slowest_move(moves: Sequence[MeasuredMove]) -> float | None:
    """Return the same of the one that took longest for its PEs."""
    return max((took / pes for pes, took in moves if pes), default=None)
