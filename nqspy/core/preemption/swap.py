"""Swap control: when memory is short the requests that hold most of it give way; they come back when there is
room (seed 003, section 6.3).

High: nothing new is started, and one request for each reading is suspended, its pages given back. It is the
one that gave way least often among those that hold a quarter at least of what the largest holds, and of these
the largest: so none gives way more than once oftener than another of comparable size. One that started or
came back stays for ``min_resident``; small ones never give way.

Calm: for each reading one comes back, longest suspended first, if what it held fits under the low mark. As
long as one is away nothing new is started, so that the room becomes its own; when no other large one runs it
comes back in any case. Where the requests themselves fill the memory the last large one goes on, for its end
is what helps, and where giving way frees nothing (there is no swap) the only thing. While people work at
terminals neither holds: the room is theirs until they rest.

The PEs of one that gives way stay its own. Whom people suspended is not touched.
"""

from collections.abc import Iterable, Mapping

from nqspy.core.draft import Draft
from nqspy.core.feature import Domain, Feature
from nqspy.model.actions import Action, Resume, Suspend
from nqspy.model.cause import declare_feature
from nqspy.model.health import Pressure, SwapControl
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import Request, State
from nqspy.model.site import Site

SWAP = declare_feature("swap")

COMPARABLE = 4
"""Requests are of comparable size when one holds a quarter at least of what the other does."""


def act(draft: Draft, domain: Domain, now: Instant) -> Instant | None:
    """Lets one give way or come back. Due when one that must stay for now may give way."""
    control, pressure = draft.site.settings.swap_control, draft.site.pressure
    away = sorted(suspended(draft.site), key=_by_suspension)
    if not control.enabled:
        for request in away:
            draft.resume(request, SWAP)
        return None
    held, due, back = Held(draft), None, None
    if not pressure.answered:
        if pressure.level == "high":
            due = _give_way(draft, held, now)
        back = _comes_back(draft, held, away)
    if back is not None:
        draft.resume(back, SWAP)
    for request in away:
        if request is not back:
            draft.keep(request, why_away(request, control, pressure))
    if pressure.level != "calm" or len(away) > (back is not None):
        _nothing_starts(draft, why_nothing_starts(control, pressure))
    return due


def stands(site: Site, action: Action) -> bool:
    """Whether memory is still short, for one that gives way; whether one that comes back is still away."""
    request, pressure = site.started.get(getattr(action, "seq", 0)), site.pressure
    if isinstance(action, Suspend):
        return action.cause == SWAP and pressure.level == "high" and not pressure.answered
    return isinstance(action, Resume) and request is not None and gave_way(request) and not action.pes


def explain(site: Site, request: Request) -> Reason | None:
    """Why a request does not start, or come back, for want of memory."""
    control, pressure = site.settings.swap_control, site.pressure
    if not control.enabled:
        return None
    if gave_way(request):
        return why_away(request, control, pressure)
    stays = request.state is State.SUSPENDED and not request.pes_released
    if stays or (pressure.level == "calm" and not any(suspended(site))):
        return None
    return why_nothing_starts(control, pressure)


def _nothing_starts(draft: Draft, reason: Reason) -> None:
    """Neither what waits nor what is parked."""
    draft.barred = reason
    for request in draft.parked():
        if request.seq not in draft.own:
            draft.keep(request, reason)


def suspended(site: Site) -> Iterable[Request]:
    """Requests that gave way and are not asked to end."""
    return (r for r in site.started.values() if gave_way(r) and not r.ending)


def gave_way(request: Request) -> bool:
    """Whether swap control has suspended it."""
    return request.pause is not None and request.pause.cause == SWAP


