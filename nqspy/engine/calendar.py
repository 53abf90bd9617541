"""Which shift is in force: a pure function of shifts, zone and instant (interfaces.md 7).

cronsim follows Debian cron: a time that a clock change skips fires at the change, a repeated one at its first
occurrence only. Searches begin three hours off, because local clocks run twice through an hour in autumn.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from heapq import merge
from itertools import combinations, takewhile
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from nqspy.model.errors import BadValue
from nqspy.model.ids import Instant
from nqspy.model.shifts import Shift

_SLACK = timedelta(hours=3)


@dataclass(frozen=True, slots=True, order=True)
class Firing:
    """One moment at which a shift begins."""

    at: Instant
    shift: str


def zone_of(name: str) -> ZoneInfo:
    """The zone of that name. Raises BadValue."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadValue(f"{name!r} is no time zone; write it like Europe/Paris or UTC") from None


def check_cron(text: str) -> None:
    """Raises BadValue unless ``text`` is a cron expression of five fields that fires at some time."""
    if len(text.split()) != 5:
        raise BadValue(f"{text!r} has {len(text.split())} fields; a cron time has five")
    try:
        next(CronSim(text, datetime(2024, 1, 1, tzinfo=UTC)))
    except (CronSimError, StopIteration):
        raise BadValue(f'{text!r} is no cron time; write it like "30 8 * * mon-fri"') from None


def local(at: Instant, zone: str) -> datetime:
    """An instant as local time."""
    return datetime.fromtimestamp(at / 1000, zone_of(zone))


def in_force(shifts: Iterable[Shift], zone: str, now: Instant) -> Firing | None:
    """The latest firing not after ``now``; None where there is none. Times that a clock change skips all
    fire at the change: then the one that is latest by the clock on the wall."""
    found = [
        (firing.at, _on_the_wall(cron, zone, firing.at), firing)
        for shift in shifts
        for cron in shift.when
        if (firing := _latest(shift.name, cron, zone, now)) is not None
    ]
    return max(found)[2] if found else None


def _on_the_wall(cron: str, zone: str, at: Instant) -> datetime:
    """The latest time of that cron expression not after an instant's local time, skipped or not."""
    naive = local(at, zone).replace(tzinfo=None, microsecond=0) + timedelta(seconds=1)
    return next(CronSim(cron, naive, reverse=True))


def next_firing(shifts: Iterable[Shift], zone: str, after: Instant) -> Firing | None:
    """The first firing later than ``after``."""
    found = [next(_from(shift.name, cron, zone, after), None) for shift in shifts for cron in shift.when]
    return min((firing for firing in found if firing is not None), default=None)


def coming(shifts: Iterable[Shift], zone: str, after: Instant, until: Instant) -> list[Firing]:
    """All firings later than ``after`` and not later than ``until``, in order."""
    series = [_from(shift.name, cron, zone, after) for shift in shifts for cron in shift.when]
    return list(takewhile(lambda firing: firing.at <= until, merge(*series)))


def _latest(shift: str, cron: str, zone: str, now: Instant) -> Firing | None:
    try:
        for moment in CronSim(cron, local(now, zone) + _SLACK, reverse=True):
            at = _instant(moment)
            if at <= now:
                return Firing(at, shift)
    except (StopIteration, OverflowError):
        pass
    return None


def _from(shift: str, cron: str, zone: str, after: Instant) -> Iterator[Firing]:
    for moment in CronSim(cron, local(after, zone) - _SLACK):
        at = _instant(moment)
        if at > after:
            yield Firing(at, shift)


def _instant(moment: datetime) -> Instant:
    return Instant(round(moment.timestamp() * 1000))


_CYCLE = (date(2000, 1, 1), 28 * 366)
"""Dates and weekdays fall together in all possible ways within 28 years."""


def collisions(shifts: Iterable[Shift]) -> str | None:
    """Names two shifts that fire in the same minute on some day, by the clock on the wall; None when there
    are none."""
    crons = [(shift.name, cron) for shift in shifts for cron in shift.when]
    for (one, cron), (two, other) in combinations(crons, 2):
        when = _meeting(cron, other) if one != two else None
        if when is not None:
            return f"shifts {one} and {two} both fire at {when}"
    return None


@lru_cache(maxsize=1024)
def _meeting(one: str, two: str) -> str | None:
    """A minute in which both cron expressions fire, in words."""
    first, second = (CronSim(each, datetime(2024, 1, 1)) for each in (one, two))
    minutes, hours = first.minutes & second.minutes, first.hours & second.hours
    months = first.months & second.months
    if not (minutes and hours and months):
        return None
    start, length = _CYCLE
    for days in range(length):
        day = start + timedelta(days=days)
        if day.month in months and first.match_day(day) and second.match_day(day):
            return f"{min(hours):02d}:{min(minutes):02d} on {day.strftime('%A')}s"
    return None


def until_of(text: str, zone: str, now: Instant) -> Instant:
    """The next ``HH:MM`` after ``now`` in the zone. Raises BadValue."""
    hours, colon, minutes = text.partition(":")
    digits = text.isascii() and hours.isdigit() and minutes.isdigit()
    if not (colon and digits and int(hours) < 24 and int(minutes) < 60):
        raise BadValue(f"{text!r} is no time of day; write it like 06:00")
    firing = next(_from("until", f"{int(minutes)} {int(hours)} * * *", zone, now))
    return firing.at
