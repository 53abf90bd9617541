"""Spill: what still runs in a queue that the shift in force has stopped is suspended or queued again, as the
shift says (``set shift day spill=...``), and goes on when the queue is started again.

What ``drain`` keeps back beforehand is a limit like others: see `gate.drain`.
"""

from nqspy.core.draft import Draft
from nqspy.core.feature import Feature
from nqspy.core.runtime import wall_limit
from nqspy.model.actions import Action, Requeue, Suspend
from nqspy.model.cause import Cause
from nqspy.model.ids import Instant
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds, told
from nqspy.model.requests import Request, State
from nqspy.model.shifts import Shift
from nqspy.model.site import Settings, Site

_STAYS, _WILL_REST, _WILL_END = reason_kinds(
    ReasonCode.SHIFT,
    shift_stopped="{who} stopped queue {queue}; it goes on when the queue is started again",
    will_rest="if it still runs then, it will be suspended at {clock}, when {who} stops queue {queue}",
    will_end="if it still runs then, it will be ended and queued again at {clock}, "
    "when {who} stops queue {queue}",
)


def verify(settings: Settings, site: Site) -> list[str]:
    """Shifts whose ``spill`` means nothing."""
    return [
        f"shift {shift.name}: spill={shift.spill} means nothing, its commands stop no queue"
        for shift in settings.shifts.values()
        if shift.spill != "leave" and not any(map(shift.leaving().stops, settings.queues))
    ]


def act(draft: Draft, now: Instant) -> Instant | None:
    """Suspends or queues again what spills, and keeps suspended what must not go on yet."""
    site = draft.site
    shift = _in_force(site)
    if shift is not None:
        for request in draft.running():
            if wish(site, request) is not None:
                _spill(draft, shift, request)
    for request in draft.parked():
        kept = explain(site, request)
        if kept is not None:
            draft.keep(request, kept)
    return None


def _cause(shift: Shift) -> Cause:
    return Cause("shift", shift.name)


def wish(site: Site, request: Request) -> tuple[str, Cause] | None:
    """What the shift in force wants of a running request, ``suspend`` or ``requeue``, and who wants it; None:
    it goes on."""
    shift = _in_force(site)
    if shift is None or not _is_over(site, shift, request) or _was_let_go_on(site, request):
        return None
    if shift.spill == "requeue" and not request.spec.rerunnable:
        return None
    return shift.spill, _cause(shift)


def stands(site: Site, action: Action) -> bool:
    """Whether the shift in force still wants this of a running request."""
    if not isinstance(action, Suspend | Requeue):
        return False
    request = site.started[action.seq]
    return request.state is State.RUNNING and wish(site, request) == (action.kind, action.cause)


def explain(site: Site, request: Request) -> Reason | None:
    """The shift that keeps a request suspended."""
    pause = request.pause if site.paused else None
    if pause is None or not pause.pes_released:
        return None
    if pause.cause.kind == "shift" and not _is_started(site, request.queue):
        return told(ReasonCode.SHIFT, str(pause.cause), pause.text)
    shift = _in_force(site)
    if shift is not None and _is_over(site, shift, request):
        return _STAYS(str(_cause(shift)), request.queue)
    return None


def _in_force(site: Site) -> Shift | None:
    """The shift in force, if it has requests give way."""
    shift = site.settings.shifts.get(site.shift.current or "")
    return shift if shift is not None and shift.spill in ("suspend", "requeue") else None


def _is_started(site: Site, name: str) -> bool:
    queue = site.settings.queues.get(name)
    return queue is not None and queue.started


def _is_over(site: Site, shift: Shift, request: Request) -> bool:
    """Whether the shift has stopped the request's queue, and nobody has started it since."""
    return not _is_started(site, request.queue) and shift.stops(request.queue)


def _was_let_go_on(site: Site, request: Request) -> bool:
    """Whether somebody let it go on under this very shift: then it may."""
    since, let = site.shift.since, request.run.resumed_by_person
    return since is not None and let is not None and let > since


def _spill(draft: Draft, shift: Shift, request: Request) -> None:
    cause = _cause(shift)
    if shift.spill == "suspend":
        draft.suspend(request, cause, _STAYS(str(cause), request.queue).text, parked=True)
    else:
        draft.requeue(request, cause, f"{cause} stopped queue {request.queue}")


# ---------------------------------------------------------------- told beforehand

_WILL = {"suspend": _WILL_REST, "requeue": _WILL_END}


def outlook(site: Site, request: Request, began: Instant) -> Reason | None:
    """What a shift will do to a request that began (or went on) at ``began`` and may by its wall limit
    outlast its queue's time; None when it ends in time, has no wall limit, or will be left alone."""
    closing = site.upcoming_stops.get(request.queue)
    wall = wall_limit(site.settings, request.queue, request.spec.ask)
    if closing is None or wall is None or began + wall <= closing.at or closing.spill not in _WILL:
        return None
    if closing.spill == "requeue" and not request.spec.rerunnable:
        return None
    return _WILL[closing.spill](f"shift {closing.shift}", closing.clock, request.queue, until=closing.at)


FEATURE = Feature("shift_end", act, verify=verify, stands=stands, explain=explain, outlook=outlook)
