"""Order: the factors of every queued request of a queue, and its place in the line (for qstat)."""

from collections.abc import Collection, Mapping

import numpy as np
from msgspec import Struct

from nqspy.core import sight
from nqspy.core.draft import Draft
from nqspy.core.gate.gate import NOW, Gate, Which
from nqspy.core.order.candidates import Candidates
from nqspy.core.order.factors import FactorTerms
from nqspy.core.order.shares import Shares
from nqspy.core.startable import gate_of
from nqspy.model.columns import Floats, Ints
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Request, Used
from nqspy.model.site import Site
from nqspy.ports import Exits

SIMULATED = 1_000
"""Places in a line that are found by simulating starts; all after them stand in plain order."""

EXIT_CALLS = 5_000
"""Calls of the shrpri exit for one line; after them its values stay as they are."""


REDATED = 20_000
"""Re-datings that are foreseen for one line; all places after them are in plain order."""


class Place(Struct, frozen=True):
    """One request's factors in [0,1], their weighted sum, and its place in the line from 1 upward."""

    total: float
    share: float
    cpu: float
    memory: float
    time: float
    position: int


class QueueOrder(Struct, frozen=True):
    """The same for a whole queue at the instant ``at``: row i of each array is row i of the queue's
    columns."""

    at: Instant
    seq: Ints
    total: Floats
    share: Floats
    cpu: Floats
    memory: Floats
    time: Floats
    position: Ints

    def __len__(self) -> int:
        return len(self.seq)

    def of(self, request: Request) -> Place:
        """One queued request's. Raises KeyError when it is not in this queue's line."""
        row = request.slot
        if not 0 <= row < len(self.seq) or self.seq[row] != request.seq:
            raise KeyError(request.seq)
        share, cpu, memory, time = (float(a[row]) for a in (self.share, self.cpu, self.memory, self.time))
        return Place(float(self.total[row]), share, cpu, memory, time, int(self.position[row]))

    def line(self) -> list[Seq]:
        """Sequence numbers in the order of the line."""
        found: list[Seq] = self.seq[np.argsort(self.position)].tolist()
        return found


def standing(
    site: Site,
    queue: str,
    now: Instant,
    exits: Exits,
    samples: Mapping[Seq, Used] | None = None,
    refused: Collection[Seq] = (),
    simulate: int = SIMULATED,
) -> QueueOrder:
    """Factors and places of every queued request of a queue, stopped or not. Raises KeyError for an unknown
    queue.

    A place is the order in which one pass would start them if PEs were plenty: each start debits its group
    and counts against user, group, memory and PE limits (run limits keep back all alike and are left out).
    ``refused``: requests that an exit refused last, placed without debit. Those that limits hold
    come after the others, in plain order; so do all after the first ``simulate``.
    """
    node = site.settings.queues[queue]
    columns = site.waiting.get(queue)
    if columns is None or not len(columns):
        return _empty(now)
    exits.begin(site)
    draft = Draft(site, now, exits, samples or {})
    gate = gate_of(draft, run_limits=False)
    line = Candidates(draft, node, gate)
    held = gate.mask(queue, columns, Which.LIMITS)
    share = (line.shares or Shares(draft, queue, columns)).by_pair(held, ())[columns.pair]
    terms, weights = FactorTerms(node, columns, None, now), site.settings.weights(queue)
    time, cpu, memory = terms.time(columns.date), terms.cpu(), terms.memory()
    total = weights.share * share + weights.cpu * cpu + weights.memory * memory + weights.time * time
    seq = columns.seq.copy()
    position = _positions(line, _Run(draft, line, gate, frozenset(refused)), simulate)
    return QueueOrder(now, seq, total, share, cpu, memory, time, position)


def _empty(now: Instant) -> QueueOrder:
    none, whole = np.zeros(0), np.zeros(0, dtype=np.int64)
    return QueueOrder(now, whole, none, none, none, none, none, whole)


def _positions(line: Candidates, run: "_Run", simulate: int) -> Ints:
    plain = line.in_order()
    first = run.rows(plain, simulate)
    placed = set(first)
    order = first + [row for row in plain if row not in placed]
    position = np.zeros(len(line.columns), dtype=np.int64)
    position[order] = np.arange(1, len(order) + 1)
    never = np.flatnonzero(position == 0)
    position[never] = np.arange(len(order) + 1, len(position) + 1)
    return position


class _Run:
    """A pass over one line with plenty of PEs and without jobselect."""

    def __init__(self, draft: Draft, line: Candidates, gate: Gate, refused: Collection[Seq]) -> None:
        self._draft, self._line, self._gate, self._refused = draft, line, gate, refused
        self._electing = draft.exits.has("elected")
        pairs = line.shares.pairs if line.shares is not None and draft.exits.has("shrpri") else 0
        self._rounds = EXIT_CALLS // pairs if pairs else None
        self._redated = 0

    def rows(self, plain: list[int], most: int) -> list[int]:
        """Rows in the order of their starts, at most so many; those that limits keep back are left out."""
        rank = self._line.columns.rank
        found = [row for row in plain[: int((rank == NOW).sum())] if rank[row] == NOW]
        at_once = len(found)
        for row in found:
            self._start(row)
        if self._line.shares is None and not self._electing:
            return found + self._in_plain_order(plain[at_once:most])
        while len(found) < most and self._redated < REDATED and (best := self._best()) is not None:
            found.append(best)
            self._start(best)
        return found

    def _best(self) -> int | None:
        columns = self._line.columns
        return self._line.best(self._gate.mask(self._line.queue.name, columns, Which.LIMITS))

    def _in_plain_order(self, rows: list[int]) -> list[int]:
        found = []
        for row in rows:
            if self._gate.limit(self._line.columns.request(row)) is None:
                found.append(row)
                self._start(row)
        return found

    def _start(self, row: int) -> None:
        line, draft = self._line, self._draft
        request = line.columns.request(row)
        line.take(row)
        if request.seq in self._refused:
            return
        choice = draft.choose(request)
        self._gate.count(request)
        line.refresh()
        if self._electing:
            changed = draft.follow(choice, draft.exits.elected(sight.seen(request, draft), draft.view))
            if any(each.queue == line.queue.name for each in changed):
                line.sort_again()
            self._redated += len(changed)
        if line.shares is not None:
            line.shares.frozen = self._rounds is not None and len(draft.chosen) >= self._rounds
