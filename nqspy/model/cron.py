"""Times of a cron expression: the days and minutes at which it fires, on a clock that never jumps. The days
of a year are bits of a whole number, the 1st of January bit 0. There are 14 kinds of years (leap or not,
seven first days), so the next day is found with one test a year, and an expression that never fires is
recognised at once. cronsim parses the expressions; `wall` handles clock changes."""

import re
from bisect import bisect_left, bisect_right
from calendar import isleap, monthrange
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import lru_cache, reduce
from operator import or_

from cronsim import CronSim, CronSimError

from nqspy.model.errors import BadValue

Sundays = Callable[[int], int]
"""Function that returns the days of a year that count as Sundays, as bits."""

YEARS = 41
"""Years that a search goes: all comes again within 40 (29th of February on a weekday, over 2100)."""

_ALL = (1 << 366) - 1
_DAY = timedelta(days=1)


_MODEL = {(isleap(year), date(year, 1, 1).weekday()): year for year in range(2000, 2028)}
"""One year of each of the 14 kinds, by (leap year, weekday of the 1st of January)."""


def no_sundays(year: int) -> int:
    """Return 0, which means no extra days: only real Sundays count as Sundays."""
    return 0


def bits(days: Iterable[date]) -> int:
    """Return days of one year as bits of a number, the 1st of January bit 0."""
    return _union(1 << day.timetuple().tm_yday - 1 for day in days)


