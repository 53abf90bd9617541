"""When a waiting request would start: the same pass, run forward on a copy of the front of the line."""

from dataclasses import replace

from nqspy.core import features
from nqspy.core.passes import explain, run_pass
from nqspy.core.runtime import expected_wall
from nqspy.engine import timetable, upcoming_stops
from nqspy.engine.enact import enact
from nqspy.engine.virtual.executor import Run, VirtualExecutor
from nqspy.engine.virtual.heap import Heap
from nqspy.model.actions import Plan, Start
from nqspy.model.commands import Configure, decode
from nqspy.model.configure import copy_of
from nqspy.model.events import (
    Eligible,
    Ended,
    Event,
    Recorded,
    Requeued,
    SettingsChanged,
    ShiftChanged,
)
from nqspy.model.ids import DAY, Instant, Seq, array_of
from nqspy.model.lifecycle import apply, place
from nqspy.model.observations import ObservedEnded
from nqspy.model.reasons import ReasonCode
from nqspy.model.requests import Request, State, Used
from nqspy.model.site import Settings, Site
from nqspy.ports import Exits

FRONT = 300
"""Requests of each queue that are looked at: the first in line."""
OFFERS = 100
"""Candidates offered to jobselect in one pass of the copy."""
ROUNDS = 100
"""Passes run forward at most."""
HORIZON = 8 * DAY
"""How far ahead is looked: every weekly shift has come once."""

Estimate = tuple[Instant | None, str]

_BASIS = "requests run as long as their limits or their group's last requests say"


def estimate(site: Site, exits: Exits, request: Request, now: Instant) -> Estimate:
    """(start, basis): the instant at which it would start if every request ran as long as expected, and
    what that rests on. None with a basis that says why no start can be told. The request need not be the
    site's yet; coming shifts and dates count."""
    if request.state is State.HELD:
        return None, "it is held"
    queue = site.settings.queues.get(request.queue)
    waits = request.state is State.QUEUED and queue is not None and queue.started
    kept = features.keeping(site, request) if waits else None
    if kept is not None and kept.code is ReasonCode.MEMORY:
        return None, f"{kept.text}; when that will be nobody knows"
    try:
        with exits.rehearsal(now):
            return _Future(site, request, exits, now).start()
    finally:
        exits.begin(site)
        exits.failures()


def outlook(site: Site, exits: Exits, now: Instant, settings: Settings | None = None) -> dict[Seq, Instant]:
    """When the waiting requests would start, those that would within the looked-at future; ``settings``:
    under these instead of the site's."""
    try:
        with exits.rehearsal(now):
            return _Future(site, None, exits, now, settings).starts()
    finally:
        exits.begin(site)
        exits.failures()


