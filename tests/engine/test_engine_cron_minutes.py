"""Cron times around every change of the clock, compared with a simple count minute by minute.

A certain time of the day fires in the minute in which the clock first shows it or something later; what
begins with a star in minute or hour fires whenever the clock shows it (interfaces.md 7, Debian's cron).
"""

import random
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from engine.harness import PLAIN, moment, settings_of
from engine.story import play
from examples import examples

from nqspy.engine import calendar, zones
from nqspy.model.errors import BadValue
from nqspy.model.ids import DAY, HOUR, MINUTE, Instant
from nqspy.model.shifts import Calendar, Shift

ZONES = [
    "Europe/Paris", "Europe/London", "Europe/Dublin", "Europe/Lisbon", "Europe/Moscow", "Europe/Volgograd",
    "Europe/Istanbul", "Africa/Casablanca", "Africa/El_Aaiun", "Africa/Cairo", "Africa/Juba",
    "Africa/Windhoek", "Asia/Tehran", "Asia/Almaty", "Asia/Dhaka", "Asia/Pyongyang", "Asia/Gaza",
    "Asia/Beirut", "Asia/Amman", "Asia/Dili", "Asia/Colombo", "America/New_York", "America/St_Johns",
    "America/Caracas", "America/Sao_Paulo", "America/Havana", "America/Santiago", "America/Scoresbysund",
    "America/Nuuk", "America/Argentina/San_Luis", "Antarctica/Troll", "Antarctica/Casey", "Atlantic/Azores",
    "Australia/Lord_Howe", "Australia/Adelaide", "Pacific/Apia", "Pacific/Chatham", "Pacific/Kwajalein",
    "Pacific/Tongatapu", "Pacific/Norfolk",
]  # fmt: skip
FIRST, LAST = datetime(1993, 1, 1, tzinfo=UTC), datetime(2038, 1, 1, tzinfo=UTC)
"""First year: in 1993 Kwajalein skipped a day."""
EPOCH = datetime(1970, 1, 1)
"""Origin of minute counts, in UTC and in local time."""
AROUND = 2 * 1440
"""Minutes before and after a change."""


@lru_cache(maxsize=64)
def offset(zone: str, minute: int) -> int:
    """Return by how many minutes local time is ahead of UTC."""
    shown = datetime.fromtimestamp(60 * minute, ZoneInfo(zone)).utcoffset()
    assert shown is not None
    return round(shown.total_seconds()) // 60


