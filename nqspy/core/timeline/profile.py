"""Amounts that are free over time (time-ahead.md 1).

A profile counts amounts (PEs of a domain, units of a consumable, places under a limit) over half-open
intervals of time: a request may start at the instant at which another is expected to end. It knows no
requests.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import islice

import numpy as np

from nqspy.model.columns import Floats, Ints

FOREVER = 1 << 62
"""Instant (ms) of an end that is unknown."""

Amount = Hashable
"""Key of something that is counted: PEs of a domain, units of a consumable, places under a limit."""
Claims = Mapping[Amount, int]
"""Number held or wanted of each amount."""
Span = tuple[int, int, Claims]
"""Claims that are held from one instant to another."""


class _Steps:
    """Free part of one amount over time, in steps. The last step lasts for ever."""

    __slots__ = ("_least", "free", "times")

    def __init__(self, now: int, free: int) -> None:
        self.times, self.free = [now], [free]
        self._least: tuple[Floats, Ints] | None = None

    def copy(self, now: int) -> "_Steps":
        """Return a copy that begins at a later instant of the first step."""
        copied = _Steps(now, 0)
        copied.times, copied.free, copied._least = [now, *self.times[1:]], self.free.copy(), self._least
        return copied

    def least(self) -> tuple[Floats, Ints]:
        """Return the begin of each step, and the least that is free from the first step to the end of it."""
        if self._least is None:
            least = np.minimum.accumulate(np.array(self.free, dtype=np.int64))
            self._least = np.array(self.times, dtype=np.float64), least
        return self._least

    def at(self, instant: int) -> int:
        """Return the index of the step that holds an instant."""
        return max(0, bisect_right(self.times, instant) - 1)

    def _cut(self, instant: int) -> int:
        """Return the index of the step that begins at an instant; make that step if there is none."""
        index = bisect_left(self.times, instant)
        if index == len(self.times) or self.times[index] != instant:
            self.times.insert(index, instant)
            self.free.insert(index, self.free[index - 1])
        return index

    def add(self, begin: int, end: int, amount: int) -> None:
        """Add to what is free from ``begin`` to ``end``; ``amount`` may be negative."""
        begin = max(begin, self.times[0])
        if begin >= end:
            return
        self._least = None
        first, last = self._cut(begin), self._cut(end)
        for index in range(first, last):
            self.free[index] += amount
        for index in (last, first):
            if index and self.free[index] == self.free[index - 1]:
                del self.times[index], self.free[index]

    def fill(self, held: Iterable[tuple[int, int, int]]) -> None:
        """Hold amounts, each from one instant to another. Nothing was held before."""
        now, free, changes = self.times[0], self.free[0], dict[int, int]()
        for begin, end, amount in held:
            if max(begin, now) >= end:
                continue
            changes[end] = changes.get(end, 0) + amount
            if begin > now:
                changes[begin] = changes.get(begin, 0) - amount
            else:
                free -= amount
        self.times, self.free, self._least = [now], [free], None
        for at in sorted(at for at, change in changes.items() if change):
            free += changes[at]
            self.times.append(at)
            self.free.append(free)

    def lasts(self, amount: int, until: int = FOREVER) -> int:
        """Return the instant up to which so much is free without a break from the first, at most
        ``until``."""
        for at, free in zip(self.times, self.free, strict=True):
            if at >= until:
                break
            if free < amount:
                return at
        return until

    def earliest(self, amount: int, length: int, after: int) -> int | None:
        """Return the first instant from ``after`` on with so much free for ``length`` ms; None: no such."""
        index, begin, is_free = self.at(after), max(after, self.times[0]), True
        end = begin + length
        for at, free in zip(islice(self.times, index, None), islice(self.free, index, None), strict=True):
            if is_free and at >= end:
                return begin
            if free < amount:
                is_free = False
            elif not is_free:
                begin, end, is_free = at, at + length, True
        return begin if is_free else None


class Profile:
    """Amounts that are free from ``now`` on. An amount that was never provided is unlimited."""

    def __init__(self, now: int, capacities: Claims | None = None) -> None:
        self.now = now
        self._steps = {amount: _Steps(now, most) for amount, most in (capacities or {}).items()}

    def copy(self, now: int) -> "Profile":
        """Return a copy that begins at a later instant, before any end or begin of what is held."""
        copied = Profile(now)
        copied._steps = {amount: steps.copy(now) for amount, steps in self._steps.items()}
        return copied

    def provide(self, amount: Amount, most: int) -> None:
        """Count an amount, of which there is ``most`` in all, unless it is counted already."""
        if amount not in self._steps:
            self._steps[amount] = _Steps(self.now, most)

    def fill(self, held: Iterable[Span]) -> None:
        """Hold many spans at once in an empty profile, faster than by `hold`."""
        by_amount: dict[Amount, list[tuple[int, int, int]]] = {}
        for begin, end, claims in held:
            for amount, count in claims.items():
                if count:
                    by_amount.setdefault(amount, []).append((begin, end, count))
        for amount, spans in by_amount.items():
            if amount in self._steps:
                self._steps[amount].fill(spans)

    def hold(self, begin: int, end: int, claims: Claims) -> None:
        """Hold these claims from one instant to another; amounts that are not counted are left out."""
        for steps, count in self._counted(claims):
            steps.add(begin, end, -count)

    def release(self, begin: int, end: int, claims: Claims) -> None:
        """Release claims that were held from one instant to another."""
        for steps, count in self._counted(claims):
            steps.add(begin, end, count)

    def _counted(self, claims: Claims) -> Iterator[tuple[_Steps, int]]:
        return ((self._steps[a], count) for a, count in claims.items() if count and a in self._steps)

    # ------------------------------------------------------------ one amount

    def has(self, amount: Amount) -> bool:
        """True if an amount is counted."""
        return amount in self._steps

    def most(self, amount: Amount) -> int:
        """Return how much of an amount is free after all known ends; what is held for ever is not free."""
        return self._steps[amount].free[-1]

    def free(self, amount: Amount, at: int) -> int:
        """Return how much of an amount is free at an instant."""
        steps = self._steps[amount]
        return steps.free[steps.at(at)]

    def least(self, amount: Amount) -> int:
        """Return the least that is free of an amount at any instant from now on."""
        return int(self._steps[amount].least()[1][-1])

    def least_until(self, amount: Amount, ends: Floats) -> Ints:
        """Return for each of these instants the least that is free of an amount from now until then."""
        times, least = self._steps[amount].least()
        found: Ints = least[np.maximum(np.searchsorted(times, ends, side="left") - 1, 0)]
        return found

    # ------------------------------------------------------------ several amounts

    def ever(self, claims: Claims) -> bool:
        """True if there is enough for these claims once all that is held has ended."""
        return all(steps.free[-1] >= count for steps, count in self._counted(claims))

    def until(self, claims: Claims) -> int:
        """Return the instant up to which these claims are free from now on; `FOREVER`: without an end."""
        return min((steps.lasts(count) for steps, count in self._counted(claims)), default=FOREVER)

    def fits(self, claims: Claims, length: int) -> bool:
        """True if these claims are free from now on for ``length`` ms."""
        until = min(self.now + length, FOREVER)
        return all(steps.lasts(count, until) >= until for steps, count in self._counted(claims))

    def earliest(
        self, claims: Claims, length: int, lasting: Claims | None = None, after: int = 0
    ) -> int | None:
        """Return the first instant, from ``after`` on, from which these claims are free for ``length`` ms and
        those of ``lasting`` for ever; None: there is no such instant."""
        wanted = [(steps, count, length) for steps, count in self._counted(claims)]
        wanted += [(steps, count, FOREVER) for steps, count in self._counted(lasting or {})]
        found, moved = max(self.now, after), True
        while moved:
            moved = False
            for steps, count, duration in wanted:
                begin = steps.earliest(count, duration, found)
                if begin is None or begin >= FOREVER:
                    return None
                moved, found = moved or begin > found, begin
        return found
