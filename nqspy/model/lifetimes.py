"""Run times of requests that have ended: the last lifetimes of each owner, name and size, as wall times and
as parts of wall limits and best guesses. `backfill=probable` (time-ahead.md 1), estimates of coming starts
(3) and notes to owners on their limits use them. A lifetime is that of an attempt that ended by itself or by
a limit; for other attempts only a lower bound would be known."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import Struct

from nqspy.model import events as ev
from nqspy.model.requests import Request

WHOLE = 1_000
"""Part of a run that used its whole wall limit (thousandths); parts are rounded up."""
PER_KEY = 50
"""Lifetimes stored for one owner, name and size: enough for a probability of 98 in 100."""
KEYS = 2_000
"""Most keys (owner, name, size) that are stored; those with the oldest last end are dropped first."""
FARTHEST = 1_000_000
"""Greatest stored part of a best guess (thousandths): a run a thousand times as long as guessed."""
ENOUGH, RECENT = 3, 16
"""Least number of runs of a kind, else a wider kind is used; runs that are stored of a wider kind."""

Key = tuple[str, str, int]
"""Owner, name, PEs."""
Kind = tuple[str, ...]
"""A wider kind than a key: owner and name, owner alone, or all."""

_INFORMATIVE = frozenset(("exit", "cpu_limit", "wall_limit", "memory_limit", "file_limit", "process_limit"))
_CRASHES = frozenset((4, 5, 6, 7, 8, 11, 31))
"""Signals by which programs end themselves: ILL TRAP ABRT BUS FPE SEGV SYS. Others were sent."""


class Lived(NamedTuple):
    """Run of a request that ended: wall time (ms), and that as a part of its wall limit (thousandths; 0: it
    had no limit) and of its owner's best guess (thousandths; 0: no guess)."""

    wall: int
    part: int
    guess: int = 0


class Lifetime(Struct, frozen=True):
    """Last ``runs`` of one owner, name and size, oldest first; ``last``: number of the last end's event."""

    runs: tuple[Lived, ...]
    last: int

    def sure_part(self, percent: float) -> int:
        """Return the least part (thousandths) of its wall limit within which the next run ends with a
        probability of ``percent``; `WHOLE`: no less than the limit."""
        parts = sorted(run.part for run in self.runs if run.part)
        place = int(-(-percent * (len(parts) + 1) // 100))
        return parts[place - 1] if place <= len(parts) else WHOLE


@dataclass(slots=True)
class Lifetimes:
    """Run times of ended requests (`Site.lifetimes`). ``known``: by key, in the order of their last ends.
    ``wider``: the last runs of each wider kind; after a restart it is rebuilt from the keys, one after
    another. ``closed``: True in a simulation, which records nothing more: its results are no evidence."""

    known: dict[Key, Lifetime] = field(default_factory=dict)
    closed: bool = field(default=False, compare=False)
    wider: dict[Kind, tuple[Lived, ...]] = field(default_factory=dict, compare=False)

    def add(self, key: Key, run: Lived, n: int) -> Iterator[Key]:
        """Record a run that ended by event ``n``, and yield the keys that changed or were dropped."""
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
        """Return the least part (thousandths) of its wall limit within which a request of this key ends with
        that probability (per cent); `WHOLE`: unknown."""
        found = self.known.get(key)
        return WHOLE if found is None else found.sure_part(percent)

    def kinds(self, key: Key) -> Iterator[Sequence[Lived]]:
        """Yield the last runs of similar requests: same key, same owner and name, same owner, all requests.
        A kind with fewer than `ENOUGH` runs is left out, except the last."""
        found = self.known.get(key)
        if found is not None and len(found.runs) >= ENOUGH:
            yield found.runs[-RECENT:]
        for kind in _wider(key):
            runs = self.wider.get(kind, ())
            if len(runs) >= ENOUGH or not kind:
                yield runs

    def of_owner(self, key: Key) -> Sequence[Sequence[Lived]]:
        """Return the runs that `kinds` yields, without the last kind, which has runs of all owners."""
        return tuple(self.kinds(key))[:-1]

    def latest(self) -> Sequence[Lived]:
        """Return the last `RECENT` runs of all requests, oldest first."""
        return self.wider.get((), ())

    def copy(self, closed: bool = False) -> "Lifetimes":
        """Return an independent copy; ``closed``: it records nothing."""
        return Lifetimes(dict(self.known), closed, dict(self.wider))

    @classmethod
    def of(cls, known: Mapping[Key, Lifetime]) -> "Lifetimes":
        """Return lifetimes from stored ones, which may be in any order."""
        made = cls(dict(sorted(known.items(), key=lambda each: each[1].last)))
        for key, lifetime in made.known.items():
            made._widen(key, lifetime.runs[-RECENT:])
        return made


def _wider(key: Key) -> tuple[Kind, ...]:
    owner, name, _ = key
    return (owner, name), (owner,), ()


def key_of(request: Request) -> Key:
    """Return the key (owner, name, PEs) under which the lifetime of a request is stored."""
    spec = request.spec
    return spec.owner, spec.name, spec.ask.pes


def run_of(event: ev.Ended, limit: int | None, guess: int | None = None) -> Lived | None:
    """Return the run to record for the end of a request, with its wall limit and best guess (ms; None: it had
    none); None if it ended otherwise than by itself or by a limit."""
    crashed = event.end_reason == "signal" and event.exit_signal in _CRASHES
    if event.end_reason not in _INFORMATIVE and not crashed:
        return None
    wall = event.used.wall
    return Lived(wall, _part(wall, limit, WHOLE), _part(wall, guess, FARTHEST))


def _part(wall: int, of: int | None, most: int) -> int:
    """Return ``wall`` as thousandths of ``of``, rounded up, from 1 to ``most``; 0: ``of`` is nothing."""
    return min(most, max(1, -(-wall * WHOLE // of))) if of and of > 0 else 0


RECENT_MOVES = 20
"""Number of last moves from which the time of the next is estimated."""
MeasuredMove = tuple[int, int]
"""Number of PEs that a job left, and the time that it took (ms)."""


def with_move(moves: Sequence[MeasuredMove], pes: int, duration: int) -> tuple[MeasuredMove, ...]:
    """Return the last moves with one more: a job that left so many PEs took ``duration`` ms."""
    return (*moves, (pes, duration))[-RECENT_MOVES:]


def mean_move(moves: Sequence[MeasuredMove]) -> float | None:
    """Return the mean time (ms) of the moves per PE that was left; None: there was no move."""
    pes = sum(pes for pes, _ in moves)
    return sum(duration for _, duration in moves) / pes if pes else None


def slowest_move(moves: Sequence[MeasuredMove]) -> float | None:
    """Return the greatest time per PE (ms) of one of the moves; None: there was no move."""
    return max((duration / pes for pes, duration in moves if pes), default=None)
