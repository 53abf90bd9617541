"""The candidates of one queue in their order: rank, score, earlier date in queue, lower sequence number.

Scores are computed over whole columns, and the best row is an argmax: 100,000 rows are never sorted, and a
row becomes a request only once it is examined.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from nqspy.core import alike
from nqspy.core.draft import Draft
from nqspy.core.gate.gate import Gate, Which
from nqspy.core.gate.rule import Mask
from nqspy.core.order.order import CandidateOrder, Sjf
from nqspy.core.order.orders import ORDERS
from nqspy.core.order.own_priority import behind_their_own
from nqspy.core.order.shares import Shares
from nqspy.model.columns import Columns, Floats, Ints, turn_of
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reach
from nqspy.model.requests import Request

LAST = np.iinfo(np.int64).max
"""Date in queue later than all others."""
NEVER = float("-inf")
"""Score of a row that is no candidate (any more)."""
_SAMPLE = 16
"""Sampling stride for estimating the cut-off score."""
NEXT = 2
"""Rank of ``schedule request next``: ahead of all others, under the limits. 1 is *first* (of its queue)."""


class Candidates:
    """Candidates of one queue in a pass: rows of its ``columns``, in order. ``names``: of its queues (here
    one). ``examined``: number of rows examined. ``changes``: how often dates or rows changed."""

    def __init__(self, draft: Draft, queue: Queue, gate: Gate) -> None:
        self._draft, self._gate, self.queue, self.names = draft, gate, queue, {queue.name}
        self.columns: Columns = draft.site.waiting[queue.name]
        self._queue_order: CandidateOrder = ORDERS[queue.order](draft, queue, self.columns)
        self._order: CandidateOrder = self._queue_order
        self._turns: Ints | None = None
        self._missing = gate.missing(queue.name, self.columns)
        self._remaining = self.waiting()
        self._base: Floats | None = None
        self._score: Floats | None = None
        self._former: Floats | None = None
        self._shares: Shares | None = None
        self.changes = self.examined = 0

    # ------------------------------------------------------------ scores

    @property
    def shares(self) -> Shares | None:
        """Share factors of the queue's requests; None if the queue's order gives shares no weight."""
        if not self._order.shared:
            return None
        if self._shares is None:
            self._shares = Shares(self._draft, self.queue.name, self.columns)
        return self._shares

    def scores(self) -> Floats:
        """Return the score of every row, higher first. After each start shares are computed anew."""
        if self._score is None:
            if self._base is None:  # without shares: the same until dates or rows change
                base = self._order.score()
                if self.columns.most("rank"):
                    base = base + self.columns.rank * self._order.step
                if self.columns.prioritised:
                    base[~self._remaining] = NEVER
                    behind_their_own(base, self.columns, self._dates, self._turn)
                self._base = base
            score = self._base
            if (shares := self.shares) is not None:
                refused = self._gate.mask(self.queue.name, self.columns, Which.TIMED)
                by_pair = shares.by_pair(refused, self.removed()) * self._order.shared
                if len(last := shares.last):
                    by_pair[last] -= self._order.step / 2
                score = by_pair.take(self.columns.pair) + score
            self._score = score
        return self._score

    @property
    def _dates(self) -> Ints:
        return self._draft.dates(self.queue.name)

    @property
    def _turn(self) -> Ints:
        return self.columns.turn if self._turns is None else self._turns

    # ------------------------------------------------------------ changes

    def request(self, row: int) -> Request:
        """Return the request of a row."""
        return self.columns.request(row)

    def row_of(self, request: Request) -> int:
        """Return the row of a request."""
        return request.slot

    def examine(self, row: int) -> Request:
        """Mark a row as examined, and return its request."""
        self.examined += 1
        self._remaining[row] = False
        return self.columns.request(row)

    def skip(self, rows: list[int]) -> None:
        """Mark these rows as examined without reading their requests."""
        self.examined += len(rows)
        self._remaining[rows] = False

    def pass_over(self, reach: Reach) -> None:
        """Mark all rows to which a refusal applies as examined."""
        rows = alike.rows(self._draft.site, self.columns, reach.fields, reach.within)
        self.examined += int(np.count_nonzero(rows & self._remaining))
        self._remaining &= ~rows

    def skip_waiting(self) -> bool:
        """Return False: no row is a suspended request. `ClassCandidates` skips all except these: True."""
        return False

    def put_back(self, rows: Sequence[int], *, next_index: bool = False) -> None:
        """Make these rows candidates again; ``next_index``: each is now the next index of its array."""
        self._remaining[list(rows)] = True
        self.examined -= 0 if next_index else len(rows)
        if next_index:
            self._turns = self.columns.turn.copy() if self._turns is None else self._turns
            for row in rows:
                self._turns[row] = turn_of(self._draft.what_starts(self.columns.request(row)))
        self.sort_again()

    def sort_again(self) -> None:
        """Discard scores and rows that no longer wait; the next choice goes by present dates and turns."""
        self._remaining[self.removed()] = False
        self._base = self._score = self._former = None
        self.changes += 1

    def sort_by_length(self) -> None:
        """Put the candidate with the shortest wall limit first from now on."""
        if not isinstance(self._order, Sjf):
            self._order = Sjf(self._draft, self.queue, self.columns)
            self.sort_again()

    def sort_by_order(self) -> None:
        """Sort by the queue's own order again, after `sort_by_length`."""
        if self._order is not self._queue_order:
            self._order = self._queue_order
            self.sort_again()

    def refresh(self) -> None:
        """Discard the scores, because a request started and changed the shares."""
        if self._score is not None:
            self._former, self._score = self._score, None

    # ------------------------------------------------------------ choosing

    def best(self, excluded: Mask | None = None, *, anew: bool = True) -> int | None:
        """Return the best unexamined row that is not excluded; None: no such row. ``anew`` False: by the
        scores before the last start, which saves calls of share exits."""
        remaining = self._remaining if excluded is None else self._remaining & ~excluded
        if not np.count_nonzero(remaining):  # `any` takes several times as long for few rows
            return None
        score = self.scores() if anew or self._former is None else self._former
        if excluded is None:
            score[~remaining] = NEVER  # a row needs its score again only after `sort_again`
        else:
            score = np.where(remaining, score, NEVER)
        return self._first((score == score.item(score.argmax())).nonzero()[0])

    def startable(self) -> int | None:
        """Return the best row, not examined yet, that the gate does not refuse; None: no such row."""
        return self.best(self._gate.mask(self.queue.name, self.columns))

    def any_startable(self) -> bool:
        """True if the gate lets some row start that was not examined. No score is computed."""
        refused = self._gate.mask(self.queue.name, self.columns)
        return bool(np.count_nonzero(self._remaining if refused is None else self._remaining & ~refused))

    def oldest(self, excluded: Mask | None = None) -> int | None:
        """Return the unexamined row, not excluded, with the earliest date; None: no row. Needs no score."""
        remaining = self._remaining if excluded is None else self._remaining & ~excluded
        if not np.count_nonzero(remaining):
            return None
        dates = np.where(remaining, self._dates, LAST)
        return self._first((dates == dates.item(dates.argmin())).nonzero()[0])

    def _first(self, rows: Ints) -> int:
        """Return the first of these rows by date, turn and sequence number."""
        for key in (self._dates, self._turn, self.columns.seq):
            if len(rows) > 1:
                values = key[rows]
                rows = rows[values == values.item(values.argmin())]
        return rows.item()

    def in_order(self, rows: Sequence[int] | None = None, most: int | None = None) -> list[int]:
        """Return those of these rows (None: all) that were not examined, best first. ``most``: return at
        least that many of the first; the rest may be left out."""
        if rows is not None and not len(rows):
            return []
        score = self.scores()
        if rows is not None:
            those = np.array(sorted(rows), dtype=np.int64)
        else:
            guess = None if most is None else _guess(np.where(self._remaining, score, NEVER), most)
            those = (self._remaining if guess is None else self._remaining & (score >= guess)).nonzero()[0]
            if guess is not None and len(those) < (most or 0):
                those = self._remaining.nonzero()[0]
        those = those[self._remaining[those]]
        keys = [self.columns.seq[those], self._turn[those], self._dates[those], -score[those]]
        found: list[int] = those[np.lexsort(keys)].tolist()
        return found

    def in_turn(self, most: int) -> Iterator[int]:
        """Yield rows that were not examined, each the best at that moment; ``most``: as in `in_order`."""
        rows: list[int] = []
        version: object = None
        while True:
            if version != (now := (self._draft.proposals, self.changes)):
                version, first = now, self.best()  # mostly it starts, and the order is another one then
                rows = [] if first is None else [first]
            elif not rows:
                rows = self.in_order(most=most)[::-1]
            while rows and not self._remaining.item(rows[-1]):
                rows.pop()
            if rows:
                yield rows.pop()
            elif self.best() is None:
                return

    def urgent(self) -> list[tuple[int, int]]:
        """Return rank and row of each request that an operator scheduled *now* or *next*, in order."""
        if self.columns.most("rank") < NEXT:
            return []
        rows = self.in_order((self.columns.rank >= NEXT).nonzero()[0].tolist())
        return [(int(self.columns.rank[row]), row) for row in rows]

    def any_within(self, pes: int) -> bool:
        """True if a row that was not examined asks for at most so many PEs."""
        return bool(pes) and bool((self._remaining & (self.columns.pes <= pes)).any())

    def removed(self) -> list[int]:
        """Return the rows that no longer wait, because this pass starts, holds or moves them."""
        return self._draft.removed(self.queue.name)

    def is_remaining(self, row: int) -> bool:
        """True if a row was not examined."""
        return self._remaining.item(row)

    def remaining_of(self, rows: Iterable[int]) -> list[int]:
        """Return those of these rows that were not examined."""
        remaining = self._remaining
        return [row for row in rows if remaining[row]]

    def waiting(self) -> Mask:
        """Return a mask of the rows that still wait and could start at all, examined or not."""
        remaining = np.ones(len(self.columns), dtype=bool) if self._missing is None else ~self._missing
        remaining[self.removed()] = False
        return remaining

    @property
    def ahead(self) -> int:
        """Number of examined rows that still wait."""
        return self.examined - sum(each.request.queue == self.queue.name for each in self._draft.chosen)


def _guess(score: Floats, most: int) -> float | None:
    """Return an estimated score that somewhat more than ``most`` rows reach; None: there are too few rows."""
    sample = score[::_SAMPLE]
    rank = 2 * most // _SAMPLE + _SAMPLE
    if rank >= len(sample):
        return None
    return max(float(np.partition(sample, len(sample) - rank)[len(sample) - rank]), -1.0)
