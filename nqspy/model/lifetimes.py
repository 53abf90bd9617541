"""How long requests ran: the last lifetimes of each owner, name and size, as parts of their wall limits. What
`backfill=probable` rests on (time-ahead.md 1).

A lifetime is that of an attempt that came to an end by itself or by a limit; one that was deleted, lost or
ended for its contract says only that it would have been longer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nqspy.model import events as ev
from nqspy.model.requests import Request

WHOLE = 1_000
"""The part of one that ran as long as it may; parts are rounded up."""
KEPT = 50
"""Lifetimes of one owner, name and size: so many can tell a chance of 98 in 100."""
KEYS = 2_000
"""Owners, names and sizes: those of which none has ended for longest are forgotten first."""

Key = tuple[str, str, int]
"""Owner, name, PEs."""

_SAYS = frozenset(
    ("exit", "signal", "cpu_limit", "wall_limit", "memory_limit", "file_limit", "process_limit")
)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """``parts`` (thousandths of the wall limit) of the last that ended, oldest first; ``last``: number of the
    event by which one did."""

    parts: tuple[int, ...]
    last: int

    def chance(self, part: float) -> float:
        """How probable it is that the next has ended by then, as a part of its limit: of those known and one
        more that had not. Nothing known: 0; at its limit everyone has ended: 1."""
        if part >= WHOLE:
            return 1.0
        return sum(each <= part for each in self.parts) / (len(self.parts) + 1)

    def sure_part(self, percent: float) -> int:
        """The least part by which the next has ended with that chance; `WHOLE`: only its limit is."""
        place = -(-percent * (len(self.parts) + 1) // 100)
        return sorted(self.parts)[int(place) - 1] if place <= len(self.parts) else WHOLE


@dataclass(slots=True)
class Lifetimes:
    """What is known, in the order in which one ended last. ``closed``: nothing is learnt any more (what a
    look ahead makes up is no evidence)."""

    known: dict[Key, Lifetime] = field(default_factory=dict)
    closed: bool = False

    def add(self, key: Key, part: int, n: int) -> Iterator[Key]:
        """One more ended, by event ``n``; gives the keys that have changed or are forgotten."""
        if self.closed:
            return
        former = self.known.pop(key, None)
        parts = () if former is None else former.parts
        self.known[key] = Lifetime((*parts, part)[-KEPT:], n)
        yield key
        while len(self.known) > KEYS:
            oldest = next(iter(self.known))
            del self.known[oldest]
            yield oldest

    def sure(self, key: Key, percent: float) -> int:
        """The least part of its limit by which a request of that key has ended with that chance."""
        found = self.known.get(key)
        return WHOLE if found is None else found.sure_part(percent)

    def copy(self, closed: bool = False) -> "Lifetimes":
        """A copy of its own."""
        return Lifetimes(dict(self.known), closed)

    @classmethod
    def of(cls, known: Mapping[Key, Lifetime]) -> "Lifetimes":
        """What was kept, in any order."""
        return cls(dict(sorted(known.items(), key=lambda each: each[1].last)))


def key_of(request: Request) -> Key:
    """Whom a request is like."""
    return request.owner, request.name, request.spec.ask.pes


def part_of(event: ev.Ended, limit: int | None) -> int | None:
    """The lifetime that an end tells of one with that wall limit (ms); None: it tells none."""
    if event.end_reason not in _SAYS or not limit or limit < 1:
        return None
    return min(WHOLE, -(-event.used.wall * WHOLE // limit))
