"""Which shift is in force: a pure function of shifts, zone and instant (interfaces.md 7).

cronsim follows Debian cron: a time that a clock change skips fires at the change, a repeated one at its first
occurrence only. Searches begin three hours off, because local clocks run twice through an hour in autumn.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import pairwise, takewhile
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
    try:
        next(CronSim(text, datetime(2024, 1, 1, tzinfo=UTC)))
    except (CronSimError, StopIteration):
        raise BadValue(f'{text!r} is no cron time; write it like "30 8 * * mon-fri"') from None
    if len(text.split()) != 5:
        raise BadValue(f"{text!r} has {len(text.split())} fields; a cron time has five")


def local(at: Instant, zone: str) -> datetime:
    """An instant as local time."""
    return datetime.fromtimestamp(at / 1000, zone_of(zone))


def in_force(shifts: Iterable[Shift], zone: str, now: Instant) -> Firing | None:
    """The latest firing not after ``now``; None where there is none. Equal times: the name that sorts
    last."""
    found = [
        firing
        for shift in shifts
        for cron in shift.when
        if (firing := _latest(shift.name, cron, zone, now)) is not None
    ]
    return max(found, default=None)


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


def collisions(shifts: Iterable[Shift], zone: str, now: Instant) -> str | None:
    """Names two shifts that fire in the same minute within the next weeks; None when there are none."""
    shifts = list(shifts)
    firings = coming(shifts, zone, now, Instant(now + 15 * 86_400_000))
    for one, two in pairwise(firings):
        if one.at == two.at and one.shift != two.shift:
            when = local(one.at, zone).strftime("%a %H:%M")
            return f"shifts {one.shift} and {two.shift} both fire at {when}"
    return None


def until_of(text: str, zone: str, now: Instant) -> Instant:
    """The next ``HH:MM`` after ``now`` in the zone. Raises BadValue."""
    hours, colon, minutes = text.partition(":")
    if not (colon and hours.isdigit() and minutes.isdigit() and int(hours) < 24 and int(minutes) < 60):
        raise BadValue(f"{text!r} is no time of day; write it like 06:00")
    firing = next(_from("until", f"{int(minutes)} {int(hours)} * * *", zone, now))
    return firing.at
