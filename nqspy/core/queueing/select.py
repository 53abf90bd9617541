"""Select: takes candidates from the top of each queue's line while something can still start.

Without a `jobselect` exit, rows that limits keep back are masked out and never looked at. With one candidates
are offered in their order until nothing more can start, or, where an exit may force, until one waits only for
a PE; how many, and who is not asked about again, is said in `offers`. Why requests wait is put into words at
the end, as it stands after the pass.
"""

from functools import partial

from nqspy.core import domains, resource_health, sight
from nqspy.core.draft import Draft
from nqspy.core.feature import Feature
from nqspy.core.queueing import mold, words
from nqspy.core.queueing.backfill import Backfill, is_served_in_order
from nqspy.core.queueing.candidate_order import FIRST, NOW, CandidateOrder
from nqspy.core.queueing.kept_back import KeptBack
from nqspy.core.queueing.offers import Offers, Walk
from nqspy.core.queueing.second_look import SecondLook
from nqspy.core.queueing.startable import is_plain, tallied
from nqspy.model.actions import Action, Hold, Move, Redate, Reserving, Start
from nqspy.model.ids import Instant
from nqspy.model.molded import sized
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import Request
from nqspy.model.shapes import Lacked
from nqspy.model.site import Settings, Site
from nqspy.ports import Answer


def verify(settings: Settings, site: Site) -> list[str]:
    """Queues that could never start anything."""
    pes = settings.machine.pes if settings.machine.pes is not None else len(site.found.cpus)
    if pes < 1:
        return ["the machine has no PE: set machine pes=N"]
    return domains.unused(settings, pes)


def act(draft: Draft, now: Instant) -> Instant | None:
    """Chooses the requests to start; a date in queue may be the next thing to wait for, or that a group's
    use falls below its cap."""
    selection = _Selection(draft)
    selection.run()
    for choice in draft.chosen:
        request = choice.request
        number = request.attempts + 1
        more = choice.forced, choice.units, *selection.bounds_of(request), choice.lacked
        draft.after.append(Start(request.seq, number, choice.pes, *more, by=NAME))
        draft.after += choice.follow
    if (promise := selection.promises()) is not None:
        draft.after.append(promise)
    return min((due for due in selection.dues() if due is not None), default=None)


NAME = "select"
SEEK = 10
"""Candidates offered at most to learn whether one waits only for a PE when none can be had."""


