"""Rough estimate of waiting time from the work ahead of a request, where the simulation ahead ends early."""

from collections.abc import Mapping

import numpy as np

from nqspy.core.runtime import mean_wall, part_used, planned_walls
from nqspy.model.columns import Floats, Ints, turn_of
from nqspy.model.ids import HOUR
from nqspy.model.lifetimes import Lifetimes
from nqspy.model.requests import Request
from nqspy.model.site import Site

UNKNOWN = float(HOUR)
"""Assumed run time (ms) of a request without a wall limit while no request has ended."""


class Backlog:
    """Estimate of waiting times from the queued work of each domain. ``past``: run times of ended requests,
    which give expected ones. ``running``: rest of the running requests, in PE ms, by domain."""

    def __init__(self, site: Site, past: Lifetimes, running: Mapping[str, int]) -> None:
        self._running = running
        self._site, self._part, self._mean = site, part_used(past), mean_wall(past) or UNKNOWN
        self._known: dict[str, tuple[Ints, Ints, Floats]] = {}

    def wait(self, request: Request) -> int:
        """Return how long (ms) all PEs of a request's domain need for the running work and for what is queued
        before the request: roughly how long it still waits."""
        site, domain = self._site, self._site.domain_of(request.queue)
        if domain.name not in self._known:
            self._known[domain.name] = self._work_ahead(domain.name)
        dates, turns, work = self._known[domain.name]
        first, last = np.searchsorted(dates, [request.date_in_queue, request.date_in_queue + 1]).tolist()
        place = first + int(np.searchsorted(turns[first:last], turn_of(request)))
        pes = max(1, int(site.pes_of(domain).sum()) * domain.depth)
        return round((self._running.get(domain.name, 0) + float(work[place])) / pes)

    def _work_ahead(self, domain: str) -> tuple[Ints, Ints, Floats]:
        """Return dates in queue and turns of a domain's queued requests, in order, and the work (PE ms) ahead
        of each; one more figure is the work of all."""
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
