"""How much work waits before a request: a rough figure for those that a look ahead does not reach."""

from collections.abc import Mapping

import numpy as np

from nqspy.core.runtime import mean_wall, part_used, planned_walls
from nqspy.model.columns import Floats, Ints, turn_of
from nqspy.model.ids import HOUR
from nqspy.model.lifetimes import Lifetimes
from nqspy.model.requests import Request
from nqspy.model.site import Site

UNKNOWN = float(HOUR)
"""How long a request without a wall limit is taken to run where none has ended, ms."""


class Backlog:
    """The queued requests of each domain by date. ``running``: what those that run have still to do there, PE
    ms."""

    def __init__(self, site: Site, past: Lifetimes, running: Mapping[str, int]) -> None:
        self._running = running
        self._site, self._part, self._mean = site, part_used(past), mean_wall(past) or UNKNOWN
        self._known: dict[str, tuple[Ints, Ints, Floats]] = {}

    def wait(self, request: Request) -> int:
        """How long (ms) the PEs of its domain are busy with those of an earlier date, if they all are."""
        site, domain = self._site, self._site.domain_of(request.queue)
        if domain.name not in self._known:
            self._known[domain.name] = self._lay_out(domain.name)
        dates, turns, work = self._known[domain.name]
        first, last = np.searchsorted(dates, [request.date_in_queue, request.date_in_queue + 1]).tolist()
        place = first + int(np.searchsorted(turns[first:last], turn_of(request)))
        pes = max(1, int(site.pes_of(domain).sum()) * domain.depth)
        return round((self._running.get(domain.name, 0) + float(work[place])) / pes)

    def _lay_out(self, domain: str) -> tuple[Ints, Ints, Floats]:
        """Dates and turns in order, and the work (PE ms) before each of them and after the last."""
        site, none = self._site, np.empty(0, np.int64)
        dates, turns, works = [none], [none], [np.empty(0)]
        for name, columns in site.waiting.items():
            if site.domain_of(name).name == domain:
                walls = planned_walls(site.settings, name, columns.wall) * self._part
                walls = np.where(np.isinf(walls), self._mean, walls)
                dates.append(columns.date)
                turns.append(columns.turn)
                works.append(walls * columns.pes * columns.count)
        date, turn, work = np.concatenate(dates), np.concatenate(turns), np.concatenate(works)
        order = np.lexsort((turn, date))
        return date[order], turn[order], np.concatenate([np.zeros(1), np.cumsum(work[order])])
