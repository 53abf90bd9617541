"""What is free later: the only place that knows (time-ahead.md 1).

A profile holds claims on amounts (PEs of a domain, units of a consumable, places under a limit) over
half-open intervals of time: a request may start in the instant in which another is expected to end. It knows
nothing of requests: whoever builds one says which amounts there are, and what is held until when.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import islice

import numpy as np

from nqspy.model.columns import Floats, Ints

FOREVER = 1 << 62
"""The instant of what has no known end, ms."""

Amount = Hashable
"""What is counted: PEs of a domain, a consumable, a limit."""
Claims = Mapping[Amount, int]
"""How much of what somebody holds."""


class _Steps:
    """How much of one amount is free from each instant to the next. The last step lasts for ever: then all
    that is held has ended."""

    __slots__ = ("_least", "free", "times")

    def __init__(self, now: int, free: int) -> None:
        self.times, self.free = [now], [free]
        self._least: tuple[Floats, Ints] | None = None

    def copy(self, now: int) -> "_Steps":
        """The same for whoever begins at a later instant of the first step."""
        made = _Steps(now, 0)
        made.times, made.free, made._least = [now, *self.times[1:]], self.free.copy(), self._least
        return made

    def least(self) -> tuple[Floats, Ints]:
        """The instants, and how much is free all the time from the first to each of them and on to the
        next."""
        if self._least is None:
            least = np.minimum.accumulate(np.array(self.free, dtype=np.int64))
            self._least = np.array(self.times, dtype=np.float64), least
        return self._least

    def at(self, instant: int) -> int:
        """The place of the step in which an instant lies."""
        return max(0, bisect_right(self.times, instant) - 1)

    def _cut(self, instant: int) -> int:
        """The place of the step that begins with an instant, which is made if need be."""
        place = bisect_left(self.times, instant)
        if place == len(self.times) or self.times[place] != instant:
            self.times.insert(place, instant)
            self.free.insert(place, self.free[place - 1])
        return place

    def add(self, begin: int, end: int, amount: int) -> None:
        """So much more is free (less, where it is negative) from ``begin`` to ``end``."""
        begin = max(begin, self.times[0])
        if begin >= end:
            return
        self._least = None
        first, last = self._cut(begin), self._cut(end)
        for place in range(first, last):
            self.free[place] += amount
        for place in (last, first):
            if place and self.free[place] == self.free[place - 1]:
                del self.times[place], self.free[place]

    def begin(self, held: Iterable[tuple[int, int, int]]) -> None:
        """All that is held, each from when until when how much, of an amount of which nothing was before."""
        now, free, changes = self.times[0], self.free[0], dict[int, int]()
        self._least = None
        for begin, end, amount in held:
            if max(begin, now) >= end:
                continue
            changes[end] = changes.get(end, 0) + amount
            if begin > now:
                changes[begin] = changes.get(begin, 0) - amount
            else:
                free -= amount
        self.times, self.free = [now], [free]
        for at in sorted(at for at, more in changes.items() if more):
            free += changes[at]
            self.times.append(at)
            self.free.append(free)

    def lasts(self, amount: int) -> int:
        """Up to which instant so much is free from the first on."""
        lacking = (at for at, free in zip(self.times, self.free, strict=True) if free < amount)
        return next(lacking, FOREVER)

    def has(self, amount: int, until: int) -> bool:
        """Whether so much is free from the first instant until another."""
        for at, free in zip(self.times, self.free, strict=True):
            if at >= until:
                break
            if free < amount:
                return False
        return True

    def earliest(self, amount: int, length: int, after: int) -> int | None:
        """The first instant from ``after`` on from which so much is free for ``length``; None: never."""
        place, begin, is_free = self.at(after), max(after, self.times[0]), True
        end = begin + length
        for at, free in zip(islice(self.times, place, None), islice(self.free, place, None), strict=True):
            if is_free and at >= end:
                return begin
            if free < amount:
                is_free = False
            elif not is_free:
                begin, end, is_free = at, at + length, True
        return begin if is_free else None


class Profile:
    """Free over time from ``now`` on. ``capacity`` says how much there is of an amount in all, when it is
    first spoken of (None: as much as anybody asks for)."""

    def __init__(self, now: int, capacities: Mapping[Amount, int] | None = None) -> None:
        self.now = now
        self._steps: dict[Amount, _Steps] = {}
        for amount, most in (capacities or {}).items():
            self.provide(amount, most)

    def copy(self, now: int) -> "Profile":
        """The same from a later instant on, before anything that is held begins or ends."""
        made = Profile(now)
        made._steps = {amount: steps.copy(now) for amount, steps in self._steps.items()}
        return made

    def provide(self, amount: Amount, most: int) -> None:
        """There is so much of it in all; nothing where it is known already."""
        if amount not in self._steps:
            self._steps[amount] = _Steps(self.now, most)

    def begin(self, held: Iterable[tuple[int, int, Claims]]) -> None:
        """What everybody has, from when until when; called once, and first."""
        found: dict[Amount, list[tuple[int, int, int]]] = {}
        for begin, end, claims in held:
            for amount, count in claims.items():
                if count:
                    found.setdefault(amount, []).append((begin, end, count))
        for amount, spans in found.items():
            if amount in self._steps:
                self._steps[amount].begin(spans)

    def hold(self, begin: int, end: int, claims: Claims) -> None:
        """Somebody has these amounts from ``begin`` to ``end``; of what nobody provides nothing is noted."""
        self._add(begin, end, claims, -1)

    def release(self, begin: int, end: int, claims: Claims) -> None:
        """Somebody gives back what he held so."""
        self._add(begin, end, claims, 1)

    def _add(self, begin: int, end: int, claims: Claims, sign: int) -> None:
        for amount, count in claims.items():
            steps = self._steps.get(amount)
            if steps is not None and count:
                steps.add(begin, end, sign * count)

    def free(self, amount: Amount, at: int) -> int:
        """How much is free at an instant."""
        steps = self._steps[amount]
        return steps.free[steps.at(at)]

    def most(self, amount: Amount) -> int:
        """How much there is of it in all."""
        return self._steps[amount].free[-1]

    def fits(self, claims: Claims, length: int) -> bool:
        """Whether these amounts are free from now on for so long."""
        until = min(self.now + length, FOREVER)
        return all(steps.has(n, until) for a, n in claims.items() if n and (steps := self._steps.get(a)))

    def earliest(
        self, claims: Claims, length: int, kept_on: Claims | None = None, after: int = 0
    ) -> int | None:
        """The first instant, from ``after`` on, from which all of these are free for ``length`` ms, and those
        ``kept_on`` for ever; None: never."""
        found, moved = max(self.now, after), True
        spans = (claims, length), (kept_on or {}, FOREVER)
        wanted = [
            (self._steps[a], n, span)
            for some, span in spans
            for a, n in some.items()
            if n and a in self._steps
        ]
        while moved:
            moved = False
            for steps, count, span in wanted:
                begin = steps.earliest(count, span, found)
                if begin is None or begin >= FOREVER:
                    return None
                moved, found = moved or begin > found, begin
        return found

    def ever(self, claims: Claims) -> bool:
        """Whether there is so much of all of these once everybody has ended, those too who have no known
        end."""
        return all(self._steps[a].free[-1] >= n for a, n in claims.items() if n and a in self._steps)

    def until(self, claims: Claims) -> int:
        """Up to which instant all of these amounts are free from now on: now where one is not, `FOREVER`
        where none ever lacks."""
        wanted = [(self._steps[a], n) for a, n in claims.items() if n and a in self._steps]
        return min((steps.lasts(count) for steps, count in wanted), default=FOREVER)

    def has(self, amount: Amount) -> bool:
        """Whether somebody provides it."""
        return amount in self._steps

    def least(self, amount: Amount) -> int:
        """How much of it is free at every instant from now on."""
        return int(self._steps[amount].least()[1][-1])

    def least_until(self, amount: Amount, ends: Floats) -> Ints:
        """How much of it is free all the time from now to each of these instants."""
        times, least = self._steps[amount].least()
        found: Ints = least[np.maximum(np.searchsorted(times, ends, side="left") - 1, 0)]
        return found


def held_up_by(ends: Iterable[tuple[int, int]], at: int, most: int) -> Sequence[int]:
    """Who ends last at or before an instant, of (end, who): those whom a start then waits for, nearest
    first."""
    known = sorted(((end, who) for end, who in ends if end <= at), reverse=True)
    return [who for _, who in known[:most]]
