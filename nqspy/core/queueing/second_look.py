"""Who has a second turn in a pass (manual: `backfill`): a promised start comes before its time, or is moved,
and leaves something to those whom it kept back. Queues that were served before are looked at again then, at
once, so that nobody who stands there and could start by now waits for one who is behind.

Its own queue is not: there promises are gone through once, in its order (as conservative backfilling is
defined), and who has none has his turn behind them.

So has a queue in which one that waited for room let nobody pass, once a start of another queue has brought
his own people to their limit: whom that keeps back lets others pass.
"""

from collections.abc import Callable, Mapping

from nqspy.core.gate.reserved import Reservations
from nqspy.core.queueing.backfill import Backfill
from nqspy.core.queueing.candidate_order import CandidateOrder
from nqspy.core.queueing.kept_back import KeptBack
from nqspy.model.queues import Queue
from nqspy.model.requests import Request


class SecondLook:
    """The queues of one pass whose turn has come, as they were served. ``lines``: the candidates of those
    that were not closed before; ``room``: how many PEs one request of a queue could be given."""

    def __init__(
        self,
        promised: Reservations,
        kept: KeptBack,
        backfill: Backfill,
        lines: Mapping[str, CandidateOrder],
        room: Callable[[str], int],
    ) -> None:
        self._promised, self._kept, self._backfill = promised, kept, backfill
        self._lines, self._room = lines, room
        self._known: dict[str, int] = {}
        self._begun: list[Queue] = []

    def begin(self, queue: Queue) -> None:
        """Its turn has come."""
        self._known[queue.name] = self._promised.opened_beside(queue.name)
        self._begun.append(queue)

    def due(self, before: Queue | None = None) -> Queue | None:
        """The first queue (of those served ``before`` another) to which promises of others have left
        something since it was looked at, and of which somebody could start now; None: there is none."""
        for queue in self._begun:
            if queue is before:
                break
            opened = self._promised.opened_beside(queue.name)
            if opened > self._known[queue.name] or self._bars_no_more(queue):
                self._known[queue.name] = opened
                if self._could_start(queue):
                    return queue
        return None

    def _could_start(self, queue: Queue) -> bool:
        room = self._room(queue.name)
        if self._backfill.is_barred(queue.name) and not self._bars_no_more(queue):
            return bool(self._past_the_bar(queue))
        line = self._lines.get(queue.name)
        if line is None:
            return False
        line.refresh()  # a promise that moved without a start: what it leaves is not masked any more
        return bool(self._able(queue)) or (room > 0 and line.some(room) is not None)

    def _able(self, queue: Queue) -> list[Request]:
        """Who was looked at, and could start now."""
        room, kept = self._room(queue.name), self._kept
        return [each for each in kept.of(queue.name) if each.spec.ask.pes <= room and not kept.keeping(each)]

    def _past_the_bar(self, queue: Queue) -> list[Request]:
        """The same; where one lets nobody pass only whose time has come, unless that one could start."""
        able = self._able(queue)
        return able if self._lets_pass(queue, able) else list(filter(self._promised.is_due, able))

    def _lets_pass(self, queue: Queue, able: list[Request]) -> bool:
        bars = self._bar_of(queue)
        return bars is None or self._bars_no_more(queue) or any(each.seq == bars.seq for each in able)

    def _bar_of(self, queue: Queue) -> Request | None:
        """Who waits in front and lets nobody pass."""
        return self._kept.closed[queue.name].of if self._backfill.is_barred(queue.name) else None

    def _bars_no_more(self, queue: Queue) -> bool:
        """Whether by what started since its own people's limit keeps back the one that lets nobody pass."""
        bars = self._bar_of(queue)
        if bars is None or self._kept.limited(bars, False) is None:
            return False
        return not self._promised.is_shared(bars)

    def put_back(self, queue: Queue) -> list[int]:
        """Puts back into the line of a queue who could start now, and, where nobody bars it, who has no
        promise. Answers the rows of those whom this pass itself has promised a start: they come first."""
        kept, promised = self._kept, self._promised
        barred = self._backfill.is_barred(queue.name)
        again = self._past_the_bar(queue)
        if not barred:
            seqs = {each.seq for each in again}
            again += [r for r in kept.of(queue.name) if r.seq not in seqs and promised.told(r) is None]
        if self._lets_pass(queue, again):
            self._backfill.unbar(queue.name)
        kept.forget(again)
        self._lines[queue.name].look_again([each.slot for each in again])
        made = [each for each in again if each.reservation is None and promised.told(each) is not None]
        return [each.slot for each in made]
