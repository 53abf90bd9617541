"""Run times of requests: the limits in force, and the expected run time.

A request that has outrun all known ones is expected to end by the lifetimes of parallel machines: these are
spread evenly over the logarithm of time, F(t) = b0 + b1 ln t, between a shortest and a longest one (A. B.
Downey, "Predicting queue times on space-sharing parallel computers", IPPS 1997).
"""

from collections.abc import Sequence
from math import isqrt

import numpy as np

from nqspy.model.columns import Floats
from nqspy.model.ids import MINUTE, Instant
from nqspy.model.lifetimes import ENOUGH, RECENT, WHOLE, Key, Lifetimes, key_of
from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, Request, finite
from nqspy.model.settings import Settings, first_finite
from nqspy.model.settings import cpu_limit as cpu_limit
from nqspy.model.settings import cpu_of as cpu_of
from nqspy.model.settings import planned_wall as planned_wall
from nqspy.model.settings import wall_limit as wall_limit
from nqspy.model.units import format_span, format_time

LAST = 3
"""Number of the last runs from which the next run time is expected: people repeat a job several times, and
then do something else. (Measured: manual page `runtimes`.)"""
_BEYOND = 40.0
"""ln ms of a time that no lifetime reaches: 7 million years."""


def memory_of(queue: Queue) -> int | None:
    """Return a queue's memory limit (bytes) for a request, else that for a process; None: it has neither."""
    return first_finite(queue.per_request.memory_limit, queue.per_process.memory_limit)


def memory_counted(settings: Settings, queue: str, ask: Ask) -> int:
    """Return the memory (bytes) that a request counts for: its own limit, else its queue's; 0: no limit."""
    asked = ask.finite_memory()
    if asked is not None or queue not in settings.queues:
        return asked or 0
    return memory_of(settings.queues[queue]) or 0


def planned_walls(settings: Settings, queue: str, asked: Floats) -> Floats:
    """Return the `planned_wall` (ms) of requests of a queue that ask for these wall limits (ms; infinite: for
    none); infinite: unknown."""
    default = planned_wall(settings, queue, Ask())
    walls: Floats = np.where(asked == np.inf, np.inf if default is None else default, asked)
    return walls


