"""How long a request may run, and how long it will: the one home of the limits in force and of what is
expected of them."""

import numpy as np

from nqspy.core.log_uniform import longest_of, median_beyond
from nqspy.model.columns import Floats
from nqspy.model.ids import Instant
from nqspy.model.lifetimes import ENOUGH, WHOLE, Lifetimes, Lived, key_of
from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, Request, finite
from nqspy.model.settings import Settings
from nqspy.model.wall_limits import planned_wall as planned_wall
from nqspy.model.wall_limits import wall_limit as wall_limit

LAST = 3
"""So many of the last runs tell how long the next one takes. (Measured: manual page `runtimes`.)"""


def cpu_of(queue: Queue) -> int | None:
    """What an unlimited or omitted CPU time (ms) counts as: the queue's limit if that is finite."""
    return _either(queue.per_request.cpu_limit, queue.per_process.cpu_limit)


def memory_of(queue: Queue) -> int | None:
    """The same of memory, in bytes."""
    return _either(queue.per_request.memory_limit, queue.per_process.memory_limit)


def cpu_limit(settings: Settings, queue: str, ask: Ask) -> int | None:
    """CPU time (ms) a request can use at most: what it asks, else its queue's limit; None without any."""
    asked = ask.finite_cpu()
    if asked is not None:  # as most do
        return asked
    return cpu_of(settings.queues[queue]) if queue in settings.queues else None


def memory_counted(settings: Settings, queue: str, ask: Ask) -> int:
    """Memory (bytes) that a request counts for: what it asks, else its queue's limit; 0 without any."""
    asked = ask.finite_memory()
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


def goes_since(request: Request) -> Instant:
    """Since when one that was started has gone on without a pause."""
    return Instant(max(request.run.started, request.run.resumed or 0))


def expected_wall(settings: Settings, past: Lifetimes, request: Request, ran: int = 0) -> int | None:
    """Wall time (ms) that a request is expected to run in all, when it has run for ``ran``: what its owner
    guesses best, as his guesses came true; else as the last of those like it that ran longer than that, in
    proportion to its wall limit where there is one; where none did as lifetimes go on (`log_uniform`), until
    its limits at most. None: nobody knows."""
    most = most_wall(settings, request)
    found = _guessed(past, request, ran)
    if found is None:
        found = _as_others(settings, past, request, ran)
    if found is None:
        return _beyond_all(past, ran, most)
    return found if most is None or most <= ran else min(found, most)


def _guessed(past: Lifetimes, request: Request, ran: int) -> int | None:
    """The best guess, in proportion to those of the same owner of whom it is known how they came true; None:
    there is none, or it has run longer."""
    guess = request.spec.ask.best_guess
    if guess is None:
        return None
    for runs in past.of_owner(key_of(request)):
        known = [-(-each.guess * guess // WHOLE) for each in runs if each.guess]
        if len(known) >= ENOUGH:
            found = _middle([wall for wall in known if wall > ran])
            return found if found is not None or guess <= ran else guess
    return guess if guess > ran else None


def _as_others(settings: Settings, past: Lifetimes, request: Request, ran: int) -> int | None:
    """Of the nearest kind of which any ran longer."""
    own = planned_wall(settings, request.queue, request.spec.ask)
    for runs in past.kinds(key_of(request)):
        longer = [wall for each in runs if (wall := _scaled(each, own)) > ran]
        if longer:
            return _middle(longer)
    return None


def _middle(walls: list[int]) -> int | None:
    """The median of the last few: people do the same several times, and then something else."""
    last = sorted(walls[-LAST:])
    return last[len(last) // 2] if last else None


def _beyond_all(past: Lifetimes, ran: int, most: int | None) -> int | None:
    """Of one that has outrun all of which anybody knows."""
    known = past.latest()
    if most is not None and most > ran:
        return median_beyond(ran, most) if ran > 0 and known else most
    longest = longest_of([each.wall for each in known]) if most is None else 0
    return median_beyond(ran, longest) if longest > ran else 2 * ran or None


def mean_wall(past: Lifetimes) -> float:
    """Return the mean wall time (ms) of those that ended last; 0 where none is known."""
    walls = [each.wall for each in past.latest()]
    return sum(walls) / len(walls) if walls else 0.0


def part_used(past: Lifetimes) -> float:
    """The part of their wall limits that those that ended last used on the mean; 1 where none is known."""
    parts = [each.part for each in past.latest() if each.part]
    return sum(parts) / len(parts) / WHOLE if parts else 1.0


def _scaled(past: Lived, own: int | None) -> int:
    """How long another one would have run with this wall limit, ms."""
    return -(-past.part * own // WHOLE) if own and past.part else past.wall