class _Selection:
    """One pass over all queues."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._tally = tallied(draft)
        for request in draft.resumed:
            self._tally.resume(request)
        for request in draft.started:
            self._tally.add(request)
        self._lines: dict[str, CandidateOrder] = {}
        self._electing = draft.exits.has("elected")
        self._offers = Offers(draft)
        self._kept = KeptBack(draft, self._tally, self._offers)
        self._promised = self._tally.reservations
        self._promised.leaving = draft.leaving
        self._promised.returning = {request.seq for request in draft.resumed}
        self._backfill = Backfill(self._promised, self._kept)
        self._again = SecondLook(self._promised, self._kept, self._backfill, self._lines, draft.room)
        self._fits: tuple[str, int, bool] | None = None

    def run(self) -> None:
        """Serves ranked requests, then the queues in their order."""
        served = [queue for queue, _ in self._draft.waiting if queue.kind == "batch"]
        self._promised.look_after()
        for queue in served:
            self._kept.refuse_what_never_fits(queue)
        started = [queue for queue in served if queue.started and not self._is_shut(queue)]
        self._serve_urgent(started)
        most = self._draft.site.settings.global_.offers_per_pass
        for place, queue in enumerate(started):
            self._again.begin(queue)
            if queue.name not in self._kept.closed:
                if self._offers.asking:
                    part = -(-most // (len(started) - place))
                    most -= part - self._serve_by_offers(queue, part)
                else:
                    self._serve(queue)
            if self._backfill.is_barred(queue.name):
                self._backfill.serve_due(self._line(queue), self._look)
            self._serve_again()
        for queue in started:
            self._backfill.tell_overdue(queue.name)
        for queue in served:
            if not queue.started:
                self._close(queue, words.STOPPED(f"queue {queue.name}"))
        self._kept.freed = self._offers.asking and self._again.due() is not None
        self._kept.put_into_words()
        changing = self._kept.freed or self._tally.is_capped or self._promised.is_begun
        if not (self._offers.asking or self._electing or changing):
            self._draft.still.update(queue.name for queue in started if self._stands_still(queue))
            self._draft.plain = bool(self._draft.still) and is_plain(self._draft, self._tally)

    def _stands_still(self, queue: Queue) -> bool:
        """Whether nobody who comes can start, nor comes before others: they are served as they come, and the
        first of them lets nobody pass, or there is no room for anybody."""
        closed = self._kept.closed.get(queue.name)
        if closed is None or queue.order != "fcfs":
            return False
        if self._backfill.is_barred(queue.name):
            return True
        full = closed.reason.code is ReasonCode.NO_PES and self._is_full(queue.name)
        return full and queue.backfill_order == "order" and not self._backfill.promises_more(queue)

    def _is_shut(self, queue: Queue) -> bool:
        """Whether an earlier feature says that nothing of this queue starts now."""
        if (reason := self._draft.barred or self._draft.shut.get(queue.name)) is not None:
            self._close(queue, reason)
        return reason is not None

    def dues(self) -> tuple[Instant | None, ...]:
        """Return what the next pass may wait for: a date in queue, a group's cap, requests left over, a
        promised start, an instant that an exit named."""
        dates = self._draft.site.next_date(), self._tally.opens(), self._goes_on(), self._promised.next_at()
        return *dates, self._offers.due

    def _goes_on(self) -> Instant | None:
        """When the next pass goes on with those that this one could not offer, or would let pass now: at
        once, where PEs are free."""
        goes_on = self._offers.go_on() or self._kept.freed
        return Instant(self._draft.now + 1) if goes_on and any(map(self._draft.room, self._lines)) else None

    def promises(self) -> Reserving | None:
        """What this pass promises, or takes back."""
        return self._promised.made()

    def bounds_of(self, request: Request) -> tuple[Instant | None, bool]:
        """When one that is started is to be ended as its hole ends, and whether it passes whom no time was
        promised."""
        promised, seq = self._promised, request.seq
        return promised.hole_of(seq), promised.is_passing(seq)

    def _line(self, queue: Queue) -> CandidateOrder:
        if queue.name not in self._lines:
            self._lines[queue.name] = CandidateOrder(self._draft, queue, self._tally)
        return self._lines[queue.name]

    # ------------------------------------------------------------ ranked requests

    def _serve_urgent(self, started: list[Queue]) -> None:
        """``schedule request ... now`` and ``first``: ahead of everything, queue by queue."""
        found = []
        for place, queue in enumerate(started):
            columns = self._draft.site.waiting[queue.name]
            if columns.most("rank") >= FIRST:
                line = self._line(queue)
                most = int((columns.rank >= FIRST).sum())
                ranked = [row for row in line.in_order(most) if columns.rank[row] >= FIRST]
                found += [(-int(columns.rank[row]), place, i, line, row) for i, row in enumerate(ranked)]
        for _, _, _, line, row in sorted(found, key=lambda each: each[:3]):
            before = -1  # of an array index after index is looked at, as long as they start
            while before < len(self._draft.chosen) and self._is_in_line(line.queue.name, row):
                before = len(self._draft.chosen)
                self._look(line, row)

    def _is_in_line(self, queue: str, row: int) -> bool:
        return queue not in self._kept.closed and row not in self._draft.gone(queue)

    def _serve_again(self, before: Queue | None = None) -> None:
        """Serves queues again to which a promised start has left something."""
        while not self._offers.asking and (queue := self._again.due(before)) is not None:
            for row in self._again.put_back(queue):
                self._look(self._line(queue), row)
            if self._backfill.is_barred(queue.name):
                self._backfill.serve_due(self._line(queue), self._look)
            else:
                self._serve(queue)

    # ------------------------------------------------------------ without jobselect

    def _serve(self, queue: Queue) -> None:
        closed = self._closed_before(queue)
        if closed is not None:
            return self._close(queue, closed)
        line = self._line(queue)
        if is_served_in_order(queue):
            self._backfill.begin(line, self._look)
        elif self._is_closed_for_all(line):
            return None
        if queue.name not in self._kept.closed:
            self._start_what_fits(line)
        return None

    def _closed_before(self, queue: Queue) -> Reason | None:
        closed = self._tally.closed(queue.name)
        if closed is None and not is_served_in_order(queue) and self._is_full(queue.name):
            return words.no_pes(self._draft, queue.name)
        return closed

    def _is_closed_for_all(self, line: CandidateOrder) -> bool:
        """Whether limits keep back all; then the queue is closed for the reason of the oldest."""
        oldest = line.oldest_if_all_kept()
        if oldest is None:
            return False
        request = line.columns.request(oldest)
        kept = resource_health.keeping(self._draft.site, request) or self._tally.keeping(request)
        if kept is not None:
            self._kept.keep(request, kept)
            self._close(line.queue, kept, request)
        return kept is not None

    def _start_what_fits(self, line: CandidateOrder) -> None:
        closed = None
        while closed is None and (room := self._draft.room(line.queue.name)):
            row = line.best(room)
            if row is None:
                break
            self._look(line, row)
            closed = self._tally.closed(line.queue.name)
        if (closed := closed or self._closed_before(line.queue)) is not None:
            self._kept.close(line.queue, closed)  # as the next pass would, which looks at nobody
        elif (row := self._foremost(line)) is not None:
            self._look(line, row)
            self._close(line.queue, words.no_pes(self._draft, line.queue.name))
        else:
            self._close_by_limits(line)

    def _foremost(self, line: CandidateOrder) -> int | None:
        """Who is looked at where nobody more can start: the first in the order, if a start may be promised to
        it; else somebody in front will do for the reason."""
        return line.best() if self._backfill.promises_more(line.queue) else line.foremost()

    def _close_by_limits(self, line: CandidateOrder) -> None:
        """Closes a queue where limits and promises keep back all that are left: for the reason of the first
        of them; where they are not served in order, as `_is_closed_for_all` would."""
        in_order = is_served_in_order(line.queue) or self._offers.asking
        row = line.foremost(everybody=True) if in_order else line.oldest()
        if row is not None:
            request = line.columns.request(row)
            line.take(row)
            kept = self._kept.keeping(request)
            if kept is not None:
                self._kept.keep(request, kept)
                self._kept.close(line.queue, kept, line.ahead if in_order else 0, request)

    # ------------------------------------------------------------ with jobselect

    def _serve_by_offers(self, queue: Queue, most: int) -> int:
        """Offers candidates; answers how many of ``most`` offers are left."""
        closed = self._closed_before(queue) if not self._offers.forces or self._is_full(queue.name) else None
        if closed is not None:
            self._close(queue, closed)
            return most
        draft, line, walk = self._draft, self._line(queue), self._offers.walk(queue.name, most)
        sure = -1  # proposals when it was looked at last whether something can start
        while queue.name not in self._kept.closed and not walk.cut:
            if sure != draft.proposals or not line.is_open:
                if self._is_over(line):
                    self._close_behind(line)
                    break
                sure = -1 if self._offers.forces else draft.proposals
            row = line.next_offer(most)
            if row is None:
                break
            self._offer(line, row, walk)
        if walk.cut:
            bounded = words.BOUNDED("global", self._draft.site.settings.global_.offers_per_pass)
            self._close(queue, self._tally.closed(queue.name) or bounded)
        return walk.most

    def _is_full(self, queue: str) -> bool:
        return self._draft.is_short(queue) and not self._draft.room(queue)

    def _offer(self, line: CandidateOrder, row: int, walk: Walk) -> None:
        request = line.columns.request(row)
        if self._offers.is_known(request) or walk.asks(request.seq):
            self._look_at(line, row, request)
        elif not walk.cut:
            line.take(row)
            self._offers.former(request, walk.before[request.seq])
            self._refuse(line, request, walk.before[request.seq])

    def _is_over(self, line: CandidateOrder) -> bool:
        """Whether nothing more of a line can start."""
        name, room = line.queue.name, self._draft.room(line.queue.name)
        if not self._offers.forces:
            closed = self._tally.closed(name) is not None
            return closed or not room or line.startable(room) is None
        chosen = len(self._draft.chosen)
        if self._fits is None or self._fits[:2] != (name, chosen):
            self._fits = name, chosen, bool(room) and line.any_within(room)
        return self._draft.is_short(name) and not self._fits[2]

    def _close_behind(self, line: CandidateOrder) -> None:
        """Closes a queue of which nothing more can start, for the reason of those left."""
        draft, queue = self._draft, line.queue
        closed = self._tally.closed(queue.name)
        if closed is None and not self._offers.forces:
            self._seek(line)
        if queue.name in self._kept.closed:
            return
        if closed is not None or self._offers.forces or line.some() is not None:
            if closed is None and not self._draft.is_short(queue.name):
                self._kept.assumed.add(self._draft.board(queue.name).domain.name)
            draft.short |= self._kept.assumed
            self._close(queue, closed or words.no_pes(draft, queue.name))
        else:
            self._close_by_limits(line)

    def _seek(self, line: CandidateOrder) -> None:
        """Looks whether one waits only for a PE; where the first few are refused it is taken for granted."""
        for _ in range(SEEK):
            known = self._draft.is_short(line.queue.name) or line.queue.name in self._kept.closed
            row = None if known else self._foremost(line)
            if row is None:
                break
            self._look(line, row)

    def _refuse(self, line: CandidateOrder, request: Request, answer: Answer) -> None:
        self._offers.refuse(line, request, answer)
        if self._promised.is_due(request):
            self._promised.drop(request, f"{answer.who}: {answer.text}")
        if answer.verdict == "hold_line":
            self._close(
                line.queue, self._kept.held_by(line.queue, request, self._draft.own[request.seq]), request
            )

    # ------------------------------------------------------------ one candidate

    def _look(self, line: CandidateOrder, row: int) -> None:
        """Starts one candidate, or notes why it is not started."""
        self._look_at(line, row, line.columns.request(row))

    def _look_at(self, line: CandidateOrder, row: int, request: Request) -> None:
        draft = self._draft
        line.take(row)
        answer = self._offers.of(request)
        if answer is not None and answer.verdict != "force":
            return self._refuse(line, request, answer)
        forced = request.rank == NOW or answer is not None
        if request.spec.mold is not None:
            return self._look_at_sizes(line, request, forced)
        kept = self._kept.limited(request, forced)
        if kept is not None:
            self._kept.keep(request, kept, forced)
        elif request.spec.ask.pes > self._draft.room(request.queue):
            self._draft.say_short(request.queue)
            self._kept.keep(request, kept := words.too_few(draft, request), forced, narrow=True)
        elif not forced and (kept := self._promised.delaying(request)) is not None:
            self._kept.keep(request, kept)
        else:
            return self._start(line, request, forced)
        return self._backfill.missed(line, request, kept)

    def _look_at_sizes(self, line: CandidateOrder, request: Request, forced: bool) -> None:
        """The same of one that may run on several numbers of PEs."""
        draft, room = self._draft, self._draft.room(request.queue)
        one, kept, lacked = mold.choose(draft.site, request, room, partial(self._keeping, forced))
        if one is not None and not forced and self._backfill.would_promise(line.queue, request):
            kept = mold.waits_for(draft.site, draft.now, one, self._promised.soonest(request))
        if one is not None and kept is None:
            return self._start(line, request, forced, one.spec.ask.pes, lacked)
        kept = kept or self._kept.limited(request, forced)  # limits count first, as for others
        if narrow := kept is None:
            draft.say_short(request.queue)
            kept = words.too_few(draft, request)
        self._kept.keep(request, kept, forced, narrow)
        return self._backfill.missed(line, request, kept)

    def _keeping(self, forced: bool, one: Request) -> Reason | None:
        return self._kept.limited(one, forced) or (None if forced else self._promised.delaying(one))

    def _start(
        self, line: CandidateOrder, request: Request, forced: bool, pes: int = 0, lacked: Lacked = ()
    ) -> None:
        draft, row, starts = self._draft, request.slot, self._draft.what_starts(request)
        starts = sized(starts, pes)
        choice = draft.choose(starts, forced, draft.place(starts), request)
        choice.lacked = lacked
        self._tally.add(starts)
        self._promised.start(starts, request, forced)
        if starts is not request and draft.left_of(request):
            line.put_back(row)
        changed: list[Request] = []
        if self._electing:
            actions = draft.exits.elected(sight.seen(starts, draft), draft.view)
            changed = draft.follow(choice, actions)
            for other in self._lines.values():
                mine = [each for each in changed if each.queue == other.queue.name]
                if mine:
                    other.changed(mine)
        if self._offers.asking:
            draft.exits.stir([request, starts, *changed])
        for other in self._lines.values():
            other.refresh()
        self._serve_again(line.queue)

    def _close(self, queue: Queue, reason: Reason, of: Request | None = None) -> None:
        line = self._lines.get(queue.name)
        self._kept.close(queue, reason, line.ahead if line is not None else 0, of)


def stands(site: Site, action: Action) -> bool:
    """A start, and what exits made of it, stands as long as there is room for it."""
    return isinstance(action, Start | Redate | Reserving | Hold | Move)


FEATURE = Feature(NAME, act, verify=verify, stands=stands)
