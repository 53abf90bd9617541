"""Who starts past a promise though it may run on into it: by chance, or by a contract (time-ahead.md 1).

``backfill=probable``: one of which the past lifetimes say with the queue's ``probability`` that it has ended
in time is measured by that length. ``backfill=contract``: one that was handed in with a contract fills a hole
of the queue's ``shortest_hole`` at least, and is ended where that ends.
"""

from collections.abc import Callable

import numpy as np

from nqspy.core.runtime import planned_walls
from nqspy.model.columns import Columns, Floats, Ints
from nqspy.model.lifetimes import WHOLE, key_of
from nqspy.model.queues import Queue
from nqspy.model.requests import Request
from nqspy.model.site import Site


def promises_times(site: Site, queue: str) -> bool:
    """Whether the starts that a queue promises are to be kept by everybody: where chances are taken nobody
    knows."""
    found = site.settings.queues.get(queue)
    return found is None or found.backfill != "probable"


def probable_length(site: Site, queue: Queue, request: Request, limit: int) -> int | None:
    """By when (ms) a request of that wall limit has ended with its queue's probability; None: no sooner than
    by its limit, or chances are not taken in its queue."""
    if queue.backfill != "probable":
        return None
    part = site.lifetimes.sure(key_of(request), queue.probability)
    return None if part >= WHOLE else max(1, -(-limit * part // WHOLE))


def hole_wanted(queue: Queue, request: Request, limit: int) -> int | None:
    """How long (ms) a hole must be that a request of that wall limit fills; None: it fills none."""
    wants = queue.backfill == "contract" and request.spec.contract
    return min(limit, queue.shortest_hole) if wants else None


def passing_walls(site: Site, queue: str, columns: Columns, chances: Callable[[], bool]) -> Floats:
    """Wall times (ms) by which the rows of a queue are measured that would start past a promise, at the
    least; ``chances``: whether these are taken at the moment."""
    walls = planned_walls(site.settings, queue, columns.wall)
    found = site.settings.queues.get(queue)
    if found is not None and found.backfill == "contract":
        return np.where(columns.contract == 1, np.minimum(walls, found.shortest_hole), walls)
    if found is not None and found.backfill == "probable" and chances():
        finite = np.where(np.isinf(walls), 0, walls)
        sure = np.maximum(1, np.ceil(finite * _sure_parts(site, found, columns) / WHOLE))
        return np.where(np.isinf(walls), walls, sure)
    return walls


def _sure_parts(site: Site, queue: Queue, columns: Columns) -> Ints:
    """`Lifetimes.sure` of each row, in thousandths."""
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
        places = np.minimum(np.searchsorted(known, own), len(known) - 1)
        same = known[places] == own
        found[same] = np.array(parts)[order][places[same]]
    return found
