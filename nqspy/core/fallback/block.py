"""Block: the first candidate that waits for room lets no other of its queue pass (``backfill=none``)."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from nqspy.core.fallback.reserve import ReserveStarts
from nqspy.core.order.candidates import Candidates
from nqspy.core.timeline.layout import time_of, turn_of
from nqspy.core.timeline.profile import FOREVER
from nqspy.model.reasons import Reason
from nqspy.model.requests import Request


class Block(ReserveStarts):
    """Serve in order until a candidate waits for room. Candidates behind it start only at the time that was
    reserved for them."""

    words: ClassVar[Mapping[str, str]] = {"none": "no request"}

    def next_rows(self, candidates: Candidates) -> Iterator[int]:
        """Yield the candidates with a reservation, then the foremost until there is a blocker, then the
        candidates with a reservation that is due."""
        for row in self._reserved(candidates):
            if self.blocker is None:
                yield row
        while self.blocker is None and self._serves_in_order():
            if (first := self.in_front(candidates)) is None:
                break
            yield first
        yield from self.past_blocker(candidates)

    def past_blocker(self, candidates: Candidates) -> Iterator[int]:
        """Yield the rows with a reservation that is due; also rows without a time, once something became
        free."""
        if self.blocker is None:
            return
        reserved, columns = self.gate.reserved, candidates.columns
        rows = {request.slot for request in reserved.due(self.queue.name)}
        if reserved.is_moving:
            others = reserved.rows(self.queue.name)
            rows |= {row for row in others if time_of(columns.request(row)) == FOREVER}
        yield from self._by_turn(candidates, list(rows))

    def blocked(self, candidates: Candidates, candidate: Request, reason: Reason) -> None:
        """Make the first candidate that waits for room the blocker."""
        super().blocked(candidates, candidate, reason)
        if self.blocker is None and self.gate.waits_for_room(candidate, reason):
            self.blocker = candidate

    def reopen(self, eligible: list[Request]) -> list[Request] | None:
        """Return all if the blocker blocks no more: it could start, or a limit of its owner holds it. Else
        return the candidates with a reservation that is due."""
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
        """Return rows by the times of their reservations."""
        waiting = {row: candidates.columns.request(row) for row in rows}
        order = candidates.in_order(rows)
        return sorted(order, key=lambda row: (time_of(waiting[row]), turn_of(waiting[row])))


POLICY = Block
