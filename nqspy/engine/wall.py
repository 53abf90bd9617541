"""Conversion of cron times on the clock of a zone into instants, over all changes of that clock.

A fixed time of the day (`Cron.wild` is false) fires when the clock first shows it or something later: a time
that a change skips fires at the change, and one that comes twice fires once. An expression with a star in
minute or hour follows the clock as it runs: skipped times do not fire, repeated ones fire again. Debian's
cron does the same for changes of less than three hours; here it holds for all (Apia left out a whole day).

Every search is limited to the 41 years of `cron.YEARS`, and skips days on which nothing fires.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from nqspy.model.cron import YEARS, Cron, Sundays
from nqspy.model.ids import Instant

_DAY = 86_400
_WINDOW = 2 * _DAY
_STEP = _DAY // 4
"""Least time (s) between two changes of one clock."""
_SLACK = _DAY
"""More time (s) than any clock of the world differs from UTC."""
_FAR = YEARS * 366 * _DAY
"""Longest search (s): a clock change may skip every day of an expression."""


def local(second: float, zone: ZoneInfo) -> datetime:
    """Return the time that a zone's clock shows at ``second`` (since 1970), without zone. ``fold`` is 1 if
    the clock shows it for the second time."""
    return datetime.fromtimestamp(second, zone).replace(tzinfo=None)


def first_shown(wall: datetime, zone: ZoneInfo) -> int:
    """Return the second since 1970 at which the zone's clock first shows ``wall``, or jumps over it."""
    first, second = (wall.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if second.utcoffset() <= first.utcoffset():  # type: ignore[operator]
        return int(first.timestamp())
    # Skipped: read with the offset after the change it lies before that change, else not.
    return _first(lambda at: local(at, zone) >= wall, int(second.timestamp()), int(first.timestamp()))


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first second after ``low`` from which on ``holds`` is true; at ``high`` it must be true."""
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


# ---------------------------------------------------------------- ahead and back


def ahead(cron: Cron, sundays: Sundays, zone: ZoneInfo, after: Instant) -> Iterator[Instant]:
    """Yield the instants (ms) later than ``after`` at which a cron expression fires, in order."""
    found = _wild_ahead if cron.wild else _certain_ahead
    for second in found(cron, sundays, zone, after // 1000):
        if second * 1000 > after:
            yield Instant(second * 1000)


def latest(cron: Cron, sundays: Sundays, zone: ZoneInfo, now: Instant) -> tuple[Instant, datetime] | None:
    """Return the instant (ms) of the last firing not after ``now``, and its time on the clock; or None."""
    found = (_wild_back if cron.wild else _certain_back)(cron, sundays, zone, now // 1000)
    return None if found is None else (Instant(found[0] * 1000), found[1])


def _certain_ahead(cron: Cron, sundays: Sundays, zone: ZoneInfo, after: int) -> Iterator[int]:
    # Whatever is not later than what the clock shows has fired: so it goes on from there each time.
    start, at = local(after, zone), after
    while (wall := cron.next(start + timedelta(microseconds=1), sundays)) is not None:
        shown = first_shown(wall, zone)
        if shown > at:
            yield shown
            at = shown
            wall = max(wall, local(shown, zone))
        start = wall


def _certain_back(cron: Cron, sundays: Sundays, zone: ZoneInfo, now: int) -> tuple[int, datetime] | None:
    shown = local(now, zone)
    if shown.fold:  # what lies ahead on the wall may have been shown already
        first, second = (shown.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
        shown += first.utcoffset() - second.utcoffset()  # type: ignore[operator]
    end: datetime | None = shown
    while end is not None and (wall := cron.last(end, sundays)) is not None:
        if (at := first_shown(wall, zone)) <= now:
            return at, wall
        end = wall - timedelta(minutes=1)
    return None


# ---------------------------------------------------------------- the clock as it runs


def _wild_ahead(cron: Cron, sundays: Sundays, zone: ZoneInfo, after: int) -> Iterator[int]:
    start = after
    while start < after + _FAR:
        end = start + _WINDOW
        for begin, stop, offset in _stretches(zone, start, end):
            wall = cron.next(_shown(begin, offset), sundays)
            while wall is not None and (at := _second(wall, offset)) < stop:
                yield at
                wall = cron.next(wall + timedelta(minutes=1), sundays)
        wall = cron.next(_shown(end - _SLACK, 0), sundays)
        if wall is None:
            return
        start = max(end, _second(wall, 0) - _SLACK)


def _wild_back(cron: Cron, sundays: Sundays, zone: ZoneInfo, now: int) -> tuple[int, datetime] | None:
    end = now + 1
    while end > now - _FAR:
        start = end - _WINDOW
        for begin, stop, offset in reversed(_stretches(zone, start, end)):
            wall = cron.last(_shown(stop - 1, offset), sundays)
            if wall is not None and (at := _second(wall, offset)) >= begin:
                return at, wall
        wall = cron.last(_shown(start + _SLACK, 0), sundays)
        if wall is None:
            return None
        end = min(start, _second(wall, 0) + _SLACK)
    return None


def _stretches(zone: ZoneInfo, start: int, end: int) -> list[tuple[int, int, int]]:
    """Return the spans between jumps of the clock from second ``start`` to ``end``: each with begin, stop and
    offset to UTC (s)."""
    found, begin, offset = [], start, _offset(zone, start)
    for at in range(start, end, _STEP):
        later = _offset(zone, at + _STEP)
        if later != offset:
            change = _first(partial(_has_offset, zone, later), at, at + _STEP)
            found.append((begin, change, offset))
            begin, offset = change, later
    if begin < end:
        found.append((begin, end, offset))
    return found


def _has_offset(zone: ZoneInfo, offset: int, second: int) -> bool:
    return _offset(zone, second) == offset


def _offset(zone: ZoneInfo, second: int) -> int:
    found = datetime.fromtimestamp(second, zone).utcoffset()
    assert found is not None
    return round(found.total_seconds())


def _shown(second: int, offset: int) -> datetime:
    return datetime.fromtimestamp(second + offset, UTC).replace(tzinfo=None)


def _second(wall: datetime, offset: int) -> int:
    return round(wall.replace(tzinfo=UTC).timestamp()) - offset
