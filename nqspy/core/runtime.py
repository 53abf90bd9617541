"""How long a request may run, and how long it will: the one home of the limits in force and of what is
expected of them."""

import numpy as np

from nqspy.model.columns import Floats
from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, Request, finite
from nqspy.model.site import Settings, Site
from nqspy.model.wall_limits import planned_wall as planned_wall
from nqspy.model.wall_limits import wall_limit as wall_limit

UNKNOWN = 3_600_000
"""Wall time of a request of which nothing is known, ms."""


def cpu_of(queue: Queue) -> int | None:
    """What an unlimited or omitted CPU time (ms) counts as: the queue's limit if that is finite."""
    return _either(queue.per_request.cpu_limit, queue.per_process.cpu_limit)


def memory_of(queue: Queue) -> int | None:
    """The same of memory, in bytes."""
    return _either(queue.per_request.memory_limit, queue.per_process.memory_limit)


def cpu_limit(settings: Settings, queue: str, ask: Ask) -> int | None:
    """CPU time (ms) a request can use at most: what it asks, else its queue's limit; None without any."""
    asked = finite(ask.cpu_wanted())
    return asked if asked is not None or queue not in settings.queues else cpu_of(settings.queues[queue])


def memory_counted(settings: Settings, queue: str, ask: Ask) -> int:
    """Memory (bytes) that a request counts for: what it asks, else its queue's limit; 0 without any."""
    asked = finite(ask.memory_wanted())
    if asked is not None or queue not in settings.queues:
        return asked or 0
    return memory_of(settings.queues[queue]) or 0


def planned_walls(settings: Settings, queue: str, asked: Floats) -> Floats:
    """The same of many requests of a queue, by the wall times they ask for (ms); infinite: nobody knows."""
    default = planned_wall(settings, queue, Ask())
    walls: Floats = np.where(asked == np.inf, np.inf if default is None else default, asked)
    return walls


def _either(first: int | None, second: int | None) -> int | None:
    return finite(first) if finite(first) is not None else finite(second)


def expected_wall(site: Site, request: Request) -> int:
    """Wall time (ms) that a request is expected to run: as long as its limits let it, but no longer than its
    group's last requests used on the mean. CPU time of a request with several PEs goes by on all of them at
    once; that of a process on one."""
    ask, queue = request.spec.ask, site.settings.queues.get(request.queue)
    walls = [finite(ask.wall), finite(ask.cpu_process)]
    cpus = [finite(ask.cpu)]
    if queue is not None:
        walls += [finite(queue.per_request.wall_limit), finite(queue.per_process.cpu_limit)]
        cpus.append(finite(queue.per_request.cpu_limit))
    accounts = site.own_accounts(request.group, site.domain_of(request.queue).name)
    recent, pes = accounts[0].recent if accounts else [], max(1, ask.pes)
    walls += [cpu // pes for cpu in cpus if cpu is not None]
    limit = min((wall for wall in walls if wall is not None), default=UNKNOWN)
    return min(limit, max(1, round(sum(recent) / len(recent) / pes))) if recent else limit
