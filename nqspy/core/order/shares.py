"""The share factor: what the `shrpri` exit (or the stock rule) gives each (owner, group), divided by the
largest value among those that no limit keeps back, clipped to [0,1] (semantics.md 1).

Values hold for one *round*: from one start of the pass to the next, because a start debits its group and so
changes who is furthest behind. Within a round the exit is called once for each (owner, group).
"""

from collections.abc import Sequence
from functools import cached_property
from math import isfinite
from typing import Any, TypeGuard

import numpy as np

from nqspy.core.draft import Draft
from nqspy.core.gate.rule import Mask
from nqspy.core.stock import Many
from nqspy.model.columns import Columns, Floats, Ints


def shrpris(draft: Draft, domain: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """The share terms of owners, each in a group, in this round, before normalising; never negative."""
    known = draft.priorities.get(domain)
    if known is None:
        found = _ask(draft, domain, pairs)
        draft.priorities[domain] = dict(zip(pairs, found, strict=True))
        return found
    if unknown := [pair for pair in pairs if pair not in known]:
        known.update(zip(unknown, _ask(draft, domain, unknown), strict=True))
    return [known[pair] for pair in pairs]


def _ask(draft: Draft, domain: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
    draft.asked = domain
    if not draft.exits.has("shrpri"):
        return [max(0.0, draft.stocks_of(domain).value(*pair)) for pair in pairs]
    said = draft.exits.shrpris(pairs, draft.view)
    if _are_sound(said):  # as nearly always
        return said
    # Many are told the same: those of a group, or of no exit at all.
    answers = {*said}
    sound: dict[float | None, float] = {
        each: float(each) if each > 0 else 0.0 for each in answers if each is not None and isfinite(each)
    }
    if len(sound) == len(answers):
        return list(map(sound.__getitem__, said))
    stocks = draft.stocks_of(domain)
    return [
        sound[value] if value in sound else max(0.0, stocks.value(*pair))
        for pair, value in zip(pairs, said, strict=True)
    ]


def _are_sound(said: Any) -> TypeGuard[list[float]]:
    """Whether all are numbers above 0."""
    return {*map(type, said)} == {float} and bool(min(said) > 0 and isfinite(sum(said)))


class Shares:
    """Share factors of the requests of one queue, by their pair of owner and group.

    ``frozen`` keeps the first round's values (for long simulated lines whose exit would be called too
    often).
    """

    def __init__(self, draft: Draft, queue: str, columns: Columns) -> None:
        self._draft, self._columns = draft, columns
        self._domain = draft.site.domain_of(queue).name
        self._waiting, self._pairs = columns.by_pair(), columns.pairs(draft.site.numbers)
        self._present, self._keys = self._pairs.numbers, self._pairs.keys
        self._values: Floats | None = None
        self._of = 0
        self._stock = None if draft.exits.has("shrpri") else Many(draft.stocks_of(self._domain), self._pairs)
        self.frozen = False
        self._counts = self._waiting.copy()
        self._kept: Mask | None = None
        self._read = 0

    @cached_property
    def last(self) -> Ints:
        """Numbers of the pairs whose groups have no share, and to whom nobody gives one: they come after all
        others, whatever their other factors."""
        is_bare = self._draft.site.balance_of(self._domain).is_bare
        groups = set(filter(is_bare, self._pairs.groups))
        if not groups:
            return self._present[:0]
        bare = np.array([group in groups for _, group in self._keys], dtype=bool)
        return self._present[bare & (self._round() <= 0)]

    @property
    def pairs(self) -> int:
        """How many (owner, group) there are."""
        return len(self._keys)

    def by_pair(self, kept: Mask | None, gone: Sequence[int]) -> Floats:
        """Share factors of this round, indexed by pair number. Pairs count for the divisor if some waiting
        row of theirs is neither ``kept`` back nor ``gone``; if there is none, all count."""
        values = self._round()
        counting = values if kept is None and not gone else values[self._counting(kept, gone)]
        those = counting if len(counting) else values
        largest = float(those.item(those.argmax()))
        table = np.zeros(len(self._waiting))
        if largest > 0:
            table[self._present] = np.minimum(values / largest, 1.0)
        return table

    def _round(self) -> Floats:
        if self._stock is not None:
            return self._stock.values()
        if self._values is None or (self._of != self._draft.rounds and not self.frozen):
            self._values = np.array(shrpris(self._draft, self._domain, self._keys))
            self._of = self._draft.rounds
        return self._values

    def _counting(self, kept: Mask | None, gone: Sequence[int]) -> Mask:
        pair = self._columns.pair
        if kept is not self._kept:
            free = pair if kept is None else pair[~kept]
            self._counts = np.bincount(free, minlength=len(self._waiting))
            self._kept, self._read = kept, 0
        for row in gone[self._read :]:
            if kept is None or not kept[row]:
                self._counts[pair[row]] -= 1
        self._read = len(gone)
        found: Mask = self._counts[self._present] > 0
        return found
