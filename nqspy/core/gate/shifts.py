"""Shifts at the gate. A request above a limit waits for a shift only if a shift lets it start with all its
limits together. A shift that stops a queue may want nothing to run by then (``spill=drain``)."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from nqspy.core.gate.limits import LIMITS, scopes_of
from nqspy.core.gate.rule import IN_A_SHIFT, INFINITE, Mask, Rule, ScopeLimit, is_set, path_of
from nqspy.core.runtime import wall_limit
from nqspy.model.columns import Columns
from nqspy.model.ids import Instant
from nqspy.model.people import capped_pes, lineage
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Ask, Request
from nqspy.model.site import Site

(_TOO_LONG,) = reason_kinds(
    ReasonCode.SHIFT,
    "the queue must start again, or its wall limit must be shorter",
    too_long="its wall limit of {asked:time} goes beyond {clock}, when {who} stops queue {queue}",
)
TOGETHER = "one shift must raise all limits that the request exceeds, or the request must ask for less"
"""Text for people if shifts raise limits that hold a request, but no shift lets it start."""
(_NOT_TOGETHER,) = reason_kinds(
    ReasonCode.NEVER, TOGETHER, not_together="{said}; no shift with a higher limit lets it start"
)


Bar = tuple[str, Any, Callable[[Any], bool]]
"""A setting that can refuse a request even if nothing runs: its path, its value now, a test of a value."""


def judged(site: Site, request: Request, reason: Reason) -> Reason:
    """Return the reason unchanged, or one of code NEVER if it waits for a shift with a higher limit and no
    shift lets the request start."""
    if reason.needed != IN_A_SHIFT or _starts_in_a_shift(site, list(_bars(site, request))):
        return reason
    return _NOT_TOGETHER(reason.who, reason.text)


def _starts_in_a_shift(site: Site, bars: list[Bar]) -> bool:
    """True if some order of shifts leads to settings that all let the request start. Each shift changes only
    the settings that it names."""
    opens = {path: test for path, _, test in bars}
    given = [shift.values(opens) for shift in site.settings.shifts.values()]
    changes = [{path: opens[path](value) for path, value in values.items()} for values in given]
    changed = set().union(*changes)
    shut = frozenset(path for path, value, test in bars if path in changed and not test(value))
    reached, todo = {shut}, [shut]
    while todo and frozenset() not in reached:
        shut = todo.pop()
        for change in changes:
            after = shut.difference(change).union(path for path, is_open in change.items() if not is_open)
            if after not in reached:
                reached.add(after)
                todo.append(after)
    return frozenset() in reached


def _bars(site: Site, request: Request) -> Iterator[Bar]:
    settings, pes, held = site.settings, site.pes(), site.held_by(request)

    def fits(most: float | None) -> bool:
        return most is None or held <= capped_pes(most, pes)

    if (queue := settings.queues.get(request.queue)) is not None:
        yield f"queue/{queue.name}/started", queue.started, bool
    for who, scope in scopes_of(settings, request.queue):
        for limit in chain(*LIMITS):
            opens = partial(_allows, limit, site, who, request)
            yield path_of(who, limit.setting), getattr(scope, limit.setting), opens
    for name in lineage(settings.groups, request.group):
        if (group := settings.groups.get(name)) is not None:
            yield f"group/{name}/limit", group.limit, fits


def _allows(limit: type[ScopeLimit], site: Site, who: str, request: Request, value: Any) -> bool:
    """True if a limit with this value lets a request start when nothing runs."""
    rule = limit.of(site, who, value) if is_set(value) else None
    return rule is None or rule.refuses(request) is None


class Drain(Rule):
    """Rule before a shift with ``spill=drain``: the wall limit of a request must end before its queue is
    stopped. A request without any wall limit may start."""

    holds_forced = counts_suspended = True  # what has begun may go on

    def __init__(self, site: Site, queue: str, now: Instant) -> None:
        self._site, self._queue, self._closing = site, queue, site.upcoming_stops[queue]
        self._remaining = self._closing.at - now

    def refuses(self, request: Request) -> Reason | None:
        asked, closing = wall_limit(self._site.settings, request.queue, request.spec.ask), self._closing
        if asked is None or asked <= self._remaining:
            return None
        return _TOO_LONG(f"shift {closing.shift}", asked, closing.clock, self._queue, until=closing.at)

    def mask(self, queue: str, columns: Columns, *, ever: bool = False) -> Mask | None:
        if columns.most("wall") <= self._remaining:
            return None
        default = wall_limit(self._site.settings, queue, Ask())
        walls = np.where(columns.wall == INFINITE, -INFINITE if default is None else default, columns.wall)
        above: Mask = walls > self._remaining
        return above
