"""Shift in force: a pure function of shifts, calendar, zone and instant (interfaces.md 7)."""

import subprocess
import sys
from datetime import date
from zoneinfo import ZoneInfo

import pytest
from engine.harness import PLAIN, Centre, moment, settings_of

from nqspy.engine import calendar, zones
from nqspy.model import events as ev
from nqspy.model.errors import BadValue
from nqspy.model.ids import HOUR, Instant
from nqspy.model.shifts import Calendar, Shift

PARIS = "Europe/Paris"
CEA = (
    Shift("day", ("30 8 * * mon-fri",)),
    Shift("evening", ("0 17 * * mon-fri",)),
    Shift("night", ("0 21 * * mon-fri",)),
    Shift("report", ("0 6 * * mon-fri",)),
)


def in_force(shifts, text: str) -> str | None:
    firing = calendar.in_force(settings_of(shifts), PARIS, moment(text))
    return firing and firing.shift


def firings(shifts, since: str, hours: float) -> list[str]:
    start = moment(since)
    found = calendar.coming(settings_of(shifts), PARIS, start, Instant(round(start + hours * HOUR)))
    return [f"{zones.local(f.at, PARIS).isoformat()} {f.shift}" for f in found]


def test_without_shifts_or_before_the_first_there_is_none():
    assert in_force((), "2026-03-02T08:30:00+01:00") is None
    assert calendar.next_firing(settings_of(()), PARIS, Instant(0)) is None


def test_of_several_skipped_times_the_latest_on_the_wall_is_in_force():
    shifts = (Shift("late", ("50 2 * * *",)), Shift("zero", ("10 2 * * *",)), Shift("mid", ("30 2 * * *",)))
    assert in_force(shifts, "2026-03-29T03:00:00+02:00") == "late"
    assert in_force((*shifts, Shift("after", ("0 3 * * *",))), "2026-03-29T03:00:00+02:00") == "after"
    assert in_force(shifts, "2026-03-28T02:15:00+01:00") == "zero"


@pytest.mark.parametrize("cron", ["0 0 * * *", "30 0 * * *", "59 0 * * *", "0 3 * * *", "59 1 * * *"])
@pytest.mark.parametrize("since", ["2026-03-25T12:00:00+01:00", "2026-10-22T12:00:00+02:00"])
def test_no_day_is_left_out_and_none_comes_twice_around_the_changes(cron, since):
    found = firings((Shift("x", (cron,)),), since, 7 * 24)
    days = [text[:10] for text in found]
    assert len(days) == len(set(days)) == 7


@pytest.mark.parametrize(
    ("cron", "day"),
    [
        ("0 9 * * 0", "2026-03-08"),
        ("0 9 * * 7", "2026-03-08"),
        ("0 9 * * 1", "2026-03-09"),
        ("0 9 * * SUN", "2026-03-08"),
        ("0 9 * jun wed", "2026-06-03"),
        ("0 9 13 * fri", "2026-03-06"),
    ],
)
def test_weekdays_and_months_are_debians(cron, day):
    [first, *_] = firings((Shift("x", (cron,)),), "2026-03-02T10:00:00+01:00", 24 * 100)
    assert first.startswith(day)


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


def test_a_time_of_day_is_the_next_one():
    now = moment("2026-03-02T21:30:00+01:00")
    assert calendar.until_of("06:00", PARIS, now) == moment("2026-03-03T06:00:00+01:00")
    assert calendar.until_of("22:00", PARIS, now) == moment("2026-03-02T22:00:00+01:00")


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
    assert (
        calendar.in_force(settings_of(CEA, FRANCE), PARIS, moment("2026-07-14T12:00:00+02:00")).shift
        == "night"
    )
    assert calendar.in_force(settings_of(CEA), PARIS, moment("2026-07-14T12:00:00+02:00")).shift == "day"


def test_extra_days_and_days_that_are_worked():
    days = Calendar("FR", ("2026-12-24", "2026-12-31"), ("2026-11-11",))
    assert calendar.special_days(days, 2026)[date(2026, 12, 24)] == "extra day"
    assert date(2026, 11, 11) not in calendar.special_days(days, 2026)
    assert calendar.special_days(days, 2026)[date(2026, 12, 25)] == "Christmas Day"
    assert on_wall(days, "2026-11-11T00:00:00+01:00", "2026-11-11T07:00:00+01:00") == ["Wed 11 06:00 report"]
    assert on_wall(days, "2026-12-24T00:00:00+01:00", "2026-12-26T00:00:00+01:00") == []
    assert calendar.special_days(Calendar(), 2026) == {}


def test_a_part_of_a_country_has_its_own():
    bavaria = calendar.special_days(Calendar("DE-BY"), 2026)
    assert date(2026, 1, 6) in bavaria
    assert date(2026, 1, 6) not in calendar.special_days(Calendar("DE"), 2026)


def test_the_coming_holidays_have_names():
    found = calendar.sundays(
        settings_of((), FRANCE),
        PARIS,
        moment("2026-12-20T00:00:00+01:00"),
        moment("2027-01-02T00:00:00+01:00"),
    )
    assert found == [(date(2026, 12, 25), "Christmas Day"), (date(2027, 1, 1), "New Year's Day")]


# ---------------------------------------------------------------- on a running site

SHIFTS = """
define shift day when=("30 8 * * mon-fri")
  set run_limit=1 batch
end
define shift night when=("0 21 * * mon-fri")
  set run_limit=5 batch
end
"""


def test_the_calendar_of_a_running_site_is_looked_at_anew():
    place = Centre(PLAIN + SHIFTS, at="2026-07-14T12:00:00+02:00")
    assert place.site.shift.current == "day"
    place.qmgr("set calendar holidays=FR")
    assert place.site.shift.current == "day", "its firing has counted"
    place.until("2026-07-14T22:00:00+02:00")
    assert place.site.shift.current == "day"
    place.until("2026-07-16T00:00:00+02:00")
    assert [e.shift for e in place.events(ev.ShiftChanged)] == ["day", "day", "night"]
    assert place.events(ev.ShiftChanged)[1].fired == moment("2026-07-15T08:30:00+02:00")


def test_who_makes_today_a_holiday_has_the_right_shift_at_once_by_automatic():
    place = Centre(PLAIN + SHIFTS, at="2026-07-14T12:00:00+02:00")
    place.qmgr("set calendar extra=(2026-07-14)\nset shift automatic")
    assert place.site.shift.current == "night"
    place.until("2026-07-15T08:30:00+02:00")
    assert place.site.shift.current == "day"
    place.is_sound()


def test_dates_are_added_and_taken_out_and_stay_over_a_restart():
    place = Centre(PLAIN + SHIFTS, at="2026-12-23T22:00:00+01:00")
    place.qmgr("set calendar extra=(2026-12-24, 2026-12-31)\nadd calendar extra=(2026-12-28)")
    place.qmgr("remove calendar extra=(2026-12-31)")
    assert place.site.settings.calendar.extra == ("2026-12-24", "2026-12-28")
    place.sim.restart()
    assert place.site.settings.calendar.extra == ("2026-12-24", "2026-12-28")
    place.until("2026-12-24T23:00:00+01:00")
    assert place.site.shift.current == "night"
    place.is_sound()


def test_starting_up_without_holidays_does_not_load_them():
    code = "import sys, nqspy.daemon.main; assert not {'holidays', 'dateutil'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