class Held:
    """Bytes in memory by request, by the last reading, else by what it used at most."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._known: Mapping[Seq, int] = dict(draft.site.pressure.resident)
        self.total = draft.site.pressure.total or draft.site.found.memory

    def now(self, request: Request) -> int:
        """What it holds."""
        known = self._known.get(request.seq)
        sample = self._draft.samples.get(request.seq)
        return known if known is not None else max(request.used.memory, sample.memory if sample else 0)

    def needed(self, request: Request) -> int:
        """What one that gave way will hold again beyond what it still holds."""
        return max(0, request.run.preempted_bytes - self._known.get(request.seq, 0))

    def by_others(self) -> float:
        """Per cent of the memory in use by others than the requests."""
        ours = sum(self._known.values())
        return self._draft.site.pressure.used - (100 * ours / self.total if self.total else 0.0)

    def large(self) -> list[Request]:
        """Running requests that matter."""
        small = self._draft.site.settings.swap_control.small
        return [request for request in self._draft.running() if self.now(request) > small]


# ---------------------------------------------------------------- giving way


def _give_way(draft: Draft, held: Held, now: Instant) -> Instant | None:
    """Proposes the one that gives way; else says when one may."""
    control, large = draft.site.settings.swap_control, held.large()
    if len(large) == 1 and held.by_others() < control.low and not draft.site.pressure.people:
        return None
    free = [request for request in large if free_at(request, control) <= now]
    victim = choose({request.seq: held.now(request) for request in free}, free)
    if victim is None:
        return min((free_at(request, control) for request in large), default=None)
    text = _gives_way(held.now(victim), draft.site.pressure)
    draft.suspend(victim, SWAP, text, parked=False, page_out=True)
    return None


def free_at(request: Request, control: SwapControl) -> Instant:
    """When a running request has been in memory for ``min_resident``."""
    since = max(request.run.started, request.run.resumed or 0)
    return Instant(since + control.min_resident)


def choose(held: Mapping[Seq, int], requests: Iterable[Request]) -> Request | None:
    """Of requests that may give way the one that does: of comparable ones the one that did least often, then
    the largest."""
    most = max(held.values(), default=0)
    comparable = [request for request in requests if held[request.seq] * COMPARABLE >= most]
    return min(comparable, key=lambda r: (r.run.preempted_times, -held[r.seq], r.seq), default=None)


# ---------------------------------------------------------------- coming back


def _comes_back(draft: Draft, held: Held, away: list[Request]) -> Request | None:
    """The one that comes back; whom an earlier feature keeps back stays."""
    control, pressure = draft.site.settings.swap_control, draft.site.pressure
    mine = [request for request in away if request.seq not in draft.own]
    alone = mine[0] if mine and not held.large() and not pressure.people else None
    if pressure.level == "calm":
        room = (control.low - pressure.used) * held.total / 100
        return next((request for request in mine if held.needed(request) <= room), alone)
    return alone if held.by_others() < control.low else None


def _by_suspension(request: Request) -> tuple[int, Seq]:
    return (request.pause.at if request.pause is not None else 0, request.seq)


# ---------------------------------------------------------------- in words


def why_away(request: Request, control: SwapControl, pressure: Pressure) -> Reason:
    """Why a request that gave way is not back."""
    gave = request.run.preempted_bytes
    if pressure.level == "calm":
        mark = f"when that leaves room under {control.low:g} %"
        text = f"its memory ({words(gave)}) gave way: {_now(pressure)} now; it comes back {mark}"
    else:
        text = _gives_way(gave, pressure)
    return Reason(ReasonCode.MEMORY, str(SWAP), text)


def _gives_way(held: int, pressure: Pressure) -> str:
    return (
        f"its memory ({words(held)} resident) gives way: {_now(pressure)}; it comes back when there is room"
    )


def _now(pressure: Pressure) -> str:
    return pressure.text or f"{pressure.used:.0f} % in use"


def why_nothing_starts(control: SwapControl, pressure: Pressure) -> Reason:
    """Why nothing new is started."""
    if pressure.level == "calm":
        text = "requests that gave way to memory pressure come back first"
    else:
        text = f"memory is short: {_now(pressure)}; it starts when less than {control.low:g} % is"
    return Reason(ReasonCode.MEMORY, str(SWAP), text)


def words(size: int) -> str:
    """A size in words of 8 bytes, as people of a computing centre say it: ``93 Mw``, ``0.5 Mw``."""
    mega = size / 8 / 2**20
    return f"{mega:.0f} Mw" if mega >= 10 else f"{mega:.1f} Mw"


FEATURE = Feature("swap", act, stands=stands, explain=explain)
