"""Shift end: a running request in a queue that the shift in force has stopped is suspended or requeued, as
the shift is set (``set shift day spill=...``). It goes on when the queue is started again.

``drain``, which holds requests before the shift, is a rule of the gate (`gate.shifts`).
"""

from nqspy.core.draft import Draft
from nqspy.core.feature import Feature
from nqspy.core.runtime import wall_limit
from nqspy.model.actions import Action, Requeue, Suspend
from nqspy.model.cause import Cause
from nqspy.model.ids import Instant
from nqspy.model.reasons import Reason, ReasonCode, quoted, reason_kinds
from nqspy.model.requests import Request, State
from nqspy.model.shifts import Shift
from nqspy.model.site import Settings, Site

_STAYS, _WILL_REST, _WILL_END = reason_kinds(
    ReasonCode.SHIFT,
    shift_stopped="{who} stopped queue {queue}; it resumes when the queue starts again",
    will_rest="will be suspended at {clock} if it still runs: {who} stops queue {queue} then",
    will_end="will be ended and queued again at {clock} if it still runs: {who} stops queue {queue} then",
)


def verify(settings: Settings, site: Site) -> list[str]:
    """Return a line for each shift with a ``spill`` without effect, because its commands stop no queue."""
    return [
        f"shift {shift.name}: spill={shift.spill} has no effect until its commands stop a queue"
        for shift in settings.shifts.values()
        if shift.spill != "leave" and not any(map(shift.leaving().stops, settings.queues))
    ]


def act(draft: Draft, now: Instant) -> Instant | None:
    """Suspend or requeue running requests of stopped queues; keep suspended ones that must not go on yet."""
    site = draft.site
    shift = _in_force(site)
    for request in draft.running() if shift is not None else ():
        if (wished := wish(site, request)) is not None:
            word, cause = wished
            if word == "suspend":
                draft.suspend(request, cause, _STAYS(str(cause), request.queue).text, pes_released=True)
            else:
                draft.requeue(request, cause, f"{cause} stopped queue {request.queue}")
    for request in draft.released():
        if (why := why_held(site, request)) is not None:
            draft.keep_suspended(request, why)
    return None


def wish(site: Site, request: Request) -> tuple[str, Cause] | None:
    """Return what the shift in force does to a running request (``suspend`` or ``requeue``) and the cause;
    None: it leaves the request alone."""
    shift = _in_force(site)
    if shift is None or not _is_over(site, shift, request):
        return None
    resumed = request.run.resumed_by_person
    if site.shift.since is not None and resumed is not None and resumed > site.shift.since:
        return None  # a person resumed it in this shift: it goes on
    if shift.spill == "requeue" and not request.spec.rerunnable:
        return None
    return shift.spill, Cause("shift", shift.name)


def stands(site: Site, action: Action) -> bool:
    """True if the shift in force still wants this action on a running request."""
    if not isinstance(action, Suspend | Requeue):
        return False
    request, spill = site.started[action.seq], "suspend" if isinstance(action, Suspend) else "requeue"
    return request.state is State.RUNNING and wish(site, request) == (spill, action.cause)


def why_held(site: Site, request: Request) -> Reason | None:
    """Return why a shift keeps a request suspended; None: it does not."""
    pause = request.pause if site.paused else None
    if pause is None or not pause.pes_released:
        return None
    if pause.cause.kind == "shift" and not _is_started(site, request.queue):
        return quoted(ReasonCode.SHIFT, str(pause.cause), pause.text)
    shift = _in_force(site)
    if shift is not None and _is_over(site, shift, request):
        return _STAYS(f"shift {shift.name}", request.queue)
    return None


def _in_force(site: Site) -> Shift | None:
    """Return the shift in force if its ``spill`` is suspend or requeue; None: no such shift."""
    shift = site.settings.shifts.get(site.shift.current or "")
    return shift if shift is not None and shift.spill in ("suspend", "requeue") else None


def _is_started(site: Site, name: str) -> bool:
    queue = site.settings.queues.get(name)
    return queue is not None and queue.started


def _is_over(site: Site, shift: Shift, request: Request) -> bool:
    """True if the shift in force stops the queue of a request, and the queue is stopped now."""
    return not _is_started(site, request.queue) and shift.stops(request.queue)


_WILL = {"suspend": _WILL_REST, "requeue": _WILL_END}


def next_action(site: Site, request: Request, began: Instant) -> Reason | None:
    """Return the coming action of a shift on a request that runs since ``began`` and may, by its wall limit,
    still run when its queue is stopped. None: it ends in time, has no wall limit, or is left alone."""
    closing = site.upcoming_stops.get(request.queue)
    wall = wall_limit(site.settings, request.queue, request.spec.ask)
    if closing is None or wall is None or began + wall <= closing.at or closing.spill not in _WILL:
        return None
    if closing.spill == "requeue" and not request.spec.rerunnable:
        return None
    return _WILL[closing.spill](f"shift {closing.shift}", closing.clock, request.queue, until=closing.at)


FEATURE = Feature("shift_end", act, verify=verify, stands=stands, why_held=why_held, next_action=next_action)
