"""When requests are reckoned to end: as late as they may (time-ahead.md 1). All instants and lengths in ms;
what has no known end has `profile.FOREVER`."""

from nqspy.core.runtime import planned_wall
from nqspy.core.timeline.profile import FOREVER
from nqspy.model.ids import Instant
from nqspy.model.requests import Request
from nqspy.model.site import Site

MOMENT = 1_000
"""What starting may take, ms: limits count from then. So much more is no delay that anybody is told of."""


def length_of(site: Site, request: Request) -> int:
    """How long a request is reckoned to run."""
    wall = planned_wall(site.settings, request.queue, request.spec.ask)
    return FOREVER if wall is None else max(1, wall)


def end_of(site: Site, now: Instant, request: Request) -> int:
    """When one that runs is reckoned to leave what it has; one that goes on beyond that may end at any
    moment."""
    end, stop = planned_end(site, now, request), site.upcoming_stops.get(request.queue)
    if stop is not None and (
        stop.spill == "suspend" or (stop.spill == "requeue" and request.spec.rerunnable)
    ):
        end = min(end, stop.at)
    return max(end, now + 1)


def is_suspended(site: Site, request: Request, begin: int, until: int) -> bool:
    """Whether a shift will suspend one that runs from ``begin`` to ``until``, if it may."""
    stop = site.upcoming_stops.get(request.queue)
    return stop is not None and stop.spill == "suspend" and begin < stop.at < until


def planned_end(site: Site, now: Instant, request: Request) -> int:
    """When one that runs, or would begin now, has run as long as was planned; that may be over."""
    began, attempt = request.started if request.started is not None else now, request.attempt
    rest = attempt.suspended_time if attempt is not None else 0
    if request.pause is not None:
        rest += now - request.pause.at
    until = attempt.until if attempt is not None else None
    return min(FOREVER if until is None else until, began + rest + length_of(site, request))
