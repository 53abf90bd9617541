"""Limits on running requests, of all scopes that hold for a queue together (each rule of them is in
`limit_rules`, groups' caps in `caps`). What one request may ask for stands in `asked`."""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import attrgetter
from weakref import proxy

import numpy as np

from nqspy.core import resource_health
from nqspy.core.fair_share import FairShare
from nqspy.core.queueing.array_limit import ArrayLimit
from nqspy.core.queueing.asked import too_wide as too_wide
from nqspy.core.queueing.asked import violation as violation
from nqspy.core.queueing.caps import Caps
from nqspy.core.queueing.in_shifts import TOGETHER, judged
from nqspy.core.queueing.limit_rules import (
    IN_A_SHIFT,
    LESS,
    LIMITS,
    RAISED,
    Headroom,
    LimitRule,
    Mask,
    MemoryLimit,
    PeLimit,
    RunLimit,
    ScopeCount,
    ShiftDrain,
    gravest,
)
from nqspy.core.queueing.mold import sizes_of
from nqspy.core.queueing.reservations import Reservations
from nqspy.core.queueing.unit_rules import UNIT_LIMITS, UnitRules, amounts
from nqspy.core.runtime import memory_counted
from nqspy.model.columns import Columns
from nqspy.model.ids import Instant
from nqspy.model.people import lineage
from nqspy.model.queues import LIMIT_NAMES, Queue, RunningLimits
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import Request, Spec, State
from nqspy.model.site import Settings, Site

# ---------------------------------------------------------------- what runs, and what that leaves


_mosts, _queue = attrgetter(*LIMIT_NAMES), attrgetter("queue")
_UNLIMITED = (None,) * len(LIMIT_NAMES)


class RunningCounts:
    """Running requests counted under every limit; starts of a pass are added as they are decided. ``now``:
    the pass's (the last event's instant where there is none); ``run_limits`` False leaves run limits out,
    which keep back a whole queue alike.

    Of a parked request (`Request.pes_released`) only its memory counts: it neither runs nor holds PEs. Of one
    that is exiting nothing does: its processes have ended.

    ``ledger`` gives use and what the starts commit, for groups' caps (it is asked for only where there are
    caps); without one, use counts as it stood at the site's last event.
    """

    def __init__(
        self,
        site: Site,
        ledger: Callable[[], FairShare] | None = None,
        *,
        run_limits: bool = True,
        now: Instant | None = None,
    ) -> None:
        self._site = site
        self._now = at = site.at if now is None else now
        self._caps = Caps(site, ledger or (lambda: FairShare(site, at, {})))
        self.arrays = ArrayLimit(site)
        self._left_out = None if run_limits else RunLimit
        self._counts: dict[str, ScopeCount] = {}
        self._scopes: dict[str, tuple[list[ScopeCount], list[LimitRule]]] = {}
        self._units = UnitRules(site)
        counted = self._caps.bound or self.arrays.bound
        known = proxy(self)  # a bound method of it would make a circle
        self.reservations = Reservations(site, self._now, lambda queue: known.rules(queue))  # noqa: PLW0108
        if counted or site.settings.consumables or self._limits_what_runs():
            self._count_running(counted)

    def _limits_what_runs(self) -> bool:
        queues = set(map(_queue, self._site.started.values()))
        return any(self._of(queue)[0] for queue in queues)

    def _count_running(self, all_of_them: bool) -> None:
        for request in self._site.started.values():
            if request.state is State.EXITING:
                continue
            if all_of_them or request.spec.ask.consumables or self._of(request.queue)[0]:
                self.add(request)

    @property
    def is_capped(self) -> bool:
        """Whether a group has a cap, whose figures change with time."""
        return self._caps.bound

    def sizes(self, request: Request) -> Sequence[Request]:
        """A request on each of the sizes that its queue takes, the most PEs first; itself where it has
        one."""
        if request.spec.mold is None:
            return (request,)
        return sorted(sizes_of(self._site, request), key=lambda one: -one.spec.ask.pes)

    def add(self, request: Request) -> None:
        """Counts a request as running from now on."""
        counts, _ = self._of(request.queue)
        if request.spec.ask.consumables:
            self._units.add(request, _scopes(self._site.settings, request.queue))
        if counts:
            memory = memory_counted(self._site.settings, request.queue, request.spec.ask)
            for count in counts:
                count.memory += memory
        if (counts or self._caps.bound or self.arrays.bound) and not request.pes_released:
            self._run(request, counts)

    def resume(self, request: Request) -> None:
        """Counts a parked request as running again; one that kept its PEs never ceased to count."""
        if request.pes_released:
            self._run(request, self._of(request.queue)[0])

    def _run(self, request: Request, counts: list[ScopeCount]) -> None:
        if self._caps.bound:
            self._caps.add(request)
        if self.arrays.bound:
            self.arrays.add(request)
        for count in counts:
            count.add(request)

    def rules(self, queue: str) -> list[LimitRule]:
        """What holds for the requests of a queue, in the order in which reasons are looked for."""
        return self._of(queue)[1]

    def _of(self, queue: str) -> tuple[list[ScopeCount], list[LimitRule]]:
        found = self._scopes.get(queue)
        if found is None:
            settings, counts = self._site.settings, []
            rules: list[LimitRule] = []
            for who, scope in _scopes(settings, queue):
                if (mosts := _mosts(scope)) == _UNLIMITED:
                    continue
                limits = zip(LIMITS, mosts, strict=True)
                if chosen := [(rule, most) for rule, most in limits if most is not None]:
                    counts.append(self._counts.setdefault(who, ScopeCount()))
                    rules += [rule(settings, who, most, counts[-1]) for rule, most in chosen]
            closing = self._site.upcoming_stops.get(queue)
            drains = closing is not None and closing.spill == "drain"
            if self._units.free is not None:
                rules += self._units.rules(queue, _scopes(settings, queue))
            if self._caps.bound:
                rules.append(self._caps)
            if self.arrays.bound:
                rules.append(self.arrays)
            if drains:
                rules.append(ShiftDrain(self._site, queue, self._now))
            found = self._scopes[queue] = counts, rules
        return found

    def closed(self, queue: str) -> Reason | None:
        """The run limit that keeps back a whole queue; None while none is reached."""
        for rule in self._of(queue)[1]:
            if isinstance(rule, RunLimit) and (reason := rule.reached()) is not None:
                return reason
        return None

    def headroom(self, queue: str, *, ever: bool = False) -> Headroom:
        """What is left for a queue now, reached run limits apart; ``ever``: what would be left if nothing ran
        (what asks for more can never start, or not before a shift stops the queue)."""
        headroom: Headroom = {}
        for rule in self._of(queue)[1]:
            left, kind = rule.left(ever), type(rule)
            if left is not None:
                headroom[kind] = left.narrowed(headroom[kind]) if kind in headroom else left
        return headroom

    def opens(self) -> Instant | None:
        """When the first group that its past use keeps back will have forgotten enough of it."""
        return self._caps.opens()

    def lacking(self, request: Request) -> Reason | None:
        """The units that one lacks for which limits do not hold."""
        return self._units.free.reason(request) if self._units.free is not None else None

    def never(self, request: Request) -> Reason | None:
        """Return the limit under which a request cannot start whatever ends, unless the limit is raised."""
        return gravest(each for each in self._reasons(request) if each.needed in _LASTING)

    def keeping(self, request: Request, forced: bool = False) -> Reason | None:
        """Return the limit that keeps one request back: one under which it can never start, else the first;
        None if every limit lets it start. PE limits, a want of units, and a shift that drains the queue hold
        for ``forced`` requests too."""
        reasons = self._reasons(request, forced)
        return gravest(reasons) if reasons else None

    def _reasons(self, request: Request, forced: bool = False) -> list[Reason]:
        """Return what the limits say against a request; first the cap under which it can never start."""
        capped = None if forced or not self._caps.bound else self._caps.never(request)
        found = [] if capped is None else [capped]
        for rule in self._of(request.queue)[1]:
            if rule.for_forced or not (forced or type(rule) is self._left_out):
                reason = rule.reason(request)
                if reason is not None:
                    found.append(reason)
        site = self._site
        return [judged(site, request, each, _scopes(site.settings, request.queue)) for each in found]


