"""Shift in force: a pure function of shifts, calendar, zone and instant (interfaces.md 7)."""

import subprocess
import sys
from datetime import date
from zoneinfo import ZoneInfo

import pytest
from engine.harness import PLAIN, moment, settings_of
from engine.story import play

from nqspy.engine import calendar, zones
from nqspy.model.errors import BadValue
from nqspy.model.ids import Instant
from nqspy.model.shifts import Calendar, Shift

PARIS = "Europe/Paris"
CEA = (
    Shift("day", ("30 8 * * mon-fri",)),
    Shift("evening", ("0 17 * * mon-fri",)),
    Shift("night", ("0 21 * * mon-fri",)),
    Shift("report", ("0 6 * * mon-fri",)),
)


@pytest.mark.parametrize(
    "text", ["", "* * * *", "60 * * * *", "0 25 * * *", "0 0 30 2 *", "0 0 * * * *", "night"]
)
def test_what_is_no_cron_time_is_refused(text):
    with pytest.raises(BadValue, match="cron time"):
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


@pytest.mark.parametrize("text", ["6", "24:00", "06:60", "x:y", "-1:00", "\u0666:00"])
def test_what_is_no_time_of_day_is_refused(text):
    with pytest.raises(BadValue, match="no time of day"):
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
    with pytest.raises(BadValue, match="no time zone"):
        zones.zone_of("Mars/Olympus")
    assert zones.zone_of(PARIS) == ZoneInfo(PARIS)


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


# ---------------------------------------------------------------- on a running site

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