class _Future:
    """A copy of a site on which time is let pass; a virtual executor has its attempts."""

    def __init__(
        self,
        site: Site,
        request: Request | None,
        exits: Exits,
        now: Instant,
        settings: Settings | None = None,
    ) -> None:
        self._wanted, self._exits = request, exits
        self._begin = self._now = now
        self._site = _front(site, request, settings or site.settings)
        self._starts: dict[Seq, Instant] = {}
        # What is made up here is no evidence of how long requests run: only what has ended really.
        self._past = site
        self._heap = Heap()
        self._executor = VirtualExecutor(self._heap, self._rest)
        self._executor.adopt(site.started.values(), site, now)
        upcoming_stops.look(self._site, now)

    def _rest(self, request: Request) -> Run:
        """How long it will run from now on. One that has run longer than expected is expected to run as long
        again."""
        began = request.started if request.started is not None else self._now
        end = began + expected_wall(self._past, request)
        return Run(end - self._now if end > self._now else max(1_000, self._now - began), unlimited=True)

    def start(self) -> Estimate:
        """Runs passes until it starts, or until nothing more is to come."""
        plan = Plan()
        for _ in range(ROUNDS):
            plan = run_pass(self._site, self._now, self._exits, {})
            self._carry_out(plan)
            if self._has_started():
                return self._now, _BASIS
            after = self._next(plan.wake_at)
            if after is None or after > self._begin + HORIZON:
                return None, self._why_never(plan)
            self._pass_to(after)
        return None, f"no start within the looked-at future{self._reason(plan)}"

    def _has_started(self) -> bool:
        """Whether the request has; of an array an index, of one that it has still that one."""
        wanted = self._wanted
        if wanted is None or wanted.array is None:
            return wanted is not None and wanted.seq in self._site.started
        return any(array_of(seq) == wanted.seq for seq in self._starts)

    def starts(self) -> dict[Seq, Instant]:
        """The instants at which requests start, until nothing more is to come."""
        self.start()
        return self._starts

    def _why_never(self, plan: Plan) -> str:
        name = self._wanted.queue if self._wanted is not None else ""
        queue = self._site.settings.queues.get(name)
        if queue is None or not queue.started:
            return f"queue {name} is stopped"
        return f"nothing that is to come lets it start{self._reason(plan)}"

    def _reason(self, plan: Plan) -> str:
        """The reason of one that was not submitted, which stands nowhere else."""
        seq = self._wanted.seq if self._wanted is not None else Seq(0)
        found = explain(self._site, (seq,), plan.reasons).get(seq) if seq not in self._past.requests else None
        return "; see its reason" if found is None else f": {found.text}"

    def _carry_out(self, plan: Plan) -> None:
        for order in enact(self._site, plan, self._happen):
            request = self._site.requests.get(getattr(order, "seq", Seq(0)))
            self._executor.do(order, request, self._site, self._now)
            if isinstance(order, Start):
                self._starts[order.seq] = self._now
        self._see()

    def _next(self, wake: Instant | None) -> Instant | None:
        settings = self._site.settings
        firing = timetable.next_firing(settings, self._site.timezone, self._now)
        firing_at = firing.at if firing is not None else None
        dates = (self._site.next_date(), firing_at, wake, self._heap.next_at())
        return min((date for date in dates if date is not None and date > self._now), default=None)

    def _pass_to(self, at: Instant) -> None:
        """Lets time pass to an instant at which something happens."""
        self._now = at
        self._see()
        due = self._site.due(at)
        if due:
            self._happen(Eligible(due))
        self._enter_shift()

    def _see(self) -> None:
        """What the executor has told by now. That an attempt has begun says nothing new."""
        while (at := self._heap.next_at()) is not None and at <= self._now:
            ends = [seen for seen in self._heap.pop()[1] if isinstance(seen, ObservedEnded)]
            for seen in ends:
                self._happen(self._end(seen, self._site.started[seen.seq]))
            self._executor.ended(ends, self._now)

    def _end(self, seen: ObservedEnded, request: Request) -> Event:
        if seen.ending.reason == "requeued":
            return Requeued(seen.seq, seen.attempt, str(request.ending))
        length = self._now - (request.started or self._now)
        used = Used(max(length * request.spec.ask.pes, request.used.cpu), length)
        return Ended(seen.seq, seen.attempt, "exit", 0, None, used)

    def _enter_shift(self) -> None:
        site = self._site
        firing = timetable.in_force(site.settings, site.timezone, self._now)
        if firing is None or firing.at != self._now:
            return
        commands = [decode(each) for each in site.settings.shifts[firing.shift].commands]
        changes = [c for each in commands if isinstance(each, Configure) for c in each.changes]
        self._happen(SettingsChanged(tuple(changes)))
        self._happen(ShiftChanged(firing.shift, site.shift.current, self._now))
        upcoming_stops.look(site, self._now)

    def _happen(self, event: Event) -> None:
        apply(self._site, Recorded(self._site.n + 1, self._now, event))


def _front(site: Site, wanted: Request | None, settings: Settings) -> Site:
    """A copy with all that runs, the first of each queue by date, and the request that is asked about."""
    copy = Site(copy_of(settings), site.found, site.host, site.zone, shift=site.shift, n=site.n, at=site.at)
    copy.settings.global_.offers_per_pass = min(OFFERS, site.settings.global_.offers_per_pass)
    copy.next_seq, copy.resources, copy.turns = site.next_seq, dict(site.resources), dict(site.turns)
    copy.promises = {feature: dict(kept) for feature, kept in site.promises.items()}
    copy.past = {domain: past.copy() for domain, past in site.past.items()}
    copy.lifetimes = site.lifetimes.copy(closed=True)
    copy.accounts = {key: account.copy() for key, account in site.accounts.items()}
    chosen = {request.seq: request for request in site.started.values()}
    for columns in site.waiting.values():
        first = columns.date.argsort(kind="stable")[:FRONT].tolist()
        chosen |= {(request := columns.request(row)).seq: request for row in first}
    if wanted is not None:
        chosen[wanted.seq] = wanted
    for request in chosen.values():
        copied = replace(request, slot=-1)
        copy.requests[copied.seq] = copied
        copy.tally.enter(copied)
        place(copy, copied)
    return copy
