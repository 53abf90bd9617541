"""The line of one queue: its waiting requests by priority, without sorting them and without walking them.

Scores are computed over whole columns; the best row is an argmax, the best thousand a partition. A row that
was taken scores minus infinity.
"""

from collections.abc import Sequence

import numpy as np

from nqspy.core import resource_health
from nqspy.core.cached import cached_property
from nqspy.core.draft import Draft
from nqspy.core.gate.rule import Mask, any_of
from nqspy.core.queueing import firsts
from nqspy.core.queueing.factors import BLOCK, FactorTerms, blocks
from nqspy.core.queueing.firsts import NEVER
from nqspy.core.queueing.limits import RunningCounts
from nqspy.core.queueing.own import behind_their_own
from nqspy.core.queueing.share import Shares
from nqspy.core.runtime import planned_walls
from nqspy.model.columns import Floats, Ints, turn_of
from nqspy.model.queues import Queue, Weights
from nqspy.model.requests import Request

FIRST, NOW = 2, 3
"""Ranks of ``schedule request``: ahead of everything; at once in spite of limits. 1 is *next*, 0 *system*."""

_TAKEN = np.array(NEVER)
"""The same to compare columns with: half as dear as with a number."""
_NONE = Weights(0, 0, 0, 0)
_ENDLESS = float(1 << 42)
"""A wall time (ms) above all that are asked for."""


