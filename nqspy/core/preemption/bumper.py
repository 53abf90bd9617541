"""The Gang Scheduler (seed 000): jobs of queues with ``order=class`` are loaded by class, and one that has
waited longer than its class has them wait is a *bumper*: the cheapest block of PEs is reserved for it, and
who holds them is preempted as his do-not-disturb time runs out.

One bumper at a time in a domain, unless one of a higher class comes. It takes any free PEs that fit earlier;
then what was reserved is let go. Others are loaded in the order of their classes, in each the one first that
has waited longest, under the limits, nearest to PE 0; who comes back may do so on other PEs. One of several
sizes is loaded on the largest that fits as it is; PEs are reserved for its least. Holes in the seed, closed
as processors.md 4 says: whom limits forbid to be loaded is no bumper, and where the class has nobody wait
nobody of equal class is bumped.

What is reserved is a promise (`model.promises`): a restart finds it.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, product
from typing import Any
from weakref import proxy

from msgspec import Struct
from msgspec.structs import replace

from nqspy.core.classes import (
    BY_CLASS,
    CLASSES,
    GANG,
    ClassTable,
    JobClass,
    is_served,
    may_bump,
    undisturbed_until,
)
from nqspy.core.draft import Draft
from nqspy.core.fallback.clearing import Tenant, can_be_cleared, cheapest, on_block, tenant
from nqspy.core.feature import Feature
from nqspy.core.gate.classes import ClassLimit, JobLimit, LargeLimit
from nqspy.core.gate.gate import Gate
from nqspy.core.placement.nearest import nearest
from nqspy.core.variants.sizes import sizes_of
from nqspy.model import promises
from nqspy.model.actions import Action, Resume, Suspend
from nqspy.model.board import Board
from nqspy.model.cause import declare_feature
from nqspy.model.domains import Domain, numbers, spans
from nqspy.model.ids import Instant, Seq
from nqspy.model.molded import sized
from nqspy.model.promises import Promise
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds, told
from nqspy.model.requests import Attempt, Request, State
from nqspy.model.shapes import Lacked
from nqspy.model.site import Settings, Site

BUMPER = declare_feature("bumper")

_BUMPED, _CLEARED, _BY_CLASS = reason_kinds(
    ReasonCode.NO_PES,
    bumped="it gave its PEs to {other}, class {kind}; it goes on when {pes:a PE is|* PEs are} free for it",
    being_cleared="PEs {pes} are being cleared for it",
    by_class="{who} gives PEs by class, then to the one that has waited longest",
)


class WaitingJob(Struct, frozen=True):
    """A job that waits to be loaded, ``since`` when; ``parked``: it was before."""

    request: Request
    kind: JobClass
    since: Instant
    parked: bool

    @property
    def rank(self) -> tuple[int, Instant, Seq]:
        """Its place: by priority of its class, then by how long it has waited."""
        return -self.kind.priority, self.since, self.request.seq

    def due(self) -> Instant | None:
        """When it has waited as long as its class has it wait; None: never."""
        return None if self.kind.wait is None else Instant(self.since + self.kind.wait)


class _DomainPass:
    """One pass over the jobs of one domain."""

    def __init__(self, draft: Draft, domain: Domain, queue: str, tally: Gate, now: Instant) -> None:
        self._draft, self._site, self._domain, self._now = draft, draft.site, domain, now
        self._tally, self._table = tally, ClassTable(draft.site.settings)
        self._board: Board = draft.board(queue)
        self._placement = nearest(domain)
        self._running, self._leaving = self._who_holds()
        self._new: set[Seq] = set()
        self._class_limit = ClassLimit(self._site)
        self._limits = (self._class_limit, JobLimit(self._site), LargeLimit(self._site))
        for limit, holder in product(self._limits, self._holders()):
            limit.add(holder)
        self._waiting = sorted(self._who_waits(), key=lambda job: job.rank)
        self._kept: tuple[int, ...] = ()
        self._cleared_for: Request | None = None
        self._dues: list[Instant] = []

    # ------------------------------------------------------------ who is there

    def _mine(self, request: Request) -> bool:
        served = is_served(self._site, request.queue)
        return served and self._site.domain_of(request.queue).name == self._domain.name

    def _who_holds(self) -> tuple[list[Request], list[Request]]:
        """Who runs and may be bumped, and who moves out."""
        running = [each for each in self._draft.running() if self._mine(each)]
        leaving = [r for r in self._site.paused.values() if _is_moving_out(r) and self._mine(r)]
        return running, leaving

    def _who_waits(self) -> Iterator[WaitingJob]:
        draft, table = self._draft, self._table
        for request in draft.parked():
            if self._mine(request) and is_bumped(request) and request.seq not in draft.own:
                pause = request.pause
                assert pause is not None
                yield WaitingJob(request, table.of(request), pause.at, True)
        for queue, columns in draft.waiting:
            if queue.started and queue.name not in draft.shut and self._mine(columns.request(0)):
                for row in range(len(columns)):
                    request = columns.request(row)
                    yield WaitingJob(request, table.of(request), request.date_in_queue, False)

    # ------------------------------------------------------------ the pass

    def run(self) -> Instant | None:
        """Loads whom it can, and has PEs cleared for one that has waited too long; when it acts again at the
        latest."""
        promised = promises.made(self._site, NAME).get(self._domain.name)
        kept = self._serve_bumpers(promised)
        free = self._free()
        for job in list(self._waiting):
            if self._load(job, free):
                free = self._free()
        if kept != promised:
            self._draft.promise(self._domain.name, kept)
        self._say_why()
        self._dues += [due for job in self._waiting if (due := job.due()) is not None and due > self._now]
        return min(self._dues, default=None)

    def _serve_bumpers(self, promised: Any) -> Any:
        """Loads bumpers one after the other, as long as there is a place for them; what is promised to the
        one that must have PEs cleared, as JSON; None: there is none."""
        refused: set[Seq] = set()
        while (job := self._bumper(promised, refused)) is not None:
            if self._load(job, self._board):
                promised = None
            elif (pes := self._reserved(job, promised)) is None:
                refused.add(job.request.seq)
            else:
                self._kept, self._cleared_for = pes, job.request
                for limit in self._limits:
                    limit.keep(self._least(job), self._on(pes))
                if not job.parked:
                    self._tally.count(self._least(job))  # others leave it its units, and room under limits
                self._clear(job, pes)
                return {"seq": job.request.seq, "pes": spans(pes)}
        return None

    def _bumper(self, promised: Any, refused: set[Seq]) -> WaitingJob | None:
        """Who has waited longer than its class has it wait: the one that PEs are reserved for already, unless
        there is one of a higher class."""
        first = next((job for job in self._waiting if self._may_bump_others(job, refused)), None)
        former = next((j for j in self._waiting if promised and j.request.seq == promised["seq"]), None)
        if first is None or former is None or not self._may_bump_others(former, refused):
            return first
        return first if first.kind.priority > former.kind.priority else former

    def _may_bump_others(self, job: WaitingJob, refused: set[Seq]) -> bool:
        """Whether it has waited too long, and nothing but PEs keeps its least size back."""
        if job.request.seq in refused or (due := job.due()) is None or due > self._now:
            return False
        least = self._least(job)
        return not self._table.forbids(least) and self._limit(job, least) is None

    def _sizes(self, job: WaitingJob) -> Sequence[Request]:
        """It on each of the sizes on which it may be loaded, the largest first; who was loaded has one."""
        if job.parked or job.request.spec.mold is None:
            return (job.request,)
        return sorted(sizes_of(self._site, job.request), key=lambda one: -one.spec.ask.pes)

    def _least(self, job: WaitingJob) -> Request:
        """The last of them. Where all have one time it is what the job waits as: no larger one may be loaded
        where that may not."""
        mold = job.request.spec.mold
        return self._sizes(job)[-1] if mold is not None and mold.walls else job.request

    def _held_back(self, job: WaitingJob, one: Request) -> Reason | None:
        """The limit that keeps it back on one of its sizes."""
        return self._class_refuses(one) or self._limit(job, one)

    def _class_refuses(self, one: Request, without: tuple[Request, ...] = ()) -> Reason | None:
        """Return why limits of classes refuse a job on one of its sizes, ``without`` those that give way."""
        reasons = (limit.refuses(one, without) for limit in self._limits)
        return next((reason for reason in reasons if reason is not None), None)

    def _limit(self, job: WaitingJob, one: Request) -> Reason | None:
        """What keeps it back on one of its sizes, beside the limits of classes."""
        return None if job.parked else self._tally.limit(one)

    def _reserved(self, job: WaitingJob, promised: Any) -> tuple[int, ...] | None:
        """Return the block that is cleared for a bumper: the former one if it can still be cleared, else the
        cheapest; None: there is none, or limits of classes refuse the bumper all the same."""
        tenants = [self._tenant(job, holder) for holder in self._holders()]
        least = self._least(job)
        count, found = least.spec.ask.pes, None
        if promised and promised["seq"] == job.request.seq:
            found = numbers(tuple(promised["pes"]))
        if found is None or len(found) != count or not can_be_cleared(self._board, tenants, found):
            short = self._class_limit.short(least)
            found = cheapest(self._board, tenants, count, self._placement.in_a_row, short)
        if found is None or self._class_refuses(least, self._on(found)) is not None:
            return None
        return found

    def _holders(self) -> list[Request]:
        return [*self._running, *self._leaving]

    def _leaves(self, holder: Request) -> bool:
        """True if a holder leaves its PEs already, or an earlier feature has it do so."""
        return holder.state is not State.RUNNING or holder.seq in self._draft.leaving

    def _tenant(self, job: WaitingJob, holder: Request) -> Tenant:
        """Return a holder as a bumper sees it."""
        gives = len(holder.pes) if self._class_limit.makes_room(holder, job.request) else 0
        return tenant(holder, job.request, self._table, self._now, gives, self._leaves(holder))

    def _on(self, pes: tuple[int, ...]) -> tuple[Request, ...]:
        """Return the holders that would be bumped from these PEs."""
        return tuple(on_block(self._board, self._holders(), pes))

    def _clear(self, job: WaitingJob, pes: tuple[int, ...]) -> None:
        """Preempts one whose do-not-disturb time has run out, and notes when the others' does. While one
        moves out the others go on: they would stand still until the disk comes to them."""
        moving = any(map(self._leaves, self._on(pes)))
        for holder in self._on(pes):
            if self._leaves(holder):
                continue
            until = undisturbed_until(holder, self._table.of(holder))
            assert until is not None
            if until > self._now or holder.seq in self._new:
                self._dues.append(max(until, Instant(self._now + 1)))
                continue
            if moving:
                continue
            moving = True
            other = self._site.id_of(job.request.seq)
            text = _BUMPED(NAME, other, job.kind.name, len(holder.pes)).text
            self._draft.suspend(holder, BUMPER, text, parked=False, page_out=True, leaving=True)

    # ------------------------------------------------------------ loading

    def _free(self) -> Board:
        """Return the board without the PEs that are being cleared."""
        return self._board.without(self._kept) if self._kept else self._board

    def _load(self, job: WaitingJob, free: Board) -> bool:
        """Give a job PEs that are ``free``, on the largest of its sizes that fits and that no limit refuses;
        True if there is one."""
        lacked: list[tuple[int, str]] = []
        least = self._least(job)
        several = job.request.spec.mold is not None and least is job.request
        if least.spec.ask.pes > free.free or (several and self._held_back(job, least) is not None):
            return False  # nor on any other
        for one in self._sizes(job):
            count, kept = one.spec.ask.pes, self._held_back(job, one)
            if kept is None and count <= self._placement.room(free):
                self._give(job, self._placement.pick(free, count), tuple(lacked))
                return True
            lacked.append((count, (ReasonCode.NO_PES if kept is None else kept.code).value))
        return False

    def _give(self, job: WaitingJob, pes: tuple[int, ...], lacked: Lacked) -> None:
        draft, request = self._draft, job.request
        if job.parked:
            draft.resume(request, BUMPER, pes)
            self._tally.resume(request)
        else:
            starts = sized(draft.what_starts(request), len(pes))
            draft.take(request, pes)
            draft.choose(starts, False, pes, request).lacked = lacked
            self._tally.count(starts)
        self._load_on(request if job.parked else starts, pes, job.parked)
        if job.parked or not (request.array is not None and draft.left_of(request)):
            self._waiting.remove(job)

    def _load_on(self, job: Request, pes: tuple[int, ...], back: bool) -> None:
        """Count a job as loaded on these PEs from now on; ``back``: it was before."""
        before = job.run if back else Attempt(job.attempts + 1, pes, self._now)
        run = replace(before, pes=pes, pause=None, resumed=self._now if back else None)
        self._running.append(replace(job, state=State.RUNNING, attempt=run))
        self._new.add(job.seq)
        for limit in self._limits:
            limit.add(job)

    # ------------------------------------------------------------ why the others wait

    def _say_why(self) -> None:
        draft = self._draft
        if self._waiting:
            draft.short.add(self._domain.name)
        for job in self._waiting:
            least = self._least(job)
            limit = self._limit(job, least) or self._class_refuses(least)
            if limit is not None or job.parked:
                draft.own[job.request.seq] = limit or _gave_way(job.request)
        if self._cleared_for is not None:
            draft.own[self._cleared_for.seq] = _CLEARED(NAME, ", ".join(spans(self._kept)))


def _gave_way(request: Request) -> Reason:
    """Why one that was bumped is not back."""
    return told(ReasonCode.NO_PES, NAME, request.pause.text if request.pause is not None else "")


def is_bumped(request: Request) -> bool:
    """Whether it gave way to a bumper."""
    return request.pause is not None and request.pause.cause == BUMPER


def _is_moving_out(request: Request) -> bool:
    return is_bumped(request) and not request.pes_released


# ---------------------------------------------------------------- the feature


def act(draft: Draft, now: Instant) -> Instant | None:
    """Loads jobs and clears PEs for them, in each domain that has a queue with ``order=class``."""
    served = {name for name, queue in draft.site.settings.queues.items() if queue.order == BY_CLASS}
    if not served:
        return None
    by_domain: dict[str, str] = {}
    for name in served:
        by_domain.setdefault(draft.site.domain_of(name).name, name)
    known = proxy(draft)
    tally = Gate(draft.site, draft.now, lambda: known.ledger, room=draft.rooms)
    dues = []
    for domain, queue in sorted(by_domain.items()):
        if draft.barred is None:
            one = _DomainPass(draft, draft.site.domain(domain), queue, tally, now)
            dues.append(one.run())
    for name in served:
        draft.shut.setdefault(name, _BY_CLASS(f"queue {name}"))
    return min((due for due in dues if due is not None), default=None)


def verify(settings: Settings, site: Site) -> list[str]:
    """Queues that are served by class on a site without classes, or that promise starts as well."""
    found = []
    for queue in settings.queues.values():
        if queue.order != BY_CLASS:
            continue
        if not CLASSES.all(settings):
            found.append(f"queue {queue.name}: order=class, and there is no class: create class production")
        if queue.reserve != 0 or queue.backfill == "none":
            found.append(f"queue {queue.name}: order=class promises no starts: backfill=limit reserve=0")
    return found


def stands(site: Site, action: Action) -> bool:
    """A bumper's reservation in a domain that goes by class; who gives way to somebody who may bump him, and
    who comes back after he did."""
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
    """Whether it goes by class, and one waits in its domain that may bump it."""
    if not is_served(site, request.queue):
        return False
    table, domain = ClassTable(site.settings), site.domain_of(request.queue).name
    lines = (columns for name, columns in site.waiting.items() if len(columns) and is_served(site, name))
    waiting = (columns.request(row) for columns in lines for row in range(len(columns)))
    parked = (each for each in site.paused.values() if is_bumped(each) and is_served(site, each.queue))
    return any(
        may_bump(table.of(each), table.of(request))
        for each in chain(waiting, parked)
        if site.domain_of(each.queue).name == domain and each.seq != request.seq
    )


NAME = "bumper"
FEATURE = Feature(NAME, act, settings=(CLASSES, GANG), verify=verify, stands=stands)
