"""Factors and place in the order of every queued request of a queue, as `qstat` shows them."""

from collections.abc import Collection, Mapping

import numpy as np
from msgspec import Struct

from nqspy.core import views
from nqspy.core.draft import Draft
from nqspy.core.gate.gate import NOW, Gate, Which
from nqspy.core.order.candidates import NEXT, Candidates
from nqspy.core.order.factors import FactorTerms
from nqspy.core.order.shares import Shares
from nqspy.core.startable import gate_of
from nqspy.core.timeline.timeline import time_of, turn_of
from nqspy.model.columns import Floats, Ints
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Request, Used
from nqspy.model.site import Site
from nqspy.ports import Exits

SIMULATED = 1_000
"""Number of places found by simulating starts; all others go by the scores as they are now."""

EXIT_CALLS = 5_000
"""Most calls of the shrpri exit for one queue; after them its values stay as they are."""

REDATED = 20_000
"""Most re-datings that are simulated for one queue; all further places go by the scores as they are."""


class Place(Struct, frozen=True):
    """Factors of one request in [0,1], their weighted sum, and its place in the order from 1 upward."""

    total: float
    share: float
    cpu: float
    memory: float
    time: float
    position: int


class QueueOrder(Struct, frozen=True):
    """Factors and places of a queue (`standing`) at time ``at``. Row i of an array is the queue's row i."""

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
        """Return the factors and the place of a request. Raises KeyError if it is not queued here."""
        row = request.slot
        if not 0 <= row < len(self.seq) or self.seq[row] != request.seq:
            raise KeyError(request.seq)
        share, cpu, memory, time = (float(a[row]) for a in (self.share, self.cpu, self.memory, self.time))
        return Place(float(self.total[row]), share, cpu, memory, time, int(self.position[row]))

    def line(self) -> list[Seq]:
        """Return the sequence numbers of the queued requests, in order."""
        seqs: list[Seq] = self.seq[np.argsort(self.position)].tolist()
        return seqs


def standing(
    site: Site,
    queue: str,
    now: Instant,
    exits: Exits,
    samples: Mapping[Seq, Used] | None = None,
    refused: Collection[Seq] = (),
    simulate: int = SIMULATED,
) -> QueueOrder:
    """Return factors and places of every queued request of a queue, stopped or not. Raises KeyError for an
    unknown queue.

    A place is the order in which one pass would start the requests if PEs were plenty. Each start debits its
    group and counts for user, group, memory and PE limits, but not for run limits, which hold all alike.
    Requests that limits hold come after the others, in plain order; so do all after the first ``simulate``.
    In a queue with ``backfill=none`` those with a reservation come first, and only limits of owners let
    others pass. ``refused``: requests that an exit refused last; they are placed without debit.
    """
    node = site.settings.queues[queue]
    columns = site.waiting.get(queue)
    if columns is None or not len(columns):
        none, whole = np.zeros(0), np.zeros(0, dtype=np.int64)
        return QueueOrder(now, whole, none, none, none, none, none, whole)
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
    plain = line.in_order()
    first = _Run(draft, line, gate, frozenset(refused)).rows(plain, simulate)
    placed = set(first)
    order = first + [row for row in plain if row not in placed]
    position = np.zeros(len(columns), dtype=np.int64)
    position[order] = np.arange(1, len(order) + 1)
    never = np.flatnonzero(position == 0)
    position[never] = np.arange(len(order) + 1, len(position) + 1)
    return QueueOrder(now, seq, total, share, cpu, memory, time, position)


class _Run:
    """Simulated pass over one queue with plenty of PEs and without jobselect, for `standing`."""

    def __init__(self, draft: Draft, line: Candidates, gate: Gate, refused: Collection[Seq]) -> None:
        self._draft, self._line, self._gate, self._refused = draft, line, gate, refused
        self._electing = draft.exits.has("elected")
        pairs = line.shares.pairs if line.shares is not None and draft.exits.has("shrpri") else 0
        self._rounds = EXIT_CALLS // pairs if pairs else None
        self._redated = 0

    def rows(self, plain: list[int], most: int) -> list[int]:
        """Return rows in the order of simulated starts, at most ``most``, without those that limits hold;
        ``plain``: all rows, by their scores now."""
        line, gate, columns = self._line, self._gate, self._line.columns
        rank, is_strict = columns.rank, line.queue.backfill == "none"
        started = [row for row in plain[: int((rank >= NOW).sum())] if rank[row] >= NOW]
        if is_strict:  # then come those scheduled *next*, then those with a reservation, the earliest first
            rows = filter(line.is_remaining, gate.reserved.rows(line.queue.name))
            reserved = [request for row in rows if (request := columns.request(row)).rank < NEXT]
            reserved.sort(key=lambda each: (time_of(each), turn_of(each)))
            started += [row for row in plain if rank[row] == NEXT] + [each.slot for each in reserved]
        for row in started:
            self._start(row)
        if line.shares is None and not self._electing and not is_strict:
            for row in plain[len(started) : most]:
                if gate.limit(columns.request(row)) is None:
                    started.append(row)
                    self._start(row)
            return started
        while len(started) < most and self._redated < REDATED:
            which = Which.OWNER if is_strict else Which.LIMITS
            best = line.best(gate.mask(line.queue.name, columns, which))
            if best is None:
                break
            started.append(best)
            self._start(best)
        return started

    def _start(self, row: int) -> None:
        line, draft = self._line, self._draft
        request = line.columns.request(row)
        line.examine(row)
        if request.seq in self._refused:
            return
        choice = draft.choose(request)
        self._gate.count(request)
        line.refresh()
        if self._electing:
            changed = views.elected(draft, choice, request)
            if any(each.queue == line.queue.name for each in changed):
                line.sort_again()
            self._redated += len(changed)
        if line.shares is not None:
            line.shares.frozen = self._rounds is not None and len(draft.chosen) >= self._rounds
