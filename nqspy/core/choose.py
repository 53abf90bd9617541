"""The chooser: a loop that examines candidates one by one and starts those that the gate lets pass."""

import itertools
from collections.abc import Iterator

from nqspy.core import domains, views
from nqspy.core.draft import Draft
from nqspy.core.explain import STOPPED, Explanation
from nqspy.core.fallback.offers import Offers
from nqspy.core.fallback.policies import served
from nqspy.core.fallback.policy import Skip
from nqspy.core.fallback.resume import resume_suspended
from nqspy.core.feature import Feature
from nqspy.core.gate.gate import NOW, Gate
from nqspy.core.order.candidates import Candidates
from nqspy.core.startable import gate_of
from nqspy.core.variants import sizes
from nqspy.core.variants.sizes import Fit, first_fit
from nqspy.model.actions import Action, Hold, Move, Redate, Reserving, Start
from nqspy.model.ids import Instant
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import PRIME, Request, State
from nqspy.model.site import Settings, Site
from nqspy.model.specs import sized

NAME = "select"
"""The name of the feature in plans and journals."""


class QueuePass:
    """State of one queue, or of the class queues of a domain, in the `Chooser` of a pass. ``rows``: yields
    the rows to examine. ``blocked``: candidates that were examined and did not start, by row, with True if a
    reservation that another gives up may let them start. ``open``: there may be a next row. ``held``: an exit
    closed the queue for this pass. ``stamp``: `Chooser._stamp` when the rows ran out. ``opened``: number of
    later reservations that other queues had given up when the first row was examined."""

    def __init__(self, candidates: Candidates, policy: Skip, rows: Iterator[int]) -> None:
        self.queue = candidates.queue
        self.candidates, self.policy, self.rows = candidates, policy, rows
        self.blocked: dict[int, tuple[Request, bool]] = {}
        self.open, self.held, self.stamp = True, False, (0, 0)
        self.opened: int | None = None


