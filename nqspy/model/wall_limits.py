"""Limits of wall and CPU time in force for a request: its own, its queue's, or what plans assume."""

from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, finite
from nqspy.model.settings import Settings


def wall_limit(settings: Settings, queue: str, ask: Ask) -> int | None:
    """Wall time (ms) after which a request will be ended: its own limit, else its queue's; None without
    any."""
    asked = finite(ask.wall)
    if asked is not None or queue not in settings.queues:
        return asked
    return finite(settings.queues[queue].per_request.wall_limit)


def planned_wall(settings: Settings, queue: str, ask: Ask) -> int | None:
    """Wall time (ms) that plans take a request to run: as long as it may, where neither it nor its queue has
    a limit the site's ``default wall_limit``; None: nobody knows. A limit of CPU time says nothing of it."""
    limit = wall_limit(settings, queue, ask)
    return limit if limit is not None else settings.default.wall_limit


def cpu_limit(settings: Settings, queue: str, ask: Ask) -> int | None:
    """Return the most CPU time (ms) that a request can use: its own limit, else its queue's; None: no
    limit."""
    asked = ask.finite_cpu()
    if asked is not None:
        return asked
    return cpu_of(settings.queues[queue]) if queue in settings.queues else None


def cpu_of(queue: Queue) -> int | None:
    """Return the CPU time (ms) that an unlimited or omitted one counts as: the queue's limit if finite."""
    return first_finite(queue.per_request.cpu_limit, queue.per_process.cpu_limit)


def first_finite(first: int | None, second: int | None) -> int | None:
    """Return the first of two limits that is finite; None: neither is."""
    return finite(first) if finite(first) is not None else finite(second)
