"""When a waiting request would start: the same pass, run forward on a copy of the front of the line."""

from dataclasses import replace
from typing import Protocol

from nqspy.core import features
from nqspy.core.passes import explain, run_pass
from nqspy.core.runtime import UNKNOWN, expected_wall
from nqspy.engine import closings, timetable
from nqspy.engine.enact import event_of
from nqspy.model.actions import Action, Plan, Requeue, Resume, Start, Suspend
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
from nqspy.model.ids import DAY, Instant, Seq
from nqspy.model.lifecycle import apply, place
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


class Ground(Protocol):
    """What an estimate stands on: the engine has it."""

    site: Site
    exits: Exits


def estimate(engine: Ground, request: Request, now: Instant) -> Estimate:
    """(start, basis): the instant at which it would start if every request ran as long as expected, and
    what that rests on. None with a basis that says why no start can be told."""
    return estimate_on(engine.site, engine.exits, request, now)


def estimate_on(site: Site, exits: Exits, request: Request, now: Instant) -> Estimate:
    """The same for a site and its exits; the request need not be the site's yet. Coming shifts and dates
    count."""
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
    """A copy of a site on which time is let pass."""

    def __init__(
        self,
        site: Site,
        request: Request | None,
        exits: Exits,
        now: Instant,
        settings: Settings | None = None,
    ) -> None:
        self._wanted, self._exits, self._now = request, exits, now
        self._site = _front(site, request, settings or site.settings)
        self._starts: dict[Seq, Instant] = {}
        # What is made up here is no evidence of how long requests run: only what has ended really.
        self._past = site
        self._ends = {seq: _expected_end(site, r, now) for seq, r in site.started.items()}
        # What suspended requests have still to run, ms.
        self._rests: dict[Seq, int] = {}
        for seq in [seq for seq, r in site.started.items() if r.state is State.SUSPENDED]:
            self._pause(seq, now)
        closings.look(self._site, now)

    def start(self) -> Estimate:
        """Runs passes until it starts, or until nothing more is to come."""
        at, plan = self._now, Plan()
        for _ in range(ROUNDS):
            plan = run_pass(self._site, at, self._exits, {})
            self._carry_out(plan.actions, at)
            if self._wanted is not None and self._wanted.seq in self._site.started:
                return at, _BASIS
            after = self._next(at, plan.wake_at)
            if after is None or after > self._now + HORIZON:
                return None, self._why_never(plan)
            at = after
            self._let_happen(at)
        return None, f"no start within the looked-at future{self._reason(plan)}"

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

    def _next(self, at: Instant, wake: Instant | None) -> Instant | None:
        settings = self._site.settings
        firing = timetable.next_firing(settings, self._site.timezone, at)
        firing_at = firing.at if firing is not None else None
        dates = (self._site.next_date(), firing_at, wake, *self._ends.values())
        return min((date for date in dates if date is not None and date > at), default=None)

    def _let_happen(self, at: Instant) -> None:
        for seq in [seq for seq, end in self._ends.items() if end <= at]:
            request = self._site.started[seq]
            length = at - (request.started or at)
            used = Used(max(length, request.used.cpu), length)
            self._happen(at, Ended(seq, request.attempts, "exit", 0, None, used))
            del self._ends[seq]
        due = self._site.due(at)
        if due:
            self._happen(at, Eligible(due))
        self._enter_shift(at)

    def _enter_shift(self, at: Instant) -> None:
        site = self._site
        firing = timetable.in_force(site.settings, site.timezone, at)
        if firing is None or firing.at != at:
            return
        commands = [decode(each) for each in site.settings.shifts[firing.shift].commands]
        changes = [c for each in commands if isinstance(each, Configure) for c in each.changes]
        self._happen(at, SettingsChanged(tuple(changes)))
        self._happen(at, ShiftChanged(firing.shift, site.shift.current, at))
        closings.look(site, at)

    def _happen(self, at: Instant, event: Event) -> None:
        apply(self._site, Recorded(self._site.n + 1, at, event))

    def _carry_out(self, actions: tuple[Action, ...], at: Instant) -> None:
        for action in actions:
            event = event_of(self._site, action)
            if event is not None:
                self._happen(at, event)
            if isinstance(action, Start):
                self._starts[action.seq] = at
                self._ends[action.seq] = _expected_end(self._past, self._site.started[action.seq], at)
            elif isinstance(action, Suspend):
                self._pause(action.seq, at)
            elif isinstance(action, Resume):
                self._ends[action.seq] = Instant(at + self._rests.pop(action.seq, UNKNOWN))
            elif isinstance(action, Requeue):
                self._ends.pop(action.seq, None)
                self._happen(at, Requeued(action.seq, action.attempt, action.text))

    def _pause(self, seq: Seq, at: Instant) -> None:
        """It makes no progress until it goes on."""
        end = self._ends.pop(seq, None)
        if end is not None:
            self._rests[seq] = max(1, end - at)


def _front(site: Site, wanted: Request | None, settings: Settings) -> Site:
    """A copy with all that runs, the first of each queue by date, and the request that is asked about."""
    copy = Site(copy_of(settings), site.found, site.host, site.zone, shift=site.shift, n=site.n, at=site.at)
    copy.settings.global_.offers_per_pass = min(OFFERS, site.settings.global_.offers_per_pass)
    copy.next_seq, copy.resources = site.next_seq, dict(site.resources)
    copy.promises = {feature: dict(kept) for feature, kept in site.promises.items()}
    copy.past = {domain: past.twin() for domain, past in site.past.items()}
    copy.accounts = {key: account.twin() for key, account in site.accounts.items()}
    chosen = {request.seq: request for request in site.started.values()}
    for columns in site.waiting.values():
        first = columns.date.argsort(kind="stable")[:FRONT].tolist()
        chosen |= {(request := columns.request(row)).seq: request for row in first}
    if wanted is not None:
        chosen[wanted.seq] = wanted
    for request in chosen.values():
        twin = replace(request, slot=-1)
        copy.requests[twin.seq] = twin
        copy.tally.enter(twin)
        place(copy, twin)
    return copy


def _expected_end(site: Site, request: Request, now: Instant) -> Instant:
    """One that has run longer than expected is expected to run as long again."""
    began = request.started if request.started is not None else now
    end = began + expected_wall(site, request)
    return Instant(end if end > now else now + max(1_000, now - began))