class CandidateOrder:
    """Candidates of one queue in their order: rank, priority, earlier date in queue, lower sequence number.

    Requests of more PEs than the queue's domain has, and those whose own needs are broken, are no candidates.
    ``looked``: how many were taken so far. After each start of the pass `refresh` it.
    """

    # What is made when it is first asked for would make all else dear that stands beside it in one table.
    __slots__ = (
        "__dict__", "_batch", "_draft", "_former", "_kept", "_picked", "_score",
        "_shortest", "_sought", "_stale", "_startable", "_tally", "_term", "_thinned", "_turns", "_widest",
        "columns", "looked", "queue", "weights",
    )  # fmt: skip

    def __init__(self, draft: Draft, queue: Queue, tally: RunningCounts) -> None:
        self._draft, self.queue, self._tally = draft, queue, tally
        self.columns = draft.site.waiting[queue.name]
        self.weights = draft.site.settings.weights(queue.name)
        self.looked = 0
        self._widest = self.columns.most("pes")
        self._stale = True
        self._kept: Mask | None = None
        self._score: Floats | None = None
        self._term: Floats | None = None
        self._former: Floats | None = None
        self._batch: list[int] = []
        self._startable: int | None = None
        self._turns: Ints | None = None
        self._picked = self._sought = self._thinned = self._shortest = False

    @cached_property
    def terms(self) -> FactorTerms:
        """The factors that columns give."""
        return FactorTerms(self.queue, self.columns, self._draft.redated(self.queue.name), self._draft.now)

    @cached_property
    def shares(self) -> Shares | None:
        """Share factors; None where the queue gives share no weight."""
        shares = self.weights.share and self.queue.order == "priority"
        return Shares(self._draft, self.queue.name, self.columns) if shares else None

    @cached_property
    def _base(self) -> Floats:
        return self._in_turn()

    def _in_turn(self) -> Floats:
        base = self._by_order(None, self._dates)
        if self.columns.most("rank"):
            base += self.columns.rank * self._step
        gone = self._draft.gone(self.queue.name)
        if gone:
            base[gone] = NEVER
        if self._widest > (size := self._draft.site.size(self.queue.name)):
            base[self.columns.pes > size] = NEVER
        needing = resource_health.blocked_mask(self._draft.site, self.columns)
        if needing is not None:
            base[needing] = NEVER
        if self.columns.prioritised:
            behind_their_own(base, self.columns, self._dates, self._turn)
        return base

    def _by_order(self, rows: Ints | None, dates: Ints) -> Floats:
        """What the queue's ``order`` makes of these rows (None: of all); equal ones go by their dates."""
        if self._shortest or self.queue.order == "sjf":
            return self._brevity(rows)
        if self.queue.order == "fcfs" or self.weights == _NONE:
            # As numbers: who is put back behind one (`own`) is not behind those who came later.
            return self.terms.time(dates)  # type: ignore[no-any-return]
        return self.terms.weighted(self.weights, dates, slice(None) if rows is None else rows)

    def _brevity(self, rows: Ints | None = None) -> Floats:
        """Less, the longer these rows may run."""
        asked = self.columns.wall if rows is None else self.columns.wall[rows]
        walls = planned_walls(self._draft.site.settings, self.queue.name, asked)
        return -np.minimum(walls, _ENDLESS) / _ENDLESS

    def put_shortest_first(self) -> None:
        """From now on who may run shortest comes first; what was taken stays so."""
        gone = self._base == _TAKEN
        self._shortest, self.shares = True, None
        self._base = self._in_turn()
        self._base[gone] = NEVER
        self.refresh()

    def look_again(self, rows: Sequence[int]) -> None:
        """These rows, which were taken, are in the line again; it goes by the queue's own order again."""
        gone = self._base == _TAKEN
        gone[list(rows)] = False
        self.looked -= len(rows)
        self._shortest = False
        self.__dict__.pop("shares", None)
        self._base = self._in_turn()
        self._base[gone] = NEVER
        self.refresh()

    @property
    def is_by_length(self) -> bool:
        """Whether who may run shortest comes first by now."""
        return self._shortest

    @property
    def _most(self) -> float:
        """More than any priority."""
        weights = self.weights
        return float(weights.share + weights.cpu + weights.memory + weights.time + 1)

    @property
    def _step(self) -> float:
        """What a rank counts: more than whoever comes last lacks."""
        return 2 * self._most

    @property
    def _dates(self) -> Ints:
        return self._draft.dates(self.queue.name)

    @property
    def _turn(self) -> Ints:
        found: Ints = self.columns.turn if self._turns is None else self._turns
        return found

    @property
    def ahead(self) -> int:
        """How many of those taken still wait."""
        return self.looked - sum(each.request.queue == self.queue.name for each in self._draft.chosen)

    # ------------------------------------------------------------ changes

    def refresh(self) -> None:
        """Another round begins: shares and limits are looked at again."""
        self._former = self._former if self._term is None else self._term
        self._score = self._term = None
        self._stale, self._picked, self._sought = True, False, False
        self._batch.clear()
        self._thinned = False

    def take(self, row: int) -> None:
        """Takes a row out of the line: it was looked at."""
        self.looked += 1
        base, score = self._base, self._score
        base[row] = NEVER
        if row == self._startable:
            self._sought = False
        if score is not None and score is not base:
            score[row] = NEVER

    def pass_over(self, rows: Mask) -> None:
        """Takes all these rows out of the line at once."""
        self._thinned = True
        base, score = self._base, self._score
        places = rows.nonzero()[0]
        places = places[base[places] != _TAKEN]
        if not len(places):  # it reached nobody but whom it was said of
            return
        self.looked += len(places)
        base[places] = NEVER
        if self._startable is not None and base.item(self._startable) == NEVER:
            self._sought = False
        if score is not None and score is not base:
            score[places] = NEVER

    def put_back(self, row: int) -> None:
        """One index of an array was taken, and the next one is in the line."""
        if self._turns is None:
            self._turns = self.columns.turn.copy()
        self._turns[row] = turn_of(self._draft.what_starts(self.columns.request(row)))
        self._place(np.array([row], dtype=np.int64))

    def changed(self, requests: Sequence[Request]) -> None:
        """Takes over what the draft changed about these waiting requests: re-dated, held or moved."""
        rows = np.array([request.slot for request in requests], dtype=np.int64)
        self._place(rows[self._base[rows] != _TAKEN])

    def _place(self, rows: Ints) -> None:
        dates = np.minimum(self._dates[rows], self._draft.now)
        self._base[rows] = self._by_order(rows, dates) + self.columns.rank[rows] * self._step
        self._base[self._draft.gone(self.queue.name)] = NEVER
        behind_their_own(self._base, self.columns, self._dates, self._turn)
        self.refresh()

    # ------------------------------------------------------------ scores

    def kept(self) -> Mask | None:
        """Rows that limits (other than run limits) or the machine's size keep back now; None if no row
        is."""
        if self._stale:
            delaying = self._tally.reservations.mask(self.queue.name, self.columns)
            self._kept = any_of([self._tally.mask(self.queue, self.columns), delaying])
            self._stale = False
        return self._kept

    def share_factor(self) -> Floats | None:
        """Share factors by pair number in this round; None where the queue gives share no weight."""
        shares, gone = self.shares, self._draft.gone(self.queue.name)
        return None if shares is None else shares.by_pair(self.kept(), gone)

    def _share_term(self) -> Floats | None:
        """What share adds to the priorities of each pair's rows, in this round."""
        if self._term is None and (table := self.share_factor()) is not None:
            table *= self.weights.share
            if self.shares is not None and len(last := self.shares.last):
                table[last] -= self._most
            self._term = table
        return self._term

    def score(self) -> Floats:
        """Priority of every row in this round, ranks before priority; minus infinity once taken."""
        if self._score is None:
            table = self._share_term()
            if table is None:
                self._score = self._base
            else:
                self._score = table.take(self.columns.pair)
                self._score += self._base
        return self._score

    # ------------------------------------------------------------ choosing

    def best(self, pes: int | None = None) -> int | None:
        """The best row that limits do not keep back and that asks for at most ``pes`` PEs; None if there is
        none."""
        out = kept = self.kept()
        if pes is not None and pes < self._widest:
            wide = self.columns.pes > pes
            out = wide if kept is None else kept | wide
        return None if out is not None and bool(out.all()) else self._top(out)

    def foremost(self, *, everybody: bool = False) -> int | None:
        """As `best` (for ``everybody`` as `first_left`) says, by the shares as they were before the last
        start: for the reason of those who wait they need not be reckoned once more."""
        if self._former is None or self._term is not None or self._score is not None:
            return self.first_left() if everybody else self.best()
        base = self._base
        is_empty = base.item(base.argmax()) == NEVER
        return None if is_empty else self._pick(None if everybody else self.kept(), base, self._former)

    def head(self, *, everybody: bool) -> int | None:
        """The best row that was not taken; those left out that limits of their own people keep back, unless
        ``everybody`` counts."""
        return self._top(None if everybody else self._tally.mask(self.queue, self.columns, own=True))

    def set_aside(self, rows: Sequence[int]) -> None:
        """These rows were looked at in an earlier pass, and are not again."""
        if rows:
            mask = np.zeros(len(self.columns), dtype=bool)
            mask[list(rows)] = True
            self.pass_over(mask)

    def startable(self, pes: int) -> int | None:
        """Some row that neither limits nor a want of PEs keep back, the same until it is taken or something
        starts; None if there is none."""
        if not self._sought:
            self._startable, self._sought = self.some(pes), True
        return self._startable

    @property
    def is_open(self) -> bool:
        """Whether what `startable` said last is some row, and holds still."""
        return self._sought and self._startable is not None

    def some(self, pes: int | None = None) -> int | None:
        """Any row that `best` chooses from, whichever; None if there is none. Cheap: nothing is compared."""
        left = self._base != _TAKEN
        if (kept := self.kept()) is not None:
            left &= ~kept
        if pes is not None and pes < self._widest:
            left &= self.columns.pes <= pes
        row = int(left.argmax())
        return row if left.item(row) else None

    def oldest_if_all_kept(self) -> int | None:
        """The first row by date where limits keep back every row; None where they do not. Cheap: no priority
        is computed."""
        kept = self.kept()
        return self.oldest(kept) if kept is not None and bool(kept.all()) else None

    def oldest(self, rows: Mask | None = None) -> int | None:
        """The first by date of these rows (None: of those that were not taken); None if there is none."""
        places = (self._base != _TAKEN if rows is None else rows).nonzero()[0]
        return self._first_in_line(places) if len(places) else None

    def first_left(self) -> int | None:
        """The best row that was not taken, whatever keeps it back; None when all were."""
        return self._top(None)

    def next_offer(self, most: int) -> int | None:
        """The best row that was not taken, kept back by limits or not; ``most`` bounds how many more may be
        asked for."""
        if not self._picked:
            self._picked = True
            return self.first_left()
        while True:
            if not self._batch:
                self._batch = self.in_order(most)[::-1]
            if not self._batch:
                return None
            row = self._batch.pop()
            if not self._thinned or self.is_left(row):
                return row

    def is_left(self, row: int) -> bool:
        """Whether it was not taken."""
        return self._base.item(row) != NEVER

    def in_order(self, most: int) -> list[int]:
        """The best ``most`` rows that were not taken, in order."""
        score = self.score()
        guess = firsts.guess(score, most)
        rows = None if guess is None else (score >= guess).nonzero()[0]
        if rows is None or len(rows) < most:
            rows = (score != _TAKEN).nonzero()[0]
        keys = [self.columns.seq[rows], self._turn[rows], self._dates[rows], -score[rows]]
        if len(rows) > most:
            places = firsts.first(np.arange(len(rows)), keys[::-1], most)
            rows, keys = rows[places], [key[places] for key in keys]
        found: list[int] = rows[np.lexsort(keys)].tolist()
        return found

    def any_within(self, pes: int) -> bool:
        """Whether some row that was not taken asks for at most ``pes`` PEs."""
        left = self._base != _TAKEN
        return bool(left.any() if pes >= self._widest else (left & (self.columns.pes <= pes)).any())

    def _top(self, out: Mask | None) -> int | None:
        """The best row that was not taken and is not ``out``. Once in a round, so no score is kept of it."""
        table = self._share_term() if self._score is None else None
        return self._pick(out, self._base if self._score is None else self._score, table)

    def _pick(self, out: Mask | None, base: Floats, table: Floats | None) -> int | None:
        """The same by these scores, and what each pair of owner and group adds."""
        pair = self.columns.pair
        if 0 < len(base) <= BLOCK:
            top, tied = firsts.foremost(out, base, table, pair)
            return None if top == NEVER else self._first_in_line(tied)
        best, ties = NEVER, list[Ints]()
        for rows in blocks(len(base)):
            top, tied = firsts.foremost(None if out is None else out[rows], base[rows], table, pair[rows])
            if top >= best and top != NEVER:
                tied = tied + rows.start
                ties, best = [*ties, tied] if top == best else [tied], top
        return self._first_in_line(np.concatenate(ties)) if ties else None

    def _first_in_line(self, rows: Ints) -> int:
        """Of rows, of which none is before the others by priority, the first by date."""
        if len(rows) > 1:
            rows = firsts.least(rows, self._dates)
        if len(rows) > 1:
            rows = firsts.least(rows, self._turn)
        if len(rows) > 1:
            rows = firsts.least(rows, self.columns.seq)
        return rows.item()
