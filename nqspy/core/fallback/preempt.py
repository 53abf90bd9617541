"""Preempt (``order=class``; seed 000): a job that has waited longer than its class allows, a *bumper*, has
the cheapest block of PEs cleared. Its holders give way as their do-not-disturb time runs out.

There is one bumper at a time in a domain, unless one of a higher class comes. It takes any free PEs that fit
earlier; then its block is let go. All other jobs are loaded in the order of their classes, under the limits,
nearest to PE 0. A job with several sizes is loaded on the largest that fits; a block is cleared for its
least. A job that would delay a reserved start of another queue waits, unless a block was cleared for it.
Where the seed is silent processors.md 4 decides: a job that limits hold is no bumper, and a job of a class
that does not wait bumps none of equal class. The block is kept across passes (`model.facts`), so that a
restart finds it.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Literal

from msgspec.structs import replace

from nqspy.core.classes import (
    BUMPER,
    BY_CLASS,
    CLASSES,
    ClassTable,
    is_bumped,
    is_served,
    may_bump,
    undisturbed_until,
)
from nqspy.core.draft import Choice, Draft
from nqspy.core.fallback.clearing import can_be_cleared, cheapest, on_block, tenant
from nqspy.core.fallback.policy import Skip
from nqspy.core.feature import Feature
from nqspy.core.gate.classes import ClassLimits
from nqspy.core.gate.gate import Gate
from nqspy.core.order.candidates import Candidates
from nqspy.core.order.jobs import ClassCandidates, WaitingJob
from nqspy.core.placement.placements import nearest
from nqspy.core.variants.sizes import sizes_of
from nqspy.model import facts
from nqspy.model.actions import Action, Resume, Suspend
from nqspy.model.board import Board
from nqspy.model.domains import numbers, spans
from nqspy.model.facts import Promise
from nqspy.model.ids import Instant, Seq, array_of
from nqspy.model.reasons import Reason, ReasonCode, quoted, reason_kinds
from nqspy.model.requests import Attempt, Request, State
from nqspy.model.site import Settings, Site

NAME = "bumper"
"""Name of the feature for all proposals of this file other than starts; databases and journals have it."""
_BUMPED, _CLEARED, _BY_CLASS = reason_kinds(
    ReasonCode.NO_PES,
    bumped="gave its PEs to {other} (class {kind}); it resumes when {pes:1 PE is|* PEs are} free for it",
    being_cleared="waits until running jobs have left PEs {pes} for it",
    by_class="others go first: {who} starts jobs by class, then by waiting time",
)


class Preempt(Skip):
    """Policy of the class queues of one domain in one pass. It loads jobs (starts them, or resumes bumped
    ones) by class, and clears PEs for bumpers."""

    explained = closed = False

    def __init__(self, draft: Draft, gate: Gate, jobs: ClassCandidates) -> None:
        super().__init__(jobs.queue, gate)
        self._draft, self._site, self._jobs = draft, gate.site, jobs
        self._domain = gate.room.board(jobs.queue.name).domain
        self._placement, self._table = nearest(self._domain), ClassTable(gate.site.settings)
        leaving = (each for each in self._site.paused.values() if is_bumped(each) and not each.pes_released)
        # Jobs that run and may be bumped, then those that are moving out.
        holders = chain(draft.running(), leaving)
        self._holders, self._new = [each for each in holders if each.queue in jobs.names], set[Seq]()
        self._limits = ClassLimits(gate.site)
        # Limits of classes count the jobs that were asked to end and still hold their PEs; none is bumped.
        running = (each for each in self._site.started.values() if each.state is State.RUNNING)
        ending = (each for each in running if each.ending and each.queue in jobs.names)
        for holder in chain(self._holders, ending):
            self._limits.add(holder)
        self._former = facts.stored_by(gate.site, NAME).get(self._domain.name)
        self._cleared_for = None if self._former is None else self._former["seq"]
        self._stage: Literal["scheduled", "bumpers", "all"] = "scheduled"
        self._scheduled = set[int]()
        self._forced, self._refused = set[Seq](), dict[Seq, Reason]()
        self._bumper: WaitingJob | None = None
        self._block: tuple[int, ...] = ()
        self._dues: list[Instant] = []

    @property
    def _board(self) -> Board:
        """Board of the domain, without the PEs that are being cleared."""
        return self.gate.room.board(self.queue.name)

    # ------------------------------------------------------------ the rows to examine

    def next_rows(self, candidates: Candidates) -> Iterator[int]:
        """Yield the sequence numbers of jobs to examine: those that an operator scheduled, then bumpers until
        a block of PEs is kept for one, then all others that were not examined."""
        yield from filter(self._jobs.is_remaining, self._jobs.scheduled())
        self._stage = "bumpers"
        for bumper in self._bumpers():
            if not self._jobs.is_remaining(bumper):
                self._reserve_block(bumper)
            while self._bumper is None and self._jobs.is_remaining(bumper):
                yield bumper  # of an array index after index, as long as they start
            if self._bumper is not None:
                break
        self._stage = "all"
        while (row := self._jobs.best()) is not None:
            yield row

    def _bumpers(self) -> Iterator[int]:
        """Yield the bumpers in order; first one that has a block, unless the class of another is higher."""
        jobs, rows = self._jobs.jobs, list(self._jobs.jobs)
        first = next(filter(self._is_bumper, rows), None)
        former = None if self._former is None else self._former["seq"]
        if first is None:
            return
        rank = jobs[first].kind.priority
        if former is not None and self._is_bumper(former) and rank <= jobs[former].kind.priority:
            yield former
        yield from filter(self._is_bumper, rows)

    def _is_bumper(self, row: int) -> bool:
        """True if a waiting job may bump others and was not tried as a bumper yet."""
        waits = row in self._jobs.jobs and (row in self._scheduled or self._jobs.is_remaining(row))
        return waits and self._may_bump(row)

    def _may_bump(self, row: int) -> bool:
        """True if a job has waited too long, and only a lack of PEs prevents a start on its smallest size."""
        job = self._jobs.jobs[row]
        if (due := job.due()) is None or due > self._draft.now:
            return False
        least = self._least(job.request)
        return not self._table.forbids(least) and self.gate.limit(least) is None

    # ------------------------------------------------------------ the rows that exits are asked about

    def all_rows(self, candidates: Candidates, most: int) -> Iterator[int]:
        return self.next_rows(candidates)

    def any_startable(self, candidates: Candidates) -> bool:
        return self._first(lambda job: self.refuses(job, False)) is not None

    def not_limited(self, candidates: Candidates) -> int | None:
        return self._first(lambda job: self.gate.limit(job) or self._limits.refuses(job))

    def _first(self, refuses: Callable[[Request], Reason | None]) -> int | None:
        """Return the first unexamined row with a job not refused on its least size; None: all are refused."""
        rows = self._jobs.remaining()
        return next((row for row in rows if refuses(self._least(self._jobs.request(row))) is None), None)

    def may_reserve(self, candidates: Candidates) -> bool:
        return self._bumper is None and next(self._bumpers(), None) is not None

    # ------------------------------------------------------------ the gate's answers

    def variants(self, candidate: Request) -> Sequence[Request]:
        """Return a job on each of its sizes, the largest first. If one wall limit is for all sizes and the
        smallest lacks PEs, return the job alone."""
        mold = candidate.spec.mold
        if mold is None or candidate.state is State.SUSPENDED:
            return (candidate,)
        if not mold.walls and candidate.spec.ask.pes > self._placement.room(self._board):
            return (candidate,)
        return self._sizes(candidate)

    def _sizes(self, job: Request) -> list[Request]:
        return sorted(sizes_of(self._site, job), key=lambda size: -size.spec.ask.pes)

    def _least(self, job: Request) -> Request:
        """Return a job on its smallest size; a suspended job keeps the size that it has."""
        mold = job.spec.mold
        if mold is None or not mold.walls or job.state is State.SUSPENDED:
            return job
        return self._sizes(job)[-1]

    def refuses(self, ask: Request, forced: bool) -> Reason | None:
        """Return why a job may not be loaded: a limit, a lack of PEs, or a reserved start that it would
        delay; None: it may. Reserved starts hold no job that returns, nor one for which a block was cleared.
        """
        if forced:
            self._forced.add(ask.seq)
        reason = self.gate.limit(ask, forced) or self._limits.refuses(ask)
        returns = ask.state is State.SUSPENDED
        if reason is None and ask.spec.ask.pes > self._placement.room(self._board):
            if returns:
                reason = quoted(ReasonCode.NO_PES, NAME, ask.pause.text if ask.pause is not None else "")
            else:
                reason = self.gate.room.lack(ask.queue, ask)
        if reason or forced or returns or ask.seq == self._cleared_for:
            return reason
        return self.gate.reserved.delaying(ask)

    def place(self, ask: Request) -> tuple[int, ...]:
        return self._placement.pick(self._board, ask.spec.ask.pes)

    # ------------------------------------------------------------ what became of it

    def started(self, choice: Choice) -> None:
        """Count a job as loaded from now on. It uses up a block that was cleared for it, or for its array."""
        starts = choice.request
        if self._cleared_for in (starts.seq, array_of(starts.seq) or 0):
            choice.cleared, self._cleared_for = True, None
        self._load(starts, Attempt(starts.attempts + 1, choice.pes, self._draft.now))

    def resume(self, candidate: Request, pes: tuple[int, ...]) -> None:
        """Propose to load a suspended job again on these PEs, and count it as loaded."""
        self._draft.resume(candidate, BUMPER, pes, by=NAME)
        self._load(candidate, replace(candidate.run, pes=pes, pause=None, resumed=self._draft.now))

    def _load(self, job: Request, run: Attempt) -> None:
        self._holders.append(replace(job, state=State.RUNNING, attempt=run))
        self._new.add(job.seq)
        self._limits.add(job)

    def blocked(self, candidates: Candidates, candidate: Request, reason: Reason) -> None:
        """Record why a job was not loaded. A bumper that lacks PEs gets a block, if one can be cleared."""
        self._refused[candidate.seq] = reason
        if reason.code is ReasonCode.RESERVED:
            return
        self._draft.short_domains.add(self._domain.name)
        if self._stage == "scheduled":
            self._scheduled.add(candidate.seq)  # it may be a bumper
        elif self._stage == "bumpers" and self._may_bump(candidate.seq):
            self._reserve_block(candidate.seq)

    # ------------------------------------------------------------ the block

    def _reserve_block(self, row: int) -> None:
        """Reserve a block of PEs for a bumper and make its holders leave; nothing if none can be cleared."""
        self._scheduled.discard(row)
        job = self._jobs.jobs[row]
        least = self._least(job.request)
        block = self._block_for(least)
        if block is None:
            return
        self._bumper, self._block = job, block
        bumped = on_block(self._board, self._holders, block)
        self._limits.leave_room(least, bumped)
        self._clear(job, bumped)
        self.gate.reserve_pes(least, block)

    def _block_for(self, least: Request) -> tuple[int, ...] | None:
        """Return the PEs to clear for a bumper: its former block if that can still be cleared, else the
        cheapest. None: there is no such block, or limits of classes refuse the bumper all the same."""
        tenants, now = [], self._draft.now
        for holder in self._holders:
            gives = len(holder.pes) if self._limits.makes_room(holder, least) else 0
            tenants.append(tenant(holder, least, self._table, now, gives, self._leaves(holder)))
        count, found = least.spec.ask.pes, None
        if self._former is not None and self._former["seq"] == least.seq:
            found = numbers(tuple(self._former["pes"]))
        if found is None or len(found) != count or not can_be_cleared(self._board, tenants, found):
            short = self._limits.excess(least)
            found = cheapest(self._board, tenants, count, self._placement.in_a_row, short)
        if found is None:
            return None
        without = on_block(self._board, self._holders, found)
        return found if self._limits.refuses(least, without) is None else None

    def _leaves(self, holder: Request) -> bool:
        """True if a holder is leaving its PEs already, also by an earlier feature of this pass."""
        return holder.state is not State.RUNNING or holder.seq in self._draft.leaving

    def _clear(self, bumper: WaitingJob, holders: Sequence[Request]) -> None:
        """Suspend the first of these holders after its do-not-disturb time, unless one is moving out (the
        disk serves one move at a time). Record when that time of the others ends, to run a pass then."""
        draft, moving = self._draft, any(map(self._leaves, holders))
        for holder in holders:
            if self._leaves(holder):
                continue
            until = undisturbed_until(holder, self._table.of(holder))
            assert until is not None
            if until > draft.now or holder.seq in self._new:
                self._dues.append(max(until, Instant(draft.now + 1)))
            elif not moving:
                moving = True
                other = self._site.id_of(bumper.request.seq)
                text = _BUMPED(NAME, other, bumper.kind.name, len(holder.pes)).text
                draft.suspend(holder, BUMPER, text, pes_released=False, page_out=True, leaving=True, by=NAME)

    # ------------------------------------------------------------ the end of the pass

    def finish(self) -> None:
        """Store the block for later passes, set the reasons of the jobs that wait, and set ``wake_at``."""
        draft, bumper = self._draft, self._bumper
        block = None if bumper is None else {"seq": bumper.request.seq, "pes": spans(self._block)}
        if block != self._former:
            draft.store_fact(self._domain.name, block, by=NAME)
        waiting = self._jobs.unserved()
        for job in waiting:
            if (before := self._refused.get(seq := job.request.seq)) is not None:
                reason = self.refuses(self._least(job.request), seq in self._forced)
                draft.reasons.setdefault(seq, reason or before)
                was_reserved = bumper is None and before.code is ReasonCode.RESERVED
                lacks_pes = reason is not None and reason.code is ReasonCode.NO_PES
                if was_reserved and lacks_pes and self._may_bump(seq):  # what was reserved has started
                    self._dues.append(Instant(draft.now + 1))
        if bumper is not None:
            draft.reasons[bumper.request.seq] = _CLEARED(NAME, ", ".join(spans(self._block)))
        for queue, _ in draft.waiting:
            if queue.name in self._jobs.names:
                draft.closing.setdefault(queue.name, _BY_CLASS(f"queue {queue.name}"))
        self._dues += [due for job in waiting if (due := job.due()) is not None and due > draft.now]
        self.wake_at = min(self._dues, default=None)


# ---------------------------------------------------------------- the feature


def verify(settings: Settings, site: Site) -> list[str]:
    """Return a line for each class queue that has no class to use, or has settings that reserve starts."""
    found = []
    for queue in settings.queues.values():
        if queue.order != BY_CLASS:
            continue
        if not CLASSES.all(settings):
            found.append(f"queue {queue.name}: order=class, and there is no class: create class production")
        if queue.reserve != 0 or queue.backfill == "none":
            found.append(f"queue {queue.name}: order=class reserves no starts: backfill=limit reserve=0")
    return found


def stands(site: Site, action: Action) -> bool:
    """True if a proposal is still right: a block in a domain with class queues, a job that gives way while
    another may bump it, or a bumped job that goes on."""
    match action:
        case Promise(key):
            queues = site.settings.queues
            return any(is_served(site, name) and site.domain_of(name).name == key for name in queues)
        case Suspend(seq, cause=cause, leaving=leaving):
            return cause == BUMPER and leaving and _may_be_bumped(site, site.started[seq])
        case Resume(seq):
            request = site.started[seq]
            return is_bumped(request) and is_served(site, request.queue)
    return False


def _may_be_bumped(site: Site, request: Request) -> bool:
    """True if some waiting or bumped job in the domain of this loaded job is of a class that may bump it."""
    if not is_served(site, request.queue):
        return False
    table, domain = ClassTable(site.settings), site.domain_of(request.queue).name
    queues = (columns for name, columns in site.waiting.items() if len(columns) and is_served(site, name))
    waiting = chain.from_iterable(columns.requests() for columns in queues)
    bumped = (each for each in site.paused.values() if is_bumped(each) and is_served(site, each.queue))
    return any(
        may_bump(table.of(each), table.of(request))
        for each in chain(waiting, bumped)
        if site.domain_of(each.queue).name == domain and each.seq != request.seq
    )


def move_rank(site: Site, seq: Seq) -> int:
    """Return the rank of a job's move off its PEs or back to them; the higher moves first. It goes by class
    priority: of the bumper for a holder of its block, then of the job itself if it returns; all others: 0."""
    request, table = site.requests.get(seq), ClassTable(site.settings)
    if request is None:
        return 0
    if request.pause is None:
        return 2 * table.of(request).priority + 1
    block = facts.stored_by(site, NAME).get(site.domain_of(request.queue).name)
    if not block or set(request.pes).isdisjoint(numbers(tuple(block["pes"]))):
        return 0
    bumper = site.requests.get(block["seq"])
    return 0 if bumper is None else 2 * table.of(bumper).priority + 2


FEATURE = Feature(NAME, verify=verify, stands=stands)