def most_wall(settings: Settings, request: Request) -> int | None:
    """Return the most wall time (ms) that a request can run by all its limits; None: no limit. CPU time is
    assumed to pass on all its PEs at once, that of a process on one PE."""
    ask, queue = request.spec.ask, settings.queues.get(request.queue)
    walls, cpus = [planned_wall(settings, request.queue, ask), finite(ask.cpu_process)], [finite(ask.cpu)]
    if queue is not None:
        walls.append(finite(queue.per_process.cpu_limit))
        cpus.append(finite(queue.per_request.cpu_limit))
    walls += [cpu // max(1, ask.pes) for cpu in cpus if cpu is not None]
    return min((wall for wall in walls if wall is not None), default=None)


def goes_since(request: Request) -> Instant:
    """Return the instant at which a started request started or, if that is later, last resumed."""
    return Instant(max(request.run.started, request.run.resumed or 0))


def expected_wall(settings: Settings, past: Lifetimes, request: Request, ran: int = 0) -> int | None:
    """Return the wall time (ms) that a request is expected to run in all, when it has run for ``ran``; None:
    unknown. Its limits bound it. The first of these that is known:

    1. The owner's best guess, corrected by the owner's former guesses.
    2. The last requests like it that ran longer, in proportion to the wall limit if there is one.
    3. The law of lifetimes (see above); for a request that has not run, its limit.
    """
    most = most_wall(settings, request)
    expected = _guessed(past, request, ran)
    if expected is None:
        expected = _like_others(settings, past, request, ran)
    if expected is not None:
        return expected if most is None or most <= ran else min(expected, most)
    latest = past.latest()
    if most is not None and most > ran:
        return median_beyond(ran, most) if ran > 0 and latest else most
    longest = longest_of([run.wall for run in latest]) if most is None else 0
    return median_beyond(ran, longest) if longest > ran else 2 * ran or None


def _guessed(past: Lifetimes, request: Request, ran: int) -> int | None:
    """Return the best guess, scaled by the owner's former guesses; None: no guess, or it has run longer."""
    guess = request.spec.ask.best_guess
    if guess is None:
        return None
    for runs in past.of_owner(key_of(request)):
        walls = [-(-run.guess * guess // WHOLE) for run in runs if run.guess]
        if len(walls) >= ENOUGH:
            median = _median_of_last([wall for wall in walls if wall > ran])
            return median if median is not None or guess <= ran else guess
    return guess if guess > ran else None


def _like_others(settings: Settings, past: Lifetimes, request: Request, ran: int) -> int | None:
    """Return the median run time (ms) of the most similar requests that ran longer; None: there are none."""
    limit = planned_wall(settings, request.queue, request.spec.ask)
    for runs in past.kinds(key_of(request)):
        walls = (-(-run.part * limit // WHOLE) if limit and run.part else run.wall for run in runs)
        if longer := [wall for wall in walls if wall > ran]:
            return _median_of_last(longer)
    return None


def _median_of_last(walls: list[int]) -> int | None:
    last = sorted(walls[-LAST:])
    return last[len(last) // 2] if last else None


def median_beyond(ran: int, longest: int) -> int:
    """Return the median of all lifetimes between these two (ms): by then half of the requests that ran for
    ``ran`` have ended. (From F: (ln m - ln ran) / (ln longest - ln ran) = 1/2.)"""
    return max(ran + 1, isqrt(ran * longest))


def longest_of(walls: Sequence[int]) -> int:
    """Return the longest lifetime (ms) by the law of lifetimes, fitted to these; 0: no line fits."""
    if len(walls) < 2 or min(walls) == max(walls):
        return 0
    logs = np.log(np.maximum(1, np.sort(np.array(walls, dtype=np.float64))))
    parts = (np.arange(len(walls)) + 0.5) / len(walls)
    slope, begin = np.polyfit(logs, parts, 1)
    end = float((1 - begin) / slope) if slope > 0 else 0.0
    return round(np.exp(end)) if 0 < end < _BEYOND else 0


def mean_wall(past: Lifetimes) -> float:
    """Return the mean wall time (ms) of the requests that ended last; 0: none is known."""
    walls = [each.wall for each in past.latest()]
    return sum(walls) / len(walls) if walls else 0.0


def part_used(past: Lifetimes) -> float:
    """Return the mean part of their wall limit that the last ended requests used (1: all, or none known)."""
    parts = [each.part for each in past.latest() if each.part]
    return sum(parts) / len(parts) / WHOLE if parts else 1.0


# ---------------------------------------------------------------- more wall time than needed

HINTED = 10 * MINUTE
"""Least wall limit (ms) for which there is a hint."""
SPARE = 1_500
"""Recommended wall limit in thousandths of the longest run."""


def hint_on_wall(settings: Settings, past: Lifetimes, key: Key, limit: int | None) -> str:
    """Return the hint to the owner that requests of this key (owner, name, PEs) have a much longer wall limit
    (ms) than they need, so with a shorter one they may start earlier. Empty unless the limit is at least
    `Server.limit_hint` times the longest of the last runs with this key."""
    times, known = settings.server.limit_hint, past.known.get(key)
    if times is None or known is None or limit is None or limit < HINTED:
        return ""
    walls = [run.wall for run in known.runs[-RECENT:]]
    longest = max(walls)
    if longest * times > limit:
        return ""
    ran = f"the last {len(walls)} similar requests ran" if len(walls) > 1 else "one similar request ran"
    enough = format_time(-(-longest * SPARE // WHOLE // MINUTE) * MINUTE or MINUTE)
    text = f"{ran} {format_span(max(longest, 1))} at most, its wall limit is {format_span(limit)}"
    return f"{text}: with -l walltime={enough} it may start earlier"