class _Year:
    """The days of one kind of year as bits: ``months[1..12]``; ``days[1..31]``, by number in the month;
    ``weekdays[0..6]`` from Sunday; ``nth[1..5]`` and ``last`` of their weekday in the month; ``ends``: last
    days of months; ``work_ends``: last days from Monday to Friday of months."""

    def __init__(self, year: int) -> None:
        self.months, self.days, self.weekdays, self.nth = [0] * 13, [0] * 32, [0] * 7, [0] * 6
        self.last = self.ends = self.work_ends = 0
        for number in range(365 + isleap(year)):
            day, bit = date(year, 1, 1) + timedelta(days=number), 1 << number
            length = monthrange(year, day.month)[1]
            self.months[day.month] |= bit
            self.days[day.day] |= bit
            self.weekdays[day.isoweekday() % 7] |= bit
            self.nth[(day.day + 6) // 7] |= bit
            self.last |= bit if day.day + 7 > length else 0
            self.ends |= bit if day.day == length else 0
            last_weekday = length - max(0, day.replace(day=length).isoweekday() - 5)  # Monday to Friday
            self.work_ends |= bit if day.day == last_weekday else 0


_year = lru_cache(maxsize=14)(_Year)


@dataclass(frozen=True)
class Cron:
    """A parsed cron expression. ``wild``: minute or hour begins with a star, so its times follow the clock as
    it runs; others are fixed times of the day (Debian's cron distinguishes them in the same way)."""

    times: tuple[int, ...] = field(hash=False)  # up to 1,440: hashing them would take long
    """Its times on a day that it fires, as minutes after midnight, in ascending order."""
    wild: bool
    months: frozenset[int]
    numbers: frozenset[int]
    weekdays: frozenset[int | tuple[int, int]]
    both: bool
    """Day of the month and weekday must both fit (one of them begins with a star); else one is enough."""

    def days(self, year: int, sundays: Sundays = no_sundays) -> int:
        """Return the days of a year on which it fires, as bits; ``sundays``: function for extra Sundays."""
        return _days_of(self, year) if sundays is no_sundays else self._days(year, sundays)

    def _days(self, year: int, sundays: Sundays) -> int:
        kind = _year(_MODEL[isleap(year), date(year, 1, 1).weekday()])
        months = _union(kind.months[each] for each in self.months)
        ends = {CronSim.LAST: kind.ends, CronSim.LAST_WEEKDAY: kind.work_ends}
        numbers = _union(ends.get(each) or kind.days[each] for each in self.numbers)
        may = months & numbers if self.both else months
        if not may or {each for each in self.weekdays if isinstance(each, int)} >= set(range(7)):
            return may
        special = sundays(year)
        weekdays = _union(self._of_weekday(kind, each, special) for each in self.weekdays)
        return may & weekdays if self.both else months & (numbers | weekdays)

    @staticmethod
    def _of_weekday(kind: _Year, wanted: int | tuple[int, int], special: int) -> int:
        weekday, which = (wanted, 0) if isinstance(wanted, int) else wanted
        found = kind.weekdays[weekday % 7]
        found = found | special if weekday % 7 == 0 else found & ~special
        if which == 0:
            return found
        return found & (kind.last if which == CronSim.LAST else kind.nth[which])

    def comes(self) -> bool:
        """True if some year has a day on which it fires."""
        return any(self.days(year) for year in _MODEL.values())

    def next(self, start: datetime, sundays: Sundays) -> datetime | None:
        """Return the first firing at or after ``start`` (no zone); None: it has none within `YEARS`."""
        if start.second or start.microsecond:
            start = start.replace(second=0, microsecond=0) + timedelta(minutes=1)
        day = self._next_day(start.date(), sundays)
        if day == start.date():
            place = bisect_left(self.times, 60 * start.hour + start.minute)
            if place < len(self.times):
                return _moment(day, self.times[place])
            day = self._next_day(start.date() + _DAY, sundays)
        return None if day is None else _moment(day, self.times[0])

    def last(self, end: datetime, sundays: Sundays) -> datetime | None:
        """Return the last firing at or before ``end`` (no zone); None: it had none within `YEARS`."""
        day = self._last_day(end.date(), sundays)
        if day == end.date():
            place = bisect_right(self.times, 60 * end.hour + end.minute)
            if place:
                return _moment(day, self.times[place - 1])
            day = self._last_day(end.date() - _DAY, sundays)
        return None if day is None else _moment(day, self.times[-1])

    def _next_day(self, start: date, sundays: Sundays) -> date | None:
        begin = start.timetuple().tm_yday - 1
        for year in range(start.year, min(start.year + YEARS, 9998)):
            days = self.days(year, sundays) >> begin << begin
            if days:
                return _first_day(year, days)
            begin = 0
        return None

    def _last_day(self, end: date, sundays: Sundays) -> date | None:
        most = (1 << end.timetuple().tm_yday) - 1
        for year in range(end.year, max(end.year - YEARS, 1), -1):
            days = self.days(year, sundays) & most
            if days:
                return date(year, 1, 1) + timedelta(days=days.bit_length() - 1)
            most = _ALL
        return None


def _union(masks: Iterable[int]) -> int:
    return reduce(or_, masks, 0)


def _first_day(year: int, days: int) -> date:
    """Return the first of these days (bits) of a year."""
    return date(year, 1, 1) + timedelta(days=(days & -days).bit_length() - 1)


def _moment(day: date, minute: int) -> datetime:
    return datetime.combine(day, time(*divmod(minute, 60)))


@lru_cache(maxsize=1024)
def _days_of(cron: Cron, year: int) -> int:
    return cron._days(year, no_sundays)


@lru_cache(maxsize=1024)
def read(text: str) -> Cron:
    """Return a parsed cron expression of five fields. Raises BadValue if it is not valid, or never fires."""
    fields = text.upper().split()
    if len(fields) != 5:
        raise BadValue(f"{text!r} has {len(fields)} fields; a cron time has 5")
    try:
        # A step in a range of one, 5-5/2, is no step from there on (cronsim takes it for 5/2).
        parsed = CronSim(re.sub(r"\b(\w+)-\1/\d+", r"\1", text), datetime(2000, 1, 1))
    except CronSimError as error:
        if _fits_alone(fields):
            raise never(text) from None
        raise BadValue(
            f'{text!r} is not a cron time ({str(error).lower()}); write it like "30 8 * * mon-fri"'
        ) from None
    found = Cron(
        tuple(60 * hour + minute for hour in sorted(parsed.hours) for minute in sorted(parsed.minutes)),
        any(field.startswith("*") for field in text.split()[:2]),
        frozenset(parsed.months),
        frozenset(parsed.days),
        frozenset(0 if each == 7 else each for each in parsed.weekdays),
        parsed.day_and,
    )
    if not found.comes():
        raise never(text)
    return found


def never(text: str) -> BadValue:
    """Return the error for an expression that no day fits."""
    return BadValue(f"{text!r} never comes: no year has such a day")


def _fits_alone(fields: list[str]) -> bool:
    """True if day and month are both valid, so that cronsim refuses only their combination."""
    minute, hour, day, month, weekday = fields
    try:
        for one, other in ((day, "*"), ("1", month)):
            CronSim(" ".join((minute, hour, one, other, weekday)), datetime(2000, 1, 1))
    except CronSimError:
        return False
    return True


@lru_cache(maxsize=4096)
def meeting(one: str, two: str) -> datetime | None:
    """Return the first time from 2026 on at which both expressions fire; None: they never do. Extra Sundays
    are left out: every date is a Sunday once in 28 years anyway."""
    first, second = read(one), read(two)
    times = set(first.times) & set(second.times)
    for year in range(2026, 2054) if times else ():
        if days := first.days(year) & second.days(year):
            return _moment(_first_day(year, days), min(times))
    return None
