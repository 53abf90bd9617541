"""A shift that stops a queue and wants nothing to run by then (``spill=drain``): requests must end before."""

import numpy as np

from nqspy.core.gate.rule import INFINITE, Mask, Rule
from nqspy.core.runtime import wall_limit
from nqspy.model.columns import Columns
from nqspy.model.ids import Instant
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Ask, Request
from nqspy.model.site import Site

(_TOO_LONG,) = reason_kinds(
    ReasonCode.SHIFT,
    too_long="its wall limit of {asked:time} goes beyond {clock}, when {who} stops queue {queue}; "
    "it may start after that, or with a shorter limit",
)
_NOTHING = Ask()


class Drain(Rule):
    """The time that is left before a queue is stopped; a request without any wall limit is let through."""

    holds_forced = counts_suspended = True  # what has begun may go on

    def __init__(self, site: Site, queue: str, now: Instant) -> None:
        self._site, self._queue, self._closing = site, queue, site.upcoming_stops[queue]
        self._left = self._closing.at - now

    def refuses(self, request: Request) -> Reason | None:
        asked, closing = wall_limit(self._site.settings, request.queue, request.spec.ask), self._closing
        if asked is None or asked <= self._left:
            return None
        return _TOO_LONG(f"shift {closing.shift}", asked, closing.clock, self._queue, until=closing.at)

    def mask(self, queue: str, columns: Columns, *, ever: bool = False) -> Mask | None:
        if columns.most("wall") <= self._left:
            return None
        default = wall_limit(self._site.settings, queue, _NOTHING)
        walls = np.where(columns.wall == INFINITE, -INFINITE if default is None else default, columns.wall)
        above: Mask = walls > self._left
        return above
