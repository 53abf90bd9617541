"""The share factor of each (owner, group): the value of the `shrpri` exit (or the stock rule), divided by the
largest value of those that no limit holds, clipped to [0,1] (semantics.md 1).

Values hold for one *round*, from one start of the pass to the next: a start debits its group and so changes
the values. Within a round the exit is called once for each (owner, group).
"""

from collections.abc import Sequence
from functools import cached_property
from math import isfinite
from typing import Any, TypeGuard

import numpy as np

from nqspy.core.draft import Draft
from nqspy.core.gate.rule import Mask
from nqspy.core.views import view_of
from nqspy.model.columns import Columns, Floats, Ints
from nqspy.shares import Many, balance_of


def shrpris(draft: Draft, domain: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Return the share value of each (owner, group) in this round: from the `shrpri` exit, else by the stock
    rule. It is not negative and not yet divided by the largest."""
    known = draft.priorities.get(domain)
    if known is None:
        values = _ask(draft, domain, pairs)
        draft.priorities[domain] = dict(zip(pairs, values, strict=True))
        return values
    if unknown := [pair for pair in pairs if pair not in known]:
        known.update(zip(unknown, _ask(draft, domain, unknown), strict=True))
    return [known[pair] for pair in pairs]


def _ask(draft: Draft, domain: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
    draft.asked = domain
    if not draft.exits.has("shrpri"):
        stocks = draft.ledger_of(domain).stocks
        return [stocks.value(*pair) for pair in pairs]
    answers = draft.exits.shrpris(pairs, view_of(draft))
    if _are_sound(answers):  # as nearly always
        return answers
    # Many answers are equal: those of a group, or those of no exit at all.
    different = {*answers}
    sound: dict[float | None, float] = {
        each: float(each) if each > 0 else 0.0 for each in different if each is not None and isfinite(each)
    }
    if len(sound) == len(different):
        return list(map(sound.__getitem__, answers))
    stocks = draft.ledger_of(domain).stocks
    return [
        sound[value] if value in sound else stocks.value(*pair)
        for pair, value in zip(pairs, answers, strict=True)
    ]


def _are_sound(answers: Any) -> TypeGuard[list[float]]:
    """True if all answers are numbers above 0."""
    return {*map(type, answers)} == {float} and bool(min(answers) > 0 and isfinite(sum(answers)))


class Shares:
    """Share factors of the requests of one queue, by their pair of owner and group.

    ``frozen`` keeps the values of the last round: `places` sets it where the exit would be called too often.
    """

    def __init__(self, draft: Draft, queue: str, columns: Columns) -> None:
        self._draft, self._columns = draft, columns
        self._domain = draft.site.domain_of(queue).name
        self._waiting, self._pairs = columns.by_pair(), columns.pairs(draft.site.numbers)
        self._present, self._keys = self._pairs.numbers, self._pairs.keys
        self._values: Floats | None = None
        self._of = 0
        stocks = None if draft.exits.has("shrpri") else draft.ledger_of(self._domain).stocks
        self._stock = None if stocks is None else Many(stocks, self._pairs)
        self.frozen = False
        self._counts = self._waiting.copy()
        self._blocked: Mask | None = None
        self._read = 0

    @cached_property
    def last(self) -> Ints:
        """Numbers of the pairs with share value 0 in groups without a share: these come after all others."""
        is_bare = balance_of(self._draft.site, self._domain).is_bare
        groups = set(filter(is_bare, self._pairs.groups))
        if not groups:
            return self._present[:0]
        bare = np.array([group in groups for _, group in self._keys], dtype=bool)
        return self._present[bare & (self._round() <= 0)]

    @property
    def pairs(self) -> int:
        """Number of pairs of owner and group."""
        return len(self._keys)

    def by_pair(self, blocked: Mask | None, removed: Sequence[int]) -> Floats:
        """Return the share factors of this round by pair number. A pair counts for the divisor if one of its
        rows is neither ``blocked`` nor ``removed``; if there is no such pair, all count."""
        values = self._round()
        counting = values if blocked is None and not removed else values[self._counting(blocked, removed)]
        counting = counting if len(counting) else values
        largest = float(counting.item(counting.argmax()))
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

    def _counting(self, blocked: Mask | None, removed: Sequence[int]) -> Mask:
        """Return the pairs that have a row that is neither blocked nor removed."""
        pair = self._columns.pair
        if blocked is not self._blocked:
            free = pair if blocked is None else pair[~blocked]
            self._counts = np.bincount(free, minlength=len(self._waiting))
            self._blocked, self._read = blocked, 0
        for row in removed[self._read :]:
            if blocked is None or not blocked[row]:
                self._counts[pair[row]] -= 1
        self._read = len(removed)
        counting: Mask = self._counts[self._present] > 0
        return counting
