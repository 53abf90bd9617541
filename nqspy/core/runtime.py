"""How long a request may run, and how long it will: the one home of the limits in force and of what is
expected of them."""

import numpy as np

from nqspy.model.columns import Floats
from nqspy.model.lifetimes import WHOLE, Lifetimes, Lived, key_of
from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, Request, finite
from nqspy.model.settings import Settings
from nqspy.model.wall_limits import planned_wall as planned_wall
from nqspy.model.wall_limits import wall_limit as wall_limit


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


def most_wall(settings: Settings, request: Request) -> int | None:
    """Wall time (ms) that a request can run at most by all its limits: CPU time of one with several PEs is
    taken to go by on all of them at once, that of a process on one. None without any."""
    ask, queue = request.spec.ask, settings.queues.get(request.queue)
    walls, cpus = [planned_wall(settings, request.queue, ask), finite(ask.cpu_process)], [finite(ask.cpu)]
    if queue is not None:
        walls.append(finite(queue.per_process.cpu_limit))
        cpus.append(finite(queue.per_request.cpu_limit))
    walls += [cpu // max(1, ask.pes) for cpu in cpus if cpu is not None]
    return min((wall for wall in walls if wall is not None), default=None)


def expected_wall(settings: Settings, past: Lifetimes, request: Request, ran: int = 0) -> int | None:
    """Wall time (ms) that a request is expected to run in all, when it has run for ``ran``: the median of
    those like it that ended and ran longer than that, in proportion to its wall limit where there is one. As
    long as its limits let it where none did, as long again where these are over. None: nobody knows."""
    most = most_wall(settings, request)
    lived = sorted(
        wall for each in past.like(key_of(request)) if (wall := _scaled(settings, request, each)) > ran
    )
    if lived:
        found = lived[len(lived) // 2]
        return found if most is None or most <= ran else min(found, most)
    if most is not None and most > ran:
        return most
    return 2 * ran or None


def part_used(past: Lifetimes) -> float:
    """The part of their wall limits that those that ended last used on the mean; 1 where none is known."""
    parts = [each.part for each in past.latest() if each.part]
    return sum(parts) / len(parts) / WHOLE if parts else 1.0


def _scaled(settings: Settings, request: Request, past: Lived) -> int:
    """How long another one would have run with this one's wall limit, ms."""
    own = planned_wall(settings, request.queue, request.spec.ask)
    return -(-past.part * own // WHOLE) if own and past.part else past.wall
