"""Reserve: the first candidates that wait for room have a start reserved (``limit reserve=N``: EASY with 1,
conservative backfilling with ``all``; seed 001). Others start past them as far as they delay none.

Block: the first candidate that waits for room lets no other of its queue pass (``backfill=none``).
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from nqspy.core.fallback.policy import Skip
from nqspy.core.gate.gate import Gate, Which
from nqspy.core.order.candidates import Candidates
from nqspy.core.timeline.profile import FOREVER
from nqspy.core.timeline.timeline import time_of, turn_of
from nqspy.model.ids import Seq
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reason
from nqspy.model.requests import Request

MOST = 2_000
"""Reservations of one queue at most: each is put on the timeline anew whenever something becomes free."""


class ReserveStarts(Skip):
    """Policy that reserves starts for ``reserve`` candidates of the queue (None: for all that wait). With 0
    it changes only the order behind the first candidate that waits for room (``backfill_order=shortest``)."""

    words: ClassVar[Mapping[str, str]] = {
        "limit": "by its wall limit it delays no reserved start",
        "probable": "it probably delays none",
        "contract": "or it has a contract and is ended before that",
    }

    def __init__(self, queue: Queue, gate: Gate) -> None:
        super().__init__(queue, gate)
        self._depth = queue.reserve
        self._by_length = queue.backfill_order == "shortest"
        self._met = False
        self._unreserved: dict[Seq, Request] = {}

    def next_rows(self, candidates: Candidates) -> Iterator[int]:
        """Yield the candidates with a reservation, then those that get one, then those that pass them."""
        yield from self._reserved(candidates)
        while self._serves_in_order() and (row := self.in_front(candidates)) is not None:
            yield row
        yield from self.gate.reserved.for_now(self.queue.name)
        self._sort_those_behind(candidates)
        yield from super().next_rows(candidates)

    def blocked(self, candidates: Candidates, candidate: Request, reason: Reason) -> None:
        """Reserve a start for a candidate that waits for room, as long as one more may have one."""
        waits = self.gate.waits_for_room(candidate, reason)
        one_more = (self._depth is None or waits) and self.reserves_more()
        if self.gate.is_reserved(candidate) or one_more:
            self.gate.reserve(candidate)
        elif waits:
            self._unreserved[candidate.seq] = candidate
        self._met = self._met or waits
        self._sort_those_behind(candidates)

    def again(self, candidates: Candidates) -> Iterator[int]:
        """Yield the rows that wait for room and got no reservation because the queue had as many as
        ``reserve=`` allows, each once the queue has fewer."""
        while self._unreserved and self.reserves_more():
            request = self._unreserved.pop(next(iter(self._unreserved)))
            if request.slot not in candidates.removed():
                yield candidates.row_of(request)

    def reserves_more(self) -> bool:
        """Return True if fewer candidates of the queue have a reservation than ``reserve=`` allows."""
        most = MOST if self._depth is None else min(self._depth, MOST)
        return self._depth != 0 and self.gate.reserved.count(self.queue.name) < most

    def in_front(self, candidates: Candidates) -> int | None:
        """Return the first row that this pass has not examined yet, as the next for a start or a reservation;
        None: no row. Rows held by limits of users, groups or arrays are left out, except for
        ``reserve=all``."""
        if self._depth is None:
            return candidates.best()
        return candidates.best(self.gate.mask(self.queue.name, candidates.columns, Which.OWNER))

    def _serves_in_order(self) -> bool:
        if self._depth is not None and self.closed:
            return False
        return self.reserves_more() or (self._depth == 0 and self._by_length and not self._met)

    def _sort_those_behind(self, candidates: Candidates) -> None:
        if self._by_length and not self._serves_in_order():
            candidates.sort_by_length()

    def _reserved(self, candidates: Candidates) -> Iterator[int]:
        """Yield rows with a reservation, each once: all if something became free, else those due by now."""
        reserved, columns = self.gate.reserved, candidates.columns
        examined = candidates.remaining_of(reserved.unused_rows(self.queue.name))
        if not self._examines_all():
            due = {request.slot for request in reserved.due(self.queue.name)}
            candidates.skip([row for row in examined if row not in due])
            examined = [row for row in examined if row in due]
        untimed = [r for row in examined if time_of(r := columns.request(row)) == FOREVER]
        yield from self._by_turn(candidates, examined)
        if any(map(reserved.has_begun, untimed)):  # those behind waited for these
            yield from [r.slot for r in sorted(untimed, key=turn_of) if not reserved.has_begun(r)]

    def _examines_all(self) -> bool:
        return self.gate.reserved.is_moving

    def _by_turn(self, candidates: Candidates, rows: list[int]) -> list[int]:
        return candidates.in_order(rows)


class Block(ReserveStarts):
    """Policy of ``backfill=none``: after the first candidate that waits for room, only reserved ones
    start."""

    words: ClassVar[Mapping[str, str]] = {"none": "no request"}

    def next_rows(self, candidates: Candidates) -> Iterator[int]:
        """Yield the candidates with a reservation, then others in order until one blocks, then due ones."""
        for row in self._reserved(candidates):
            if self.blocker is None:
                yield row
        while self.blocker is None and self._serves_in_order():
            if (first := self.in_front(candidates)) is None:
                break
            yield first
        yield from self.past_blocker(candidates)

    def past_blocker(self, candidates: Candidates) -> Iterator[int]:
        """Yield rows with a due reservation; also those without a time, once something became free."""
        if self.blocker is None:
            return
        reserved, columns = self.gate.reserved, candidates.columns
        rows = {request.slot for request in reserved.due(self.queue.name)}
        if reserved.is_moving:
            others = reserved.rows(self.queue.name)
            rows |= {row for row in others if time_of(columns.request(row)) == FOREVER}
        yield from self._by_turn(candidates, list(rows))

    def blocked(self, candidates: Candidates, candidate: Request, reason: Reason) -> None:
        """Make a candidate that waits for room the blocker, if there is none yet."""
        super().blocked(candidates, candidate, reason)
        if self.blocker is None and self.blocks(candidate) and self.gate.waits_for_room(candidate, reason):
            self.blocker = candidate

    def blocks(self, candidate: Request) -> bool:
        """True if a candidate may become the blocker; here any may."""
        return True

    def reopen(self, eligible: list[Request]) -> list[Request] | None:
        """Return the candidates to examine again: all ``eligible`` if the blocker blocks no longer, else
        those with a reservation that is due; None: no candidate."""
        blocker, reserved = self.blocker, self.gate.reserved
        if blocker is not None:
            own = self.gate.limit(blocker) is not None and not reserved.is_shared(blocker)
            if not own and blocker not in eligible:
                return list(filter(reserved.is_due, eligible)) or None
            self.blocker = None
        return eligible

    def _serves_in_order(self) -> bool:
        return self._depth is None or not self.closed

    def _examines_all(self) -> bool:
        return True

    def _by_turn(self, candidates: Candidates, rows: list[int]) -> list[int]:
        """Return rows by the times of their reservations, the earliest first."""
        waiting = {row: candidates.columns.request(row) for row in rows}
        order = candidates.in_order(rows)
        return sorted(order, key=lambda row: (time_of(waiting[row]), turn_of(waiting[row])))


POLICIES = (Block, ReserveStarts)