@lru_cache(maxsize=64)
def changes(zone: str) -> list[int]:
    """Return the minutes (UTC) at which the clock changed."""
    found = []
    first, last = (round(each.timestamp()) // 60 for each in (FIRST, LAST))
    for day in range(first, last, 1440):
        if offset(zone, day) != offset(zone, day + 1440):
            low, high = day, day + 1440
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if offset(zone, middle) != offset(zone, day) else (middle, high)
            found.append(high)
    return found


@dataclass(frozen=True)
class Expression:
    """A cron expression with its drawn sets (weekdays from Sunday, 0)."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]

    @property
    def wild(self) -> bool:
        return any(field.startswith("*") for field in self.text.split()[:2])

    def on(self, day: int, sundays: Collection[int] = ()) -> bool:
        """True if it fires on a day, counted from `EPOCH`; ``sundays``: days that count as Sundays."""
        when = EPOCH + timedelta(days=day)
        weekday = 0 if day in sundays else when.isoweekday() % 7
        number, weekday = when.day in self.days, weekday in self.weekdays
        both = any(field.startswith("*") for field in self.text.split()[2:5:2])
        return when.month in self.months and ((number and weekday) if both else (number or weekday))

    def fits(self, wall: np.ndarray, sundays: Collection[int]) -> np.ndarray:
        """Return the mask of these local minutes at which it fires."""
        days, minutes = np.divmod(wall, 1440)
        known, where = np.unique(days, return_inverse=True)
        on = np.array([self.on(int(day), sundays) for day in known])[where]
        at = np.zeros(1440, bool)
        for hour in self.hours:
            at[[60 * hour + minute for minute in self.minutes]] = True
        return on & at[minutes]


def _field(
    chance: random.Random, low: int, high: int, likely: tuple[int, ...] = ()
) -> tuple[str, frozenset[int]]:
    every = range(low, high + 1)
    kind = chance.choice(("one", "one", "star", "step", "range", "list", "range step"))
    one, other = (
        chance.choice(likely) if likely and chance.random() < 0.7 else chance.choice(every) for _ in "ab"
    )
    first, last, step = min(one, other), max(one, other), chance.choice((2, 3, 5, 6, 7))
    return {
        "one": (str(one), frozenset({one})),
        "star": ("*", frozenset(every)),
        "step": (f"*/{step}", frozenset(every[::step])),
        "range": (f"{first}-{last}", frozenset(range(first, last + 1))),
        "list": (f"{one},{other}", frozenset({one, other})),
        "range step": (f"{first}-{last}/{step}", frozenset(range(first, last + 1, step))),
    }[kind]


NAMES = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


def draw(chance: random.Random) -> Expression:
    """Draw a cron expression that mostly fires near the hours of clock changes."""
    minute = _field(chance, 0, 59, (0, 1, 5, 15, 30, 45, 59))
    hour = _field(chance, 0, 23, (0, 1, 2, 3, 4, 22, 23))
    anything: tuple[str, frozenset[int]] = ("*", frozenset(range(1, 32)))
    day = _field(chance, 1, 31, (1, 25, 29, 30, 31)) if chance.random() < 0.3 else anything
    month = _field(chance, 1, 12, (3, 4, 10, 12)) if chance.random() < 0.2 else ("*", frozenset(range(1, 13)))
    weekday = ("*", frozenset(range(7)))
    if chance.random() < 0.4:
        text, found = _field(chance, 0, 7, (0, 1, 5, 6))
        if chance.random() < 0.5 and "-" in text and "7" not in text and "/" not in text:
            text = "-".join(NAMES[int(each)] for each in text.split("-"))
        weekday = text, frozenset(each % 7 for each in found)
    fields = (minute, hour, day, month, weekday)
    return Expression(" ".join(text for text, _ in fields), *(found for _, found in fields))


def by_minutes(wanted: Expression, zone: str, change: int, sundays: Collection[int]) -> list[Instant]:
    """Return the firings of the four days around a change, by an examination of every minute."""
    minutes = np.arange(change - AROUND, change + AROUND)
    before, after = offset(zone, change - 1), offset(zone, change)
    wall = minutes + np.where(minutes < change, before, after)
    if wanted.wild:
        fires = wanted.fits(wall, sundays)
    else:
        most = np.concatenate(([wall[0] - 1], np.maximum.accumulate(wall)[:-1]))
        fires = wanted.fits(wall, sundays) & (wall > most)
        if after > before:
            [at] = np.nonzero(minutes == change)[0]
            fires[at] = wanted.fits(np.arange(most[at] + 1, wall[at] + 1), sundays).any()
    return [Instant(int(minute) * MINUTE) for minute in minutes[fires]]


def check(wanted: Expression, zone: str, some: list[int], chance: random.Random) -> None:
    """Compare the next and the last firing around each of these changes; near every second one some days
    count as Sundays."""
    shifts = (Shift("x", (wanted.text,)),)
    for change in some:
        near = range(change // 1440 - 3, change // 1440 + 4)
        sundays = set(chance.sample(near, 2)) if chance.random() < 0.5 else set()
        dates = sorted((EPOCH + timedelta(days=day)).date().isoformat() for day in sundays)
        days = Calendar(extra=tuple(dates))
        expected = by_minutes(wanted, zone, change, sundays)
        start, end = Instant((change - AROUND) * MINUTE - 1), Instant((change + AROUND) * MINUTE - 1)
        where = f"{wanted.text} in {zone} around {datetime.fromtimestamp(60 * change, ZoneInfo(zone))}"
        found = [firing.at for firing in calendar.coming(settings_of(shifts, days), zone, start, end)]
        assert found == expected, where
        first = calendar.next_firing(settings_of(shifts, days), zone, start)
        assert first is not None
        assert first.at == expected[0] if expected else first.at > end
        for now, last in _moments(expected, Instant(change * MINUTE)):
            firing = calendar.in_force(settings_of(shifts, days), zone, now)
            assert firing is not None, where
            assert firing.at == last, f"{where}, seen from {now}"


def _moments(expected: list[Instant], change: Instant) -> Iterator[tuple[Instant, Instant]]:
    """Yield instants near the firings around a change, each with the last firing before it."""
    near = sorted(range(len(expected)), key=lambda n: abs(expected[n] - change))[:6]
    for n in near:
        yield expected[n], expected[n]
        yield Instant(expected[n] + MINUTE - 1), expected[n]
        if n:
            yield Instant(expected[n] - 1), expected[n - 1]
    for now in (change - 1, change, change + HOUR // 2):
        before = [at for at in expected if at <= now]
        if before:
            yield Instant(now), before[-1]


def pairs(count: int, seed: int, most: int) -> int:
    """Check this many pairs of zone and expression, each around at most ``most`` changes; return the number
    of changes."""
    chance, looked = random.Random(seed), 0
    for n in range(count):
        zone, wanted = ZONES[n % len(ZONES)], draw(chance)
        try:
            calendar.check_cron(wanted.text)
        except BadValue:
            assert not any(wanted.on(day) for day in range(10957, 10957 + 28 * 366)), wanted.text
            continue
        some = changes(zone)
        some = some if len(some) <= most else sorted(chance.sample(some, most))
        check(wanted, zone, some, chance)
        looked += len(some)
    return looked


def test_the_zones_are_forty_and_all_change_their_clocks():
    assert len(set(ZONES)) == 40
    assert min(len(changes(zone)) for zone in ZONES) >= 1


def test_every_minute_around_the_changes_agrees_for_300_zones_and_expressions():
    assert pairs(examples(300), seed=10, most=6) > 3 * examples(300)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10))
def test_every_minute_around_the_changes_agrees_for_1000_pairs(seed):
    pairs(1000, seed, most=100)


# ---------------------------------------------------------------- worked by hand
def ahead(zone: str, cron: str, since: str, until: str) -> list[str]:
    found = calendar.coming(settings_of((Shift("x", (cron,)),)), zone, moment(since), moment(until))
    return [zones.local(firing.at, zone).isoformat() for firing in found]


def test_what_begins_with_a_star_follows_the_clock_and_certain_times_come_once():
    paris, since, until = "Europe/Paris", "2026-10-25T01:59:00+02:00", "2026-10-25T03:00:00+01:00"
    assert [text[11:16] for text in ahead(paris, "*/30 * * * *", since, until)] == [
        "02:00", "02:30", "02:00", "02:30", "03:00",
    ]  # fmt: skip
    certain = [text[11:16] for text in ahead(paris, "0,30 0-23 * * *", since, until)]
    assert certain == ["02:00", "02:30", "03:00"]
    since, until = "2026-03-29T01:59:00+01:00", "2026-03-29T03:10:00+02:00"
    assert [text[11:16] for text in ahead(paris, "5 * * * *", since, until)] == ["03:05"]
    assert [text[11:16] for text in ahead(paris, "5 0-23 * * *", since, until)] == ["03:00", "03:05"]


HARD = (
    ("Europe/Paris", "0 0 29 2 */7"),  # the 29th of February on a Sunday
    ("Europe/Paris", "* 2 * 3 0L"),  # a star in the hour that is skipped, always
    ("Europe/Paris", "* * 29 2 */7"),
    ("Pacific/Apia", "0-59 0-23 * * *"),
    ("Antarctica/Casey", "0-59 0-23 * * *"),
    ("Pacific/Chatham", "15 */2 * * *"),
    ("Australia/Lord_Howe", "5 */2 31 12 */7"),
)


@pytest.mark.parametrize(("zone", "cron"), HARD)
@pytest.mark.parametrize("day", ["1996-02-29", "2010-03-05", "2011-12-31", "2026-04-05", "2100-03-01"])
def test_no_search_takes_more_than_20_ms(zone, cron, day):
    settings = settings_of((Shift("x", (cron,)),))
    for hours in range(0, 24, 5):
        now = Instant(moment(f"{day}T00:00:00+00:00") + hours * HOUR)
        for search in (calendar.in_force, calendar.next_firing):
            begun = time.thread_time()
            search(settings, zone, now)
            first = time.thread_time() - begun
            begun = time.thread_time()
            search(settings, zone, now)
            spent = min(first, time.thread_time() - begun)
            assert spent < 0.02, (search.__name__, now)


def test_searches_end_also_at_the_ends_of_the_calendar():
    settings = settings_of((Shift("x", ("0 0 29 2 */7",)), Shift("y", ("* * 29 2 */7",))))
    for year in (3, 9990):
        now = Instant(round(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 1000)
        assert calendar.in_force(settings, "UTC", now) is None or year > 3
        calendar.next_firing(settings, "UTC", now)
    assert not calendar.coming(settings, "UTC", Instant(0), Instant(DAY))


# ---------------------------------------------------------------- the shift in force
PARIS = "Europe/Paris"
CEA = (
    Shift("day", ("30 8 * * mon-fri",)),
    Shift("evening", ("0 17 * * mon-fri",)),
    Shift("night", ("0 21 * * mon-fri",)),
    Shift("report", ("0 6 * * mon-fri",)),
)


NO_CRON = ("", "* * * *", "60 * * * *", "0 25 * * *", "0 0 * * * *", "night")
NEVER = ("0 0 30 2 *", "0 0 31 4,6,9,11 *", "59 23 30-31 feb */2", "0 0 */30 * mon#2", "0 0 31 jun */7")


@pytest.mark.parametrize(
    ("text", "expected"),
    [(each, "cron time") for each in NO_CRON] + [(each, "never comes") for each in NEVER],
)
def test_what_is_no_cron_time_or_never_comes_is_refused(text, expected):
    with pytest.raises(BadValue, match=expected):
        calendar.check_cron(text)


@pytest.mark.parametrize(
    ("one", "two", "meet"),
    [
        ("0 21 * * mon-fri", "0 21 * * sat,sun", False),
        ("0 21 * * mon-fri", "0 21 * * fri", True),
        ("0 9 1 * *", "0 9 * * mon", True),
        ("0 9 1 1 *", "0 9 * 2 mon", False),
        ("*/30 * * * *", "0 6 * * *", True),
        ("*/30 * * * *", "5 6 * * *", False),
        ("10 2 * * *", "40 2 * * *", False),  # together only where a clock change skips both
        ("0 0 29 2 *", "0 0 * * sun", True),
    ],
)
def test_two_shifts_never_fire_in_the_same_minute(one, two, meet):
    assert (calendar.collisions((Shift("a", (one,)), Shift("b", (two,)))) is not None) == meet
    assert calendar.collisions((Shift("a", (one, two)),)) is None, "one shift may have both"


def test_shifts_that_fire_together_are_refused_with_a_day_on_which_both_do():
    text = calendar.collisions((Shift("a", ("30 20 1 1 *",)), Shift("b", ("30 20 * * fri",))))
    assert "20:30, for example on Friday 2027-01-01" in text


@pytest.mark.parametrize("text", ["6", "24:00", "06:60", "x:y", "-1:00", "\u0666:00"])
def test_what_is_no_time_of_day_is_refused(text):
    with pytest.raises(BadValue, match="not a time of day"):
        calendar.until_of(text, PARIS, Instant(0))


def test_without_shifts_none_is_in_force():
    assert calendar.in_force(settings_of(()), PARIS, Instant(0)) is None
    assert calendar.next_firing(settings_of(()), PARIS, Instant(0)) is None


@pytest.mark.parametrize(
    ("more", "at", "shift"),
    [
        ((), "2026-03-29T03:00:00+02:00", "late"),
        ((Shift("after", ("0 3 * * *",)),), "2026-03-29T03:00:00+02:00", "after"),
        ((), "2026-03-28T02:15:00+01:00", "zero"),
    ],
)
def test_of_several_skipped_times_the_latest_on_the_wall_is_in_force(more, at, shift):
    shifts = (Shift("late", ("50 2 * * *",)), Shift("zero", ("10 2 * * *",)), Shift("mid", ("30 2 * * *",)))
    assert calendar.in_force(settings_of((*shifts, *more)), PARIS, moment(at)).shift == shift


@pytest.mark.parametrize(
    ("cron", "day"), [("0 9 * * SUN", "03-08"), ("0 9 * jun wed", "06-03"), ("0 9 13 * fri", "03-06")]
)
def test_weekdays_and_months_have_names(cron, day):
    settings, now = settings_of((Shift("x", (cron,)),)), moment("2026-03-02T10:00:00+01:00")
    assert f"{zones.local(calendar.next_firing(settings, PARIS, now).at, PARIS):%m-%d}" == day


def test_a_zone_that_does_not_exist_is_refused():
    with pytest.raises(BadValue, match="not a time zone"):
        zones.zone_of("Mars/Olympus")
    assert zones.zone_of(PARIS) == ZoneInfo(PARIS)


def test_times_of_a_skipped_hour_come_in_their_order():
    settings = settings_of((Shift("a", ("45 2 * * *",)), Shift("b", ("15 2 * * *",))))
    after = moment("2026-03-29T01:00:00+01:00")
    found = calendar.coming(settings, PARIS, after, Instant(after + DAY))
    assert [firing.shift for firing in found] == ["b", "a"]
    assert found[0].at == found[1].at
    assert calendar.in_force(settings, PARIS, found[0].at) == found[1]


# ---------------------------------------------------------------- days that count as Sundays
FRANCE = Calendar(holidays="FR")


def on_wall(days: Calendar, since: str, until: str, shifts=CEA) -> list[str]:
    found = calendar.coming(settings_of(shifts, days), PARIS, moment(since), moment(until))
    return [f"{zones.local(f.at, PARIS):%a %d %H:%M} {f.shift}" for f in found]


def test_on_a_holiday_nothing_of_the_week_fires_and_the_night_goes_on():
    # The 14th of July 2026 is a Tuesday.
    found = on_wall(FRANCE, "2026-07-13T12:00:00+02:00", "2026-07-15T09:00:00+02:00")
    assert found == ["Mon 13 17:00 evening", "Mon 13 21:00 night", "Wed 15 06:00 report", "Wed 15 08:30 day"]
    noon = moment("2026-07-14T12:00:00+02:00")
    for days, shift in ((FRANCE, "night"), (Calendar(), "day")):
        assert calendar.in_force(settings_of(CEA, days), PARIS, noon).shift == shift


def test_extra_days_and_days_that_are_worked():
    days = Calendar("FR", ("2026-12-24", "2026-12-31"), ("2026-11-11",))
    assert calendar.special_days(days, 2026)[date(2026, 12, 24)] == "extra day"
    assert date(2026, 11, 11) not in calendar.special_days(days, 2026)
    assert calendar.special_days(days, 2026)[date(2026, 12, 25)] == "Christmas Day"
    assert on_wall(days, "2026-11-11T00:00:00+01:00", "2026-11-11T07:00:00+01:00") == ["Wed 11 06:00 report"]
    assert on_wall(days, "2026-12-24T00:00:00+01:00", "2026-12-26T00:00:00+01:00") == []
    since, until = moment("2026-12-20T00:00:00+01:00"), moment("2027-01-02T00:00:00+01:00")
    coming = calendar.sundays(settings_of((), FRANCE), PARIS, since, until)
    assert coming == [(date(2026, 12, 25), "Christmas Day"), (date(2027, 1, 1), "New Year's Day")]
    assert calendar.special_days(Calendar(), 2026) == {}


def test_a_part_of_a_country_has_its_own():
    bavaria = calendar.special_days(Calendar("DE-BY"), 2026)
    assert date(2026, 1, 6) in bavaria
    assert date(2026, 1, 6) not in calendar.special_days(Calendar("DE"), 2026)


SHIFTS = """
define shift day when=("30 8 * * mon-fri")
  set run_limit=1 batch
end
define shift night when=("0 21 * * mon-fri")
  set run_limit=5 batch
end
"""


STORIES = {
    "its firing has counted, and the next holiday is none": ("2026-07-14T12:00:00+02:00", """shift day 1
        qmgr set calendar holidays=FR; shift day 1; until 2026-07-14T22:00:00+02:00; shift day 1
        until 2026-07-15T08:29:59+02:00; events shift_changed 1; until 2026-07-15T08:30:00+02:00
        events shift_changed 2; until 2026-07-16T00:00:00+02:00; shift night 5; events shift_changed 3"""),
    "made a holiday today has its right shift at once by automatic": ("2026-07-14T12:00:00+02:00", """
        qmgr set calendar extra=(2026-07-14) | set shift automatic; shift night 5
        until 2026-07-15T08:30:00+02:00; shift day 1"""),
    "dates are added and taken out, and stay over a restart": ("2026-12-23T22:00:00+01:00", """
        qmgr set calendar extra=(2026-12-24, 2026-12-31) | add calendar extra=(2026-12-28)
        qmgr remove calendar extra=(2026-12-31); restart; until 2026-12-24T23:00:00+01:00; shift night 5"""),
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_days_of_a_running_site(title):
    at, story = STORIES[title]
    site = play(story, settings=PLAIN + SHIFTS, at=at).centre.site
    if "taken out" in title:
        assert site.settings.calendar.extra == ("2026-12-24", "2026-12-28")


def test_starting_up_without_holidays_does_not_load_them():
    code = "import sys, nqspy.daemon.main; assert not {'holidays', 'dateutil'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
