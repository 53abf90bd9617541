"""Health: a request that needs a broken resource does not start, and one that runs gives way as the probe is
set (``running=hold|suspend|requeue``). When the probe is well again, all requests go on by themselves.

`Count` decides from single tries if a resource is broken, for the daemon's probes and for the simulator.
"""

from collections.abc import Iterator

from msgspec import Struct

from nqspy.core.draft import Draft
from nqspy.core.feature import Feature
from nqspy.core.resource_health import broken, first_of, needs_of, reason, tried, why_blocked
from nqspy.model.actions import Action, Requeue, Suspend
from nqspy.model.cause import Cause
from nqspy.model.health import Health, Probe
from nqspy.model.ids import Instant
from nqspy.model.reasons import Reason
from nqspy.model.requests import Request, State
from nqspy.model.site import Site

_STRENGTH = {"suspend": 1, "requeue": 2}


def act(draft: Draft, now: Instant) -> Instant | None:
    """Close in this pass the queues that need a broken resource. Suspend or requeue started requests that
    need one, as its probe is set, and keep suspended ones suspended."""
    resources = broken(draft.site) if draft.site.resources else {}
    if not resources:
        return None
    for queue in draft.site.settings.queues.values():
        why = first_of(resources, iter(queue.needs))
        if why is not None:
            draft.shut.setdefault(queue.name, why)
    for request in draft.running():
        if (wished := wish(draft.site, request)) is not None:
            if wished.action == "requeue":
                draft.requeue(request, *_cause(draft, wished))
            else:
                draft.suspend(request, *_cause(draft, wished), pes_released=True)
    for request in draft.released():
        if (wished := wish(draft.site, request)) is not None:
            draft.keep_suspended(request, _staying(draft.site, wished))
            if wished.action == "requeue":
                draft.requeue(request, *_cause(draft, wished))
    return None


# ---------------------------------------------------------------- requests that were started


class ResourceWish(Struct, frozen=True):
    """Action (``suspend`` or ``requeue``) on a started request, and the probe that wants it."""

    action: str
    probe: str

    @property
    def until_then(self) -> str:
        """Text for a suspended request: the broken resource, and when the request goes on."""
        return f"resource {self.probe} is broken; it resumes when probe {self.probe} succeeds again"


def wish(site: Site, request: Request) -> ResourceWish | None:
    """Return the strongest action that probes of broken resources want on a started request, requeue before
    suspend; None: it goes on. A request that cannot be rerun is never requeued."""
    return max(_wishes(site, request), key=lambda each: _STRENGTH[each.action], default=None)


def stands(site: Site, action: Action) -> bool:
    """True if a probe still wants this action on a started request."""
    if not isinstance(action, Suspend | Requeue) or action.cause.kind != "probe":
        return False
    wish = "suspend" if isinstance(action, Suspend) else "requeue"
    return ResourceWish(wish, action.cause.name) in _wishes(site, site.started[action.seq])


def why_held(site: Site, request: Request) -> Reason | None:
    """Return the reason of a broken resource that holds a waiting or suspended request; None: none does."""
    if not site.resources:
        return None
    if request.state is not State.SUSPENDED:
        return why_blocked(site, request)
    wished = wish(site, request) if request.pes_released else None
    return _staying(site, wished) if wished is not None else None


def _staying(site: Site, wished: ResourceWish) -> Reason:
    return reason(wished.probe, site.resources[wished.probe], goes_on=True)


def _wishes(site: Site, request: Request) -> Iterator[ResourceWish]:
    resources = broken(site)
    for name in needs_of(site, request) if resources else ():
        probe = tried(site).get(name) if name in resources else None
        if probe is None or probe.running not in _STRENGTH:
            continue
        if probe.running != "requeue" or request.spec.rerunnable:
            yield ResourceWish(probe.running, name)


def _cause(draft: Draft, wished: ResourceWish) -> tuple[Cause, str]:
    result = draft.site.resources[wished.probe].text
    return Cause("probe", wished.probe), f"resource {wished.probe} is broken{f': {result}' if result else ''}"


# ---------------------------------------------------------------- single tries


class Count:
    """Counter of good or failed tries in a row of one probe. ``state``: None before the first result."""

    def __init__(self, state: Health | None = None) -> None:
        self.state = state
        self._row = 0

    def record(self, probe: Probe, good: bool) -> Health | None:
        """Count the result of a try; return the new state if it changes: to broken after ``fails`` failed
        tries in a row, to ok after ``recovers`` good ones, or after a first good one."""
        result: Health = "ok" if good else "broken"
        if result == self.state:
            self._row = 0
            return None
        self._row = self._row + 1 if self.state is not None or not good else 1
        needed = probe.fails if not good else probe.recovers if self.state is not None else 1
        if self._row < needed:
            return None
        self.state, self._row = result, 0
        return result


FEATURE = Feature("health", act, stands=stands, why_held=why_held)