class Chooser:
    """Loop of one pass over the candidates of all started queues, made and run by `act`. It adds the starts
    that the ``gate`` lets pass to the ``draft``, and the reasons of the requests that still wait."""

    def __init__(self, draft: Draft, gate: Gate) -> None:
        self._draft, self.gate = draft, gate
        gate.reserved.leaving = draft.leaving
        gate.reserved.review()
        self._offers = Offers(draft, gate)
        self._explanation = Explanation(draft, gate, self._offers)
        self._queues = [QueuePass(*each, self._rows_of(*each)) for each in served(draft, gate, self._open())]

    def _open(self) -> Iterator[Queue]:
        """Yield the batch queues with waiting requests that may start something, by priority. Record in
        `Draft.closing` why each other batch queue starts nothing."""
        for queue, columns in self._draft.waiting:
            if queue.kind != "batch":
                continue
            self._explanation.say_never(queue, columns)
            shut = self._draft.barred or self._draft.shut.get(queue.name)
            if not queue.started:
                shut = STOPPED(f"queue {queue.name}")
            if shut is not None:
                self._draft.closing[queue.name] = shut
            else:
                yield queue

    def _rows_of(self, candidates: Candidates, policy: Skip) -> Iterator[int]:
        """Yield the rows of a queue to examine. With `jobselect` exits these include rows that limits hold,
        because an exit may force a start."""
        yield from policy.again(candidates)
        asks = self._offers.asking
        for row in self._offers.next_rows(candidates, policy) if asks else policy.next_rows(candidates):
            yield row
            yield from policy.again(candidates)

    # ------------------------------------------------------------ the loop

    def run(self) -> None:
        """Examine candidates until no queue has a next row, then set the reasons of those that still wait."""
        resume_suspended(self._draft, self.gate)
        self._serve_urgent()
        while (step := self._next_step()) is not None:
            self._examine(*step)
        reserved, forced = self.gate.reserved, any(choice.forced for choice in self._draft.chosen)
        # Other queues have given up something since this pass examined the reservations of a queue, or a
        # forced start may hold what is reserved: the next pass examines them again.
        reserved.go_on = any(
            (forced or each.opened not in (None, reserved.opened_beside(each.queue.name)))
            and reserved.count(each.queue.name) > 0
            for each in self._queues
        )
        self._explanation.freed = self._offers.asking and any(map(self._could_go_on, self._queues))
        for each in self._queues:
            self._explanation.close(each.candidates, each.policy, self._draft.shut_out(each.queue.name))
        self._explanation.finish()
        for each in self._queues:
            each.policy.finish()

    def _serve_urgent(self) -> None:
        """Examine the requests that an operator made prime or scheduled *now* or *next*, before all others.
        In a domain with a prime request, examine no others in this pass."""
        found, shut = [], [self._draft.shut_out(each.queue.name) is not None for each in self._queues]
        for place, each in enumerate(self._queues):
            urgent, least = enumerate(each.candidates.urgent()), PRIME if shut[place] else 0
            found += [(-rank, place, i, row) for i, (rank, row) in urgent if rank >= least]
        for _, place, _, row in sorted(found):
            each, before = self._queues[place], -1
            while before < len(self._draft.chosen) and not each.held and each.candidates.is_remaining(row):
                before = len(self._draft.chosen)
                self._examine(each, row)  # of an array index after index, as long as they start
        for each in itertools.compress(self._queues, shut):
            each.held = True

    def _next_step(self) -> tuple[QueuePass, int] | None:
        """Return the first queue that has a next row, and the row; None: no queue has one."""
        for n, each in enumerate(self._queues):
            if not each.open and not self._offers.asking:
                self._reopen(each)
            if each.open and not each.held:
                if each.opened is None:
                    each.opened = self.gate.reserved.opened_beside(each.queue.name)
                    self._offers.begin(each.candidates, len(self._queues) - n)
                if (row := next(each.rows, None)) is not None:
                    return each, row
                each.open, each.stamp = False, self._stamp(each)
        return None

    def _stamp(self, each: QueuePass) -> tuple[int, int]:
        """Return counters that change when a queue without a next row may get one again: later reservations
        given up by other queues and, behind a blocker, the starts and changes of the pass."""
        proposals = self._draft.proposals if each.policy.blocker is not None else 0
        return self.gate.reserved.opened_beside(each.queue.name), proposals

    def _eligible(self, each: QueuePass) -> list[Request]:
        """Return the blocked candidates to examine again: the free PEs suffice now, and the policy lets them
        start. In a queue without a blocker only those that a reservation given up by another may help."""
        free, by_starts = self._draft.board(each.queue.name).free, each.policy.blocker is not None
        waiting = (request for request, by_giving_up in each.blocked.values() if by_starts or by_giving_up)
        fitting = (request for request in waiting if request.spec.mold or request.spec.ask.pes <= free)
        return [request for request in fitting if each.policy.refuses(request, False) is None]

    def _reopen(self, each: QueuePass) -> None:
        """Make the blocked candidates that could start by now a queue's next rows, if `_stamp` changed."""
        if (stamp := self._stamp(each)) == each.stamp:
            return
        each.stamp = stamp
        chosen = each.policy.reopen(self._eligible(each))
        if chosen is None:
            return
        rows = list(map(each.candidates.row_of, chosen))
        for row in rows:
            del each.blocked[row]
        each.candidates.sort_by_order()
        each.candidates.put_back(rows)
        each.open, each.rows = True, self._rows_of(each.candidates, each.policy)

    def _could_go_on(self, each: QueuePass) -> bool:
        """True if a queue could start more, but exits are offered no more; a pass then follows at once."""
        if self._stamp(each) == each.stamp:
            return False
        chosen = each.policy.reopen(self._eligible(each))
        return bool(chosen) or (chosen is not None and each.policy.any_startable(each.candidates))

    # ------------------------------------------------------------ one candidate

    def _examine(self, each: QueuePass, row: int) -> None:
        """Start a candidate in the first variant that fits. If none fits, report the reason to the policy."""
        candidate = each.candidates.examine(row)
        each.blocked.pop(row, None)
        answer = self._offers.of(candidate)
        if answer is not None and answer.verdict != "force":
            if self._offers.refuse(each.candidates, candidate, answer):
                self._explanation.hold_line(each.candidates, candidate)
                cause = f"{answer.who} closes the line of the queue: {answer.text}"
                for name in sorted(each.candidates.names):
                    self.gate.reserved.note_late(name, cause)
                each.held = not each.candidates.skip_waiting()
            return None
        forced = candidate.rank >= NOW or answer is not None
        fit = first_fit(each.policy.variants(candidate), lambda ask: each.policy.refuses(ask, forced))
        why = fit.why
        if fit.ask is not None and not forced:
            why = self._waits_for_better_size(each.policy, candidate, fit.ask)
        if fit.ask is not None and why is None:
            if candidate.state is State.SUSPENDED:
                each.policy.resume(candidate, each.policy.place(candidate))
                return self.gate.resume(candidate)
            return self._start(each, row, candidate, fit, forced)
        assert why is not None
        each.blocked[row] = candidate, why.code is ReasonCode.RESERVED or candidate.spec.mold is not None
        if each.policy.explained:
            self._explanation.blocked(candidate, why, forced)
        return each.policy.blocked(each.candidates, candidate, why)

    def _waits_for_better_size(self, policy: Skip, candidate: Request, ask: Request) -> Reason | None:
        """Return why a moldable candidate that could start as ``ask`` waits for a later start on a size that
        ends sooner; None: it starts now, or is not moldable."""
        if candidate.spec.mold is None:
            return None
        if not self.gate.is_reserved(candidate) and not policy.reserves_more():
            return None
        later = self.gate.reserved.soonest(candidate)
        return sizes.waits_for(self._draft.site, self._draft.now, ask, later)

    def _start(self, each: QueuePass, row: int, candidate: Request, fit: Fit, forced: bool) -> None:
        draft = self._draft
        assert fit.ask is not None
        pes = 0 if candidate.spec.mold is None else fit.ask.spec.ask.pes
        starts = sized(draft.what_starts(candidate), pes)
        places = each.policy.place(starts)
        self.gate.room.hold(candidate.queue, places)
        choice = draft.choose(starts, forced, places, candidate)
        choice.lacked = fit.rejected
        self.gate.add(starts, candidate, forced)
        choice.reserving = self.gate.reserved.made_before_start()
        each.policy.started(choice)
        changed = views.elected(draft, choice, starts)
        if starts is not candidate and draft.remaining_of(candidate):
            each.candidates.put_back([row], next_index=True)
        for other in self._queues:
            if any(one.queue in other.candidates.names for one in changed):
                other.candidates.sort_again()
            other.candidates.refresh()

    # ------------------------------------------------------------ the result

    def actions(self) -> Iterator[Action]:
        """Yield the starts with their consequences, and the changes of reservations. A change on which a
        start depends comes before that start, because the re-check goes through the actions in order."""
        reserved = self.gate.reserved
        for choice in self._draft.chosen:
            request, seq = choice.request, choice.request.seq
            if choice.reserving is not None:
                yield choice.reserving
            more = request.attempts + 1, choice.pes, choice.forced, choice.units
            bounds = reserved.until.get(seq), seq in reserved.passing
            yield Start(seq, *more, *bounds, choice.lacked, choice.cleared, by=NAME)
            yield from choice.follow
        if (made := reserved.made()) is not None:
            yield made

    def blockers(self) -> dict[str, Request]:
        """Return the requests that wait for room and let no other of their queue pass, by queue."""
        pairs = ((each.queue.name, each.policy.blocker) for each in self._queues)
        return {name: blocker for name, blocker in pairs if blocker is not None}

    def wake_at(self) -> Instant | None:
        """Return when the next pass must run, even if nothing happens; None: no such instant is known."""
        gate, draft = self.gate, self._draft
        dues = [draft.site.next_date(), gate.opens(), gate.reserved.next_at(), self._offers.due]
        dues += [each.policy.wake_at for each in self._queues]
        goes_on = self._offers.go_on() or self._explanation.freed
        if goes_on and any(draft.room(each.queue.name) for each in self._queues):
            dues.append(Instant(draft.now + 1))
        return min((due for due in dues if due is not None), default=None)


def act(draft: Draft, now: Instant) -> Instant | None:
    """Run the chooser, add its starts to the draft; return when the next pass must run (None: unknown)."""
    gate = gate_of(draft)
    for request in draft.resumed:
        gate.resume(request)
    chooser = Chooser(draft, gate)
    chooser.run()
    draft.gate, draft.blockers = gate, chooser.blockers()
    draft.after.extend(chooser.actions())
    return chooser.wake_at()


def verify(settings: Settings, site: Site) -> list[str]:
    """Return a warning for each batch queue in a domain with too few PEs for its smallest requests, or only
    one if the machine has no PE."""
    pes = settings.machine.pes if settings.machine.pes is not None else len(site.found.cpus)
    if pes < 1:
        return ["the machine has no PE: set machine pes=N"]
    return domains.unused(settings, pes)


def stands(site: Site, action: Action) -> bool:
    """True for starts, reservations, and what exits attached to starts: the gate alone re-checks these."""
    return isinstance(action, Start | Redate | Reserving | Hold | Move)


FEATURE = Feature(NAME, act, verify=verify, stands=stands)
