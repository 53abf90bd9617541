"""Health: what needs a broken resource is not started, and what runs and needs it gives way as its probe
says (``running=hold|suspend|requeue``). All is released by itself once the probe is well again.

`Count` tells from single tries when a resource counts as broken: the daemon's probes and the simulator use
it alike.
"""

from collections.abc import Iterator

from msgspec import Struct

from nqspy.core.draft import Draft
from nqspy.core.feature import Feature
from nqspy.core.resource_health import PROBES, broken, first_of, keeping, needs_of, reason, tried
from nqspy.model.actions import Action, Requeue, Suspend
from nqspy.model.cause import Cause
from nqspy.model.health import Health, Probe
from nqspy.model.ids import Instant
from nqspy.model.reasons import Reason
from nqspy.model.requests import Request, State
from nqspy.model.site import Site

_STRENGTH = {"suspend": 1, "requeue": 2}


def act(draft: Draft, now: Instant) -> Instant | None:
    """Shuts the queues that need something broken, and has started requests give way or stay parked."""
    found = broken(draft.site) if draft.site.resources else {}
    if found:
        for queue in draft.site.settings.queues.values():
            kept = first_of(found, iter(queue.needs))
            if kept is not None:
                draft.shut.setdefault(queue.name, kept)
        for request in draft.running():
            _give_way(draft, request)
        for request in draft.parked():
            _stay(draft, request)
    return None


# ---------------------------------------------------------------- requests that were started


class ResourceWish(Struct, frozen=True):
    """What shall become of a started request, and the probe that wants it."""

    action: str
    probe: str

    @property
    def until_then(self) -> str:
        """Until when it is wished, as people read it."""
        return f"resource {self.probe} is broken; it goes on when probe {self.probe} is well again"


def wish(site: Site, request: Request) -> ResourceWish | None:
    """What shall become of a started request while resources it needs are broken: the strongest of their
    probes' wishes (requeue, suspend); None: it goes on. One that cannot be run again is never requeued."""
    best: ResourceWish | None = None
    for each in _wishes(site, request):
        if best is None or _STRENGTH[each.action] > _STRENGTH[best.action]:
            best = each
    return best


def stands(site: Site, action: Action) -> bool:
    """Whether a probe still wants this of a started request."""
    if not isinstance(action, Suspend | Requeue) or action.cause.kind != "probe":
        return False
    return ResourceWish(action.kind, action.cause.name) in _wishes(site, site.started[action.seq])


def explain(site: Site, request: Request) -> Reason | None:
    """The broken resource that keeps a request from starting, or from going on."""
    if not site.resources:
        return None
    if request.state is not State.SUSPENDED:
        return keeping(site, request)
    wished = wish(site, request) if request.pes_released else None
    return _staying(site, wished) if wished is not None else None


def _staying(site: Site, wished: ResourceWish) -> Reason:
    return reason(wished.probe, site.resources[wished.probe], goes_on=True)


def _wishes(site: Site, request: Request) -> Iterator[ResourceWish]:
    found = broken(site)
    for name in needs_of(site, request) if found else ():
        probe = tried(site).get(name) if name in found else None
        if probe is not None and probe.running in _STRENGTH and _can(probe, request):
            yield ResourceWish(probe.running, name)


def _can(probe: Probe, request: Request) -> bool:
    return probe.running != "requeue" or request.spec.rerunnable


def _said(draft: Draft, wished: ResourceWish) -> tuple[Cause, str]:
    said = draft.site.resources[wished.probe].text
    return Cause("probe", wished.probe), f"resource {wished.probe} is broken{f': {said}' if said else ''}"


def _give_way(draft: Draft, request: Request) -> None:
    wished = wish(draft.site, request)
    if wished is not None:
        cause, text = _said(draft, wished)
        if wished.action == "requeue":
            draft.requeue(request, cause, text)
        else:
            draft.suspend(request, cause, text, parked=True)


def _stay(draft: Draft, request: Request) -> None:
    wished = wish(draft.site, request)
    if wished is not None:
        draft.keep(request, _staying(draft.site, wished))
        if wished.action == "requeue":
            draft.requeue(request, *_said(draft, wished))


# ---------------------------------------------------------------- single tries


class Count:
    """Counts good and failed tries of one probe in a row. ``state`` is what it is known as: None before its
    first result."""

    def __init__(self, state: Health | None = None) -> None:
        self.state = state
        self._row = 0

    def tell(self, probe: Probe, good: bool) -> Health | None:
        """Takes one try's result; the new state if that makes one: broken after ``fails`` failed tries in a
        row, ok after ``recovers`` good ones, or after the first where nothing is known yet."""
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


FEATURE = Feature("health", act, (PROBES,), stands=stands, explain=explain)
