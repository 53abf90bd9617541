"""Backfilling (time-ahead.md 1; seed 001): who waits in front may have a start promised, and others start
past it as far as they do not delay that.

One feature, not five: ``backfill=none`` is first come, first served; ``limit reserve=0`` first fit, as it is
without; ``limit reserve=1`` EASY; ``limit reserve=all`` conservative.
"""

from collections.abc import Callable

from nqspy.core.gate.reserved import Reservations
from nqspy.core.queueing.candidate_order import CandidateOrder
from nqspy.core.queueing.kept_back import KeptBack
from nqspy.core.timeline.laid_out import time_of, turn_of
from nqspy.core.timeline.profile import FOREVER
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import Request

MOST = 2_000
"""Promised starts of one queue at most: each is laid out over time anew whenever something becomes free."""
Look = Callable[[CandidateOrder, int], None]
_FOR_ROOM = (ReasonCode.NO_PES, ReasonCode.NO_UNITS, ReasonCode.RESERVED)


def is_served_in_order(queue: Queue) -> bool:
    """Whether somebody who waits in it changes who starts of the others: it promises starts, lets nobody
    pass, or those behind in another order."""
    return queue.reserve != 0 or queue.backfill == "none" or queue.backfill_order == "shortest"


class Backfill:
    """Serves queues in order, as far as that is called for."""

    def __init__(self, promised: Reservations, kept: KeptBack) -> None:
        self._promised, self._kept = promised, kept
        self._barred: set[str] = set()
        self._passed: set[str] = set()

    def begin(self, line: CandidateOrder, look: Look) -> None:
        """Those who were promised a start have their turn, then those in front, until as many have a promise
        as may. Who was kept back by one who was told no time, and is promised this very instant now, has it.
        Who is left starts by first fit, past them. ``look``: starts a candidate, or notes why it does not
        start and tells `missed`."""
        self._serve_promised(line, look)
        queue = line.queue
        while self._goes_on(queue) and (row := line.head(everybody=queue.reserve is None)) is not None:
            look(line, row)
        if queue.name not in self._kept.closed:
            for row in self._promised.for_now(queue.name):
                look(line, row)
        self._let_the_shortest_pass(line)

    def _goes_on(self, queue: Queue) -> bool:
        if queue.name in self._kept.closed:
            return False
        return queue.backfill == "none" or self._may_promise(queue) or self._is_seeking(queue)

    def _is_seeking(self, queue: Queue) -> bool:
        """Whether the first that does not fit, whom the shortest pass, has not been met."""
        first_fit = queue.reserve == 0 and queue.backfill_order == "shortest"
        return first_fit and queue.name not in self._passed

    def _let_the_shortest_pass(self, line: CandidateOrder) -> None:
        if line.queue.backfill_order == "shortest" and not line.is_by_length:
            line.put_shortest_first()

    def would_promise(self, queue: Queue, request: Request) -> bool:
        """Whether one has a start promised, or would have if it did not start now."""
        return request.reservation is not None or self.promises_more(queue)

    def promises_more(self, queue: Queue) -> bool:
        """Whether one more who waits in it would have a start promised."""
        return queue.reserve != 0 and self._may_promise(queue)

    def _may_promise(self, queue: Queue) -> bool:
        most = MOST if queue.reserve is None else min(queue.reserve, MOST)
        return self._promised.count(queue.name) < most

    def _serve_promised(self, line: CandidateOrder, look: Look) -> None:
        """In the order of the line; where nobody may pass who waits, in that of their promises. Otherwise, if
        nothing has become free, only those whose time has come are looked at."""
        rows = self._promised.rows(line.queue.name)
        if not rows:
            return
        everybody = self._promised.is_moving or line.queue.backfill == "none"
        due = set(rows) if everybody else self._due(line)
        line.set_aside([row for row in rows if row not in due])
        untimed = [row for row in due if time_of(line.columns.request(row)) == FOREVER]
        for row in self._turns(line, due):
            if line.queue.name not in self._kept.closed:
                look(line, row)
        self._serve_untimed(line, untimed, look)

    def _serve_untimed(self, line: CandidateOrder, rows: list[int], look: Look) -> None:
        """Who was told no time waits for those who were told so before: once some of these have started, the
        others have their turn, in the order in which they were told."""
        waiting = [line.columns.request(row) for row in rows]
        left = [request for request in waiting if not self._promised.has_begun(request)]
        if len(left) < len(waiting):
            for request in sorted(left, key=turn_of):
                if line.queue.name not in self._kept.closed:
                    look(line, request.slot)

    def _turns(self, line: CandidateOrder, rows: set[int]) -> list[int]:
        if len(rows) < 2:
            return [row for row in rows if line.is_left(row)]
        turns = [row for row in line.in_order(len(line.columns)) if row in rows]
        if line.queue.backfill == "none":
            waiting = {row: line.columns.request(row) for row in turns}
            turns.sort(key=lambda row: (time_of(waiting[row]), turn_of(waiting[row])))
        return turns

    def is_barred(self, queue: str) -> bool:
        """Whether one who waits in front lets nobody of it pass."""
        return queue in self._barred

    def unbar(self, queue: str) -> None:
        """It is served again."""
        self._barred.discard(queue)
        self._kept.closed.pop(queue, None)

    def serve_due(self, line: CandidateOrder, look: Look) -> None:
        """In a queue that is barred, those whose promised time has come start all the same: who is in front
        of them by now waits for the room that is kept for them. So do those without a time, once something
        is free."""
        due = self._due(line)
        if self._promised.is_moving:
            rows = self._promised.rows(line.queue.name)
            due |= {row for row in rows if time_of(line.columns.request(row)) == FOREVER}
        for row in self._turns(line, due):
            look(line, row)

    def tell_overdue(self, queue: str) -> None:
        """Of those whose promised time has come nobody looks at one whose queue a limit has closed: that its
        promise is not kept, and why, is told all the same."""
        for request in self._promised.due(queue) if queue in self._kept.closed else ():
            if request.seq not in self._promised.changes and not self._promised.has_begun(request):
                self._promised.reserve(request)

    def _due(self, line: CandidateOrder) -> set[int]:
        return {request.slot for request in self._promised.due(line.queue.name)}

    def missed(self, line: CandidateOrder, request: Request, reason: Reason) -> None:
        """It was looked at and does not start. A start is promised to it where its queue promises some and it
        waits for room; where nobody may pass it, its queue is closed."""
        queue, promised = line.queue, self._promised
        if request.reservation is not None or (queue.reserve != 0 and self._has_turn(queue, request, reason)):
            promised.reserve(request)
        if self._waits_for_room(request, reason):
            self._passed.add(queue.name)
        if queue.backfill_order == "shortest" and not self._goes_on(queue):
            self._let_the_shortest_pass(line)
        if self._is_barring(queue) and self._waits_for_room(request, reason):
            self._barred.add(queue.name)
            self._kept.close(queue, reason, line.ahead, request, barring=True)

    def _is_barring(self, queue: Queue) -> bool:
        return queue.backfill == "none" and queue.name not in self._kept.closed

    def _has_turn(self, queue: Queue, request: Request, reason: Reason) -> bool:
        waits = queue.reserve is None or self._waits_for_room(request, reason)
        return waits and self._may_promise(queue)

    def _waits_for_room(self, request: Request, reason: Reason) -> bool:
        """Whether what keeps it back is what all share, and no limit of its own people."""
        waits = reason.code in _FOR_ROOM or self._promised.is_shared(request)
        return waits and not self._promised.is_too_much(request)
