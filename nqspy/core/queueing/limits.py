"""What runs under the rules of the gate, and which requests they hold. What one request may ask for stands in
`asked`."""

from collections.abc import Callable, Sequence
from weakref import proxy

from nqspy.core import resource_health
from nqspy.core.fair_share import FairShare
from nqspy.core.gate.arrays import ArrayLimit
from nqspy.core.gate.caps import Caps
from nqspy.core.gate.drain import Drain
from nqspy.core.gate.in_shifts import TOGETHER, judged
from nqspy.core.gate.reserved import Reservations
from nqspy.core.gate.rule import IN_A_SHIFT, LESS, RAISED, Mask, Rule, any_of, gravest
from nqspy.core.gate.running import RunLimit, limits_of, scopes_of
from nqspy.core.gate.units import FreeUnits, unit_limits_of
from nqspy.core.queueing.asked import too_wide as too_wide
from nqspy.core.queueing.asked import violation as violation
from nqspy.core.queueing.mold import sizes_of
from nqspy.model.columns import Columns
from nqspy.model.ids import Instant
from nqspy.model.people import lineage
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import Request, Spec, State
from nqspy.model.site import Site


class RunningCounts:
    """The rules of a site with what runs; starts of a pass are added as they are decided. ``now``: the pass's
    (the last event's instant where there is none); ``run_limits`` False leaves out rules that hold a whole
    queue.

    Of a suspended request that gave back its PEs only what it keeps counts, of one that is exiting nothing:
    its processes have ended. ``ledger`` gives use and what the starts commit, for groups' caps; without one,
    use counts as it stood at the site's last event.
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
        self._run_limits = run_limits
        self._caps = Caps(site, ledger or (lambda: FairShare(site, at, {})))
        self.arrays = ArrayLimit(site)
        self._units = FreeUnits(site) if site.settings.consumables else None
        self._by_scope: dict[str, tuple[list[Rule], list[Rule]]] = {}
        self._by_queue: dict[str, list[Rule]] = {}
        known = proxy(self)  # a bound method of it would make a circle
        self.reservations = Reservations(site, self._now, lambda queue: known.rules(queue))  # noqa: PLW0108
        for request in site.started.values():
            if request.state is not State.EXITING:
                self.add(request)

    def rules(self, queue: str) -> list[Rule]:
        """Return the rules for the requests of a queue, in the order in which reasons are looked for."""
        found = self._by_queue.get(queue)
        if found is None:
            site, found, units = self._site, list[Rule](), list[Rule]()
            for who, scope in scopes_of(site.settings, queue):
                if who not in self._by_scope:
                    self._by_scope[who] = [*limits_of(site, who, scope)], [*unit_limits_of(site, who, scope)]
                limits, of_units = self._by_scope[who]
                found += limits
                units += of_units
            found += units
            if self._units is not None:
                found.append(self._units)
            if self._caps.bound:
                found.append(self._caps)
            if self.arrays.bound:
                found.append(self.arrays)
            closing = site.upcoming_stops.get(queue)
            if closing is not None and closing.spill == "drain":
                found.append(Drain(site, queue, self._now))
            self._by_queue[queue] = found
        return found

    # ------------------------------------------------------------ what runs

    def add(self, request: Request) -> None:
        """Count a request as running from now on."""
        for rule in self.rules(request.queue):
            if rule.counts_suspended or not request.pes_released:
                rule.add(request)

    def resume(self, request: Request) -> None:
        """Count a suspended request as running again; one that kept its PEs never ceased to count."""
        for rule in self.rules(request.queue) if request.pes_released else ():
            if not rule.counts_suspended:
                rule.add(request)

    # ------------------------------------------------------------ one request

    def keeping(self, request: Request, forced: bool = False) -> Reason | None:
        """Return why a request may not start: a rule under which it never can, else the first; None if every
        rule lets it start. ``forced``: only the rules that apply to forced requests too."""
        reasons = self._reasons(request, forced)
        return gravest(reasons) if reasons else None

    def never(self, request: Request) -> Reason | None:
        """Return the limit under which a request cannot start whatever ends, unless the limit is raised."""
        return gravest(each for each in self._reasons(request) if each.needed in _LASTING)

    def lacking(self, request: Request) -> Reason | None:
        """Return the units that a request lacks to which no limit applies."""
        return self._units.refuses(request) if self._units is not None else None

    def closed(self, queue: str) -> Reason | None:
        """Return the run limit that holds a whole queue; None while none is reached."""
        limits = (rule for rule in self.rules(queue) if isinstance(rule, RunLimit) and rule.whole_queue)
        return next((rule.reason(1, 0, "") for rule in limits if rule.left() < 1), None)

    def sizes(self, request: Request) -> Sequence[Request]:
        """Return a request on each of the sizes that its queue takes, the most PEs first; itself where it has
        one."""
        if request.spec.mold is None:
            return (request,)
        return sorted(sizes_of(self._site, request), key=lambda one: -one.spec.ask.pes)

    def _reasons(self, request: Request, forced: bool = False) -> list[Reason]:
        """Return what the rules say against a request; first the cap under which it can never start."""
        capped = None if forced or not self._caps.bound else self._caps.never(request)
        found = [] if capped is None else [capped]
        for rule in self.rules(request.queue):
            if rule.holds_forced or not (forced or (rule.whole_queue and not self._run_limits)):
                reason = rule.refuses(request)
                if reason is not None:
                    found.append(reason)
        return [judged(self._site, request, each) for each in found]

    # ------------------------------------------------------------ a whole queue

    def mask(self, queue: Queue, columns: Columns, *, ever: bool = False, own: bool = False) -> Mask | None:
        """Return the rows of a queue that its rules refuse now, that ask for more PEs than its domain has, or
        that need what is broken. ``ever``: even if nothing ran; ``own``: by rules that are not shared alone.
        Rules that hold the whole queue count only where they let nothing run ``ever``."""
        size = self._site.size(queue.name)
        rules = (rule for rule in self.rules(queue.name) if not (own and rule.shared))
        masks = [rule.mask(queue.name, columns, ever=ever) for rule in rules if ever or not rule.whole_queue]
        masks.append(columns.pes > size if columns.most("pes") > size else None)
        masks.append(resource_health.blocked_mask(self._site, columns))
        return any_of(masks)

    @property
    def is_capped(self) -> bool:
        """True if a group has a cap, whose figures change with time."""
        return self._caps.bound

    def opens(self) -> Instant | None:
        """Return when the first group that its past use holds will have forgotten enough of it."""
        return self._caps.opens()


_LASTING = (LESS, RAISED, IN_A_SHIFT, TOGETHER)


def never(site: Site, request: Request) -> Reason | None:
    """Return the limit on what runs under which a request can never start, in no shift; None: it can."""
    settings, found = site.settings, list[Reason | None]()
    for who, scope in scopes_of(settings, request.queue):
        found += [limit.refuses(request) for limit in limits_of(site, who, scope)]
        if request.spec.ask.consumables:
            found += [limit.refuses(request) for limit in unit_limits_of(site, who, scope)]
    groups = settings.groups
    if any(name in groups and groups[name].limit is not None for name in lineage(groups, request.group)):
        found.append(Caps(site, lambda: FairShare(site, site.at, {})).never(request))
    for each in found:
        if each is not None and (reason := judged(site, request, each)).code is ReasonCode.NEVER:
            return reason
    return None


def refusal_of(site: Site, spec: Spec, queue: Queue) -> str | None:
    """Return one line that says why a batch queue can never run a request; None when it can. A moldable
    request waits as the least of its sizes."""
    wrong = violation(site, spec, queue)
    if wrong is None:
        reason = never(site, Request(site.next_seq, spec, queue.name, State.QUEUED, site.at, site.at))
        wrong = reason.text if reason is not None else None
    return wrong