_LASTING = (LESS, RAISED, IN_A_SHIFT, TOGETHER)


def never(site: Site, request: Request) -> Reason | None:
    """Return the limit on what runs under which a request can never start, in no shift; None: it can."""
    settings, asked = site.settings, request.spec.ask
    rules: list[LimitRule] = []
    for who, scope in _scopes(settings, request.queue):
        if scope.memory_limit is not None:
            rules.append(MemoryLimit(settings, who, scope.memory_limit, _IDLE))
        if scope.pe_limit is not None:
            rules.append(PeLimit(settings, who, scope.pe_limit, _IDLE))
        if asked.consumables:
            given = ((rule, getattr(scope, rule.setting)) for rule in UNIT_LIMITS)
            rules += [rule(site, who, amounts(limits), {}) for rule, limits in given if limits]
    found = [reason for rule in rules if (reason := rule.reason(request)) is not None]
    groups = settings.groups
    for name in lineage(groups, request.group):
        if name in groups and groups[name].limit is not None:
            capped = Caps(site, lambda: FairShare(site, site.at, {})).never(request)
            found += () if capped is None else (capped,)
            break
    for each in found:
        reason = judged(site, request, each, _scopes(settings, request.queue))
        if reason.code is ReasonCode.NEVER:
            return reason
    return None


_IDLE = ScopeCount()
"""What runs where nothing runs."""


def refusal_of(site: Site, spec: Spec, queue: Queue) -> str | None:
    """Return one line that says why a batch queue can never run a request; None when it can. A moldable
    request waits as the least of its sizes."""
    wrong = violation(site, spec, queue)
    if wrong is None:
        reason = never(site, Request(site.next_seq, spec, queue.name, State.QUEUED, site.at, site.at))
        wrong = reason.text if reason is not None else None
    return wrong


def _scopes(settings: Settings, queue: str) -> Iterator[tuple[str, RunningLimits]]:
    """Whose limits hold for the requests of a queue, by name: its own, its complexes', the whole site's."""
    if queue in settings.queues:
        yield f"queue {queue}", settings.queues[queue]
    yield from ((f"complex {each.name}", each) for each in settings.complexes_of(queue))
    yield "global", settings.global_


def blocked_mask(site: Site, headroom: Headroom, queue: Queue, columns: Columns) -> Mask | None:
    """Rows that a gate keeps back, those included that ask for more PEs than the queue's domain has or need
    what is broken; None if no row is."""
    size = site.size(queue.name)
    wide = columns.most("pes") > size
    if not (headroom or wide or site.resources):
        return None
    masks = [rule.mask(site, left, queue.name, columns) for rule, left in headroom.items()]
    masks.append(columns.pes > size if wide else None)
    masks.append(resource_health.blocked_mask(site, columns))
    found = [mask for mask in masks if mask is not None]
    return reduce(np.logical_or, found) if found else None
