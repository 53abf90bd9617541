"""Expected lengths and ends of requests (time-ahead.md 1); instants and lengths in ms.

A request is expected to run as long as it may. Two settings let it be measured by a shorter length where it
starts past a reservation. ``backfill=probable``: the length within which it ends with the queue's
``probability``, by past lifetimes. ``backfill=contract``: a request with a contract fills a hole of at least
``shortest_hole`` and is ended where the hole ends.
"""

from collections.abc import Callable

import numpy as np

from nqspy.core.runtime import planned_wall, planned_walls
from nqspy.core.timeline.profile import FOREVER
from nqspy.model.columns import Columns, Floats, Ints
from nqspy.model.ids import Instant
from nqspy.model.lifetimes import WHOLE, key_of
from nqspy.model.queues import Queue
from nqspy.model.requests import Request
from nqspy.model.shifts import UpcomingStop
from nqspy.model.site import Site


def length_of(site: Site, request: Request) -> int:
    """Return how long (ms) a request is expected to hold its PEs; `FOREVER`: unknown."""
    wall = planned_wall(site.settings, request.queue, request.spec.ask)
    return FOREVER if wall is None else max(1, wall) * slowdown(site, request.queue)


def slowdown(site: Site, queue: str) -> int:
    """Return how many times as long as it runs a request of a queue holds its PEs at most: as many as share a
    PE in turns (`model.slots`). A wall limit counts the time in which a request runs."""
    domain = site.domain_of(queue)
    return domain.depth if domain.rotates else 1


def planned_end(site: Site, now: Instant, request: Request) -> int:
    """Return the instant at which a request that runs, or starts now, will have run as long as it may; it may
    be past. `FOREVER`: unknown."""
    began, attempt = request.started if request.started is not None else now, request.attempt
    rest = attempt.suspended_time if attempt is not None else 0
    if request.pause is not None:
        rest += now - request.pause.at
    until = attempt.until if attempt is not None else None
    return min(FOREVER if until is None else until, began + rest + length_of(site, request))


def end_of(site: Site, now: Instant, request: Request) -> int:
    """Return when a running request is expected to release what it holds; beyond its limits: the next ms."""
    end, stop = planned_end(site, now, request), _stop_of(site, request)
    if stop is not None and (
        stop.spill == "suspend" or (stop.spill == "requeue" and request.spec.rerunnable)
    ):
        end = min(end, stop.at)
    return max(end, now + 1)


def is_suspended(site: Site, request: Request, begin: int, until: int) -> bool:
    """True if a shift will suspend a request that runs from ``begin`` to ``until``."""
    stop = _stop_of(site, request)
    return stop is not None and stop.spill == "suspend" and begin < stop.at < until


def _stop_of(site: Site, request: Request) -> UpcomingStop | None:
    """Return the next stop by a shift of a request's queue; None: no stop, or its domain lets it run on."""
    stop = site.upcoming_stops.get(request.queue)
    return stop if stop is not None and site.settings.gives_way(request.queue) else None


# ---------------------------------------------------------------- past a reservation


def guarantees_times(site: Site, queue: str) -> bool:
    """True if the reserved times of a queue are guaranteed. They are not with ``backfill=probable``, nor
    where requests share PEs in turns: PEs that are not adjacent may need more slots than a PE has holders."""
    found = site.settings.queues.get(queue)
    return (found is None or found.backfill != "probable") and not site.domain_of(queue).rotates


def probable_length(site: Site, queue: Queue, request: Request, limit: int) -> int | None:
    """Return the length (ms) within which a request with the wall limit ``limit`` ends with the queue's
    ``probability``; None: only the limit is sure, or the queue is not ``backfill=probable``."""
    if queue.backfill != "probable":
        return None
    part = site.lifetimes.sure(key_of(request), queue.probability)
    return None if part >= WHOLE else max(1, -(-limit * part // WHOLE))


def hole_wanted(queue: Queue, request: Request, limit: int) -> int | None:
    """Return the least length (ms) of a hole (free time before a reservation) that a request with this wall
    limit may fill; None: it fills no holes."""
    wants = queue.backfill == "contract" and request.spec.contract
    return min(limit, queue.shortest_hole) if wants else None


def passing_walls(site: Site, queue: str, columns: Columns, chances: Callable[[], bool]) -> Floats:
    """Return the shortest lengths (ms) by which a queue's rows may start past a reservation. ``chances``:
    returns True if a request may pass that only probably ends in time."""
    walls = planned_walls(site.settings, queue, columns.wall) * slowdown(site, queue)
    found = site.settings.queues.get(queue)
    if found is not None and found.backfill == "contract":
        return np.where(columns.contract == 1, np.minimum(walls, found.shortest_hole), walls)
    if found is not None and found.backfill == "probable" and chances():
        finite = np.where(np.isinf(walls), 0, walls)
        sure = np.maximum(1, np.ceil(finite * _sure_parts(site, found, columns) / WHOLE))
        return np.where(np.isinf(walls), walls, sure)
    return walls


def _sure_parts(site: Site, queue: Queue, columns: Columns) -> Ints:
    """Return the part (1/1000) of its wall limit within which each row probably ends (`Lifetimes.sure`)."""
    numbers, codes, parts = site.numbers, [], []
    names, sizes = len(numbers.names) + 1, int(columns.most("pes")) + 1
    for (owner, name, pes), lifetime in site.lifetimes.known.items():
        by_owner, by_name = numbers.owners.known(owner), numbers.names.known(name)
        part = lifetime.sure_part(queue.probability)
        if by_owner is not None and by_name is not None and pes < sizes and part < WHOLE:
            codes.append((by_owner * names + by_name) * sizes + pes)
            parts.append(part)
    found = np.full(len(columns), WHOLE, dtype=np.int64)
    if codes:
        order = np.argsort(codes)
        known, own = np.array(codes)[order], (columns.owner * names + columns.name) * sizes + columns.pes
        indices = np.minimum(np.searchsorted(known, own), len(known) - 1)
        same = known[indices] == own
        found[same] = np.array(parts)[order][indices[same]]
    return found
