"""Days that count as Sundays: holidays of a country, days named by hand, and what shifts make of them."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from engine.harness import MAX, PLAIN, Centre, moment
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.engine import calendar, zones
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.events import Change
from nqspy.model.ids import DAY, MINUTE, Instant
from nqspy.model.shifts import Calendar, Shift

PARIS = "Europe/Paris"
FRANCE = Calendar(holidays="FR")
CEA = (
    Shift("day", ("30 8 * * mon-fri",)),
    Shift("evening", ("0 17 * * mon-fri",)),
    Shift("night", ("0 21 * * mon-fri",)),
    Shift("report", ("0 6 * * mon-fri",)),
)


def firings(days: Calendar, since: str, until: str, shifts=CEA) -> list[str]:
    found = calendar.coming(shifts, days, PARIS, moment(since), moment(until))
    return [f"{zones.local(f.at, PARIS):%a %d %H:%M} {f.shift}" for f in found]


def test_on_a_holiday_nothing_of_the_week_fires_and_the_night_goes_on():
    # The 14th of July 2026 is a Tuesday.
    found = firings(FRANCE, "2026-07-13T12:00:00+02:00", "2026-07-15T09:00:00+02:00")
    assert found == ["Mon 13 17:00 evening", "Mon 13 21:00 night", "Wed 15 06:00 report", "Wed 15 08:30 day"]
    assert calendar.in_force(CEA, FRANCE, PARIS, moment("2026-07-14T12:00:00+02:00")).shift == "night"
    assert calendar.in_force(CEA, Calendar(), PARIS, moment("2026-07-14T12:00:00+02:00")).shift == "day"


@pytest.mark.parametrize(
    ("cron", "fires"),
    [
        ("0 9 * * *", ["Tue 14"]),
        ("0 9 * * sun", ["Tue 14"]),
        ("0 9 * * 0", ["Tue 14"]),
        ("0 9 * * 7", ["Tue 14"]),
        ("0 9 * * tue", []),
        ("0 9 14 * *", ["Tue 14"]),
        ("0 9 14 * fri", ["Tue 14"]),  # neither field is a star: one of them is enough
        ("0 9 15 * tue", []),
        ("0 9 15 * sun", ["Tue 14"]),
        ("0 9 14 7 *", ["Tue 14"]),
        ("0 9 * 8 *", []),
    ],
)
def test_each_cron_expression_sees_a_sunday(cron, fires):
    shifts = (Shift("x", (cron,)),)
    found = firings(FRANCE, "2026-07-14T00:00:00+02:00", "2026-07-14T23:59:00+02:00", shifts)
    assert [text[:6] for text in found] == fires


def test_extra_days_and_days_that_are_worked():
    days = Calendar("FR", ("2026-12-24", "2026-12-31"), ("2026-11-11",))
    assert calendar.special_days(days, 2026)[date(2026, 12, 24)] == "extra day"
    assert date(2026, 11, 11) not in calendar.special_days(days, 2026)
    assert calendar.special_days(days, 2026)[date(2026, 12, 25)] == "Christmas Day"
    assert firings(days, "2026-11-11T00:00:00+01:00", "2026-11-11T07:00:00+01:00") == ["Wed 11 06:00 report"]
    assert firings(days, "2026-12-24T00:00:00+01:00", "2026-12-26T00:00:00+01:00") == []
    assert calendar.special_days(Calendar(), 2026) == {}


def test_a_part_of_a_country_has_its_own():
    bavaria = calendar.special_days(Calendar("DE-BY"), 2026)
    assert date(2026, 1, 6) in bavaria
    assert date(2026, 1, 6) not in calendar.special_days(Calendar("DE"), 2026)


def test_the_coming_holidays_have_names():
    found = calendar.holidays_between(
        FRANCE, PARIS, moment("2026-12-20T00:00:00+01:00"), moment("2027-01-02T00:00:00+01:00")
    )
    assert found == [(date(2026, 12, 25), "Christmas Day"), (date(2027, 1, 1), "New Year's Day")]


# ---------------------------------------------------------------- against a plain evaluator

MINUTES = {"0": {0}, "30": {30}, "15": {15}, "10,50": {10, 50}, "*/20": {0, 20, 40}}
HOURS = {"0": {0}, "1": {1}, "2": {2}, "3": {3}, "8": {8}, "1-3": {1, 2, 3}, "21": {21}, "*": set(range(24))}
DAYS = {"*": set(range(1, 32)), "1": {1}, "29": {29}, "25-31": set(range(25, 32))}
WEEKDAYS = {"*": set(range(7)), "mon-fri": {1, 2, 3, 4, 5}, "sun": {0}, "6": {6}, "7": {0}, "wed": {3}}
CRONS = st.tuples(*(st.sampled_from(sorted(table)) for table in (MINUTES, HOURS, DAYS, WEEKDAYS)))
WEEKS = ("2026-03-23", "2026-10-19", "2026-06-01", "2026-12-21")


def wanted_on(fields: tuple[str, ...], day: date, sundays: set[date]) -> bool:
    """Debian's rule for days: a field with a star must fit as well, two without are either-or."""
    weekday = 0 if day in sundays else day.isoweekday() % 7
    of_month, of_week = day.day in DAYS[fields[2]], weekday in WEEKDAYS[fields[3]]
    both = fields[2].startswith("*") or fields[3].startswith("*")
    return (of_month and of_week) if both else (of_month or of_week)


def plainly(fields: tuple[str, ...], sundays: set[date], start: Instant, end: Instant) -> list[Instant]:
    """Every firing in the range, by looking at each minute."""
    zone, found = ZoneInfo(PARIS), set()
    real = fields[0].startswith("*") or fields[1].startswith("*")
    begin = datetime.fromtimestamp(start / 1000, UTC) - timedelta(days=1)
    for n in range((end - start) // MINUTE + 2 * 1440):
        moment = begin + timedelta(minutes=n)
        wall = moment.astimezone(zone) if real else moment.replace(tzinfo=None)
        fits = wall.minute in MINUTES[fields[0]] and wall.hour in HOURS[fields[1]]
        if fits and wanted_on(fields, wall.date(), sundays):
            found.add(Instant(round((moment if real else _on_the_clock(wall, zone)).timestamp() * 1000)))
    return sorted(at for at in found if start < at <= end)


def _on_the_clock(wall: datetime, zone: ZoneInfo) -> datetime:
    """A time on the wall as a moment: skipped ones at the change, repeated ones the first time."""
    while wall.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None) != wall:
        wall += timedelta(minutes=1)
    return wall.replace(tzinfo=zone, fold=0)


@settings(max_examples=examples(60))
@given(CRONS, st.sampled_from(WEEKS), st.sets(st.integers(0, 15), max_size=6))
def test_a_site_with_holidays_is_one_on_whose_calendar_they_are_sundays(fields, week, numbers):
    monday = date.fromisoformat(week)
    sundays = {monday + timedelta(days=n) for n in numbers}
    start = Instant(round(datetime.combine(monday, datetime.min.time(), ZoneInfo(PARIS)).timestamp() * 1000))
    end = Instant(start + 14 * DAY)
    cron = f"{fields[0]} {fields[1]} {fields[2]} * {fields[3]}"
    shifts = [Shift("x", (cron,))]
    days = Calendar(extra=tuple(day.isoformat() for day in sorted(sundays)))
    expected = plainly(fields, sundays, start, end)
    assert [firing.at for firing in calendar.coming(shifts, days, PARIS, start, end)] == expected
    for at in expected[:3]:
        for now in (Instant(at - 1), at, Instant(at + MINUTE - 1)):
            before = [each for each in expected if each <= now]
            if before:
                firing = calendar.in_force(shifts, days, PARIS, now)
                assert firing is not None
                assert firing.at == before[-1]


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (Change("set", "calendar/holidays", "France"), "is no country with known holidays"),
        (Change("set", "calendar/holidays", "France"), "(nearest: FR"),
        (Change("set", "calendar/holidays", "FX"), "'FX' is no country"),
        (Change("set", "calendar/holidays", "DE-XY"), "'XY' is no part of DE with holidays of its own"),
        (Change("set", "calendar/holidays", "DE-BX"), "write it like DE-HB (nearest: HB, BY, BW)"),
        (
            Change("set", "calendar/extra", ["24.12.2026"]),
            "'24.12.2026' is no date; write it like 2026-12-24",
        ),
        (Change("add", "calendar/workdays", ["2026-02-30"]), "no date"),
        (Change("add", "calendar/extra", "20261224"), "no date"),
        (Change("set", "calendar/extra", 5), "is a list of words"),
        (Change("create", "calendar/x", {}), "can only be set"),
        (Change("add", "calendar/holidays", ["FR"]), "add is for lists"),
    ],
)
def test_what_is_no_country_and_no_date_is_refused_with_what_would_be_right(change, text):
    refusal = Centre().refused(cm.Configure((change,)), MAX)
    assert text in str(refusal)
    assert "\n" not in str(refusal)


def test_a_day_cannot_be_both():
    place = Centre().qmgr("set calendar extra=(2026-12-24)")
    refusal = place.refused(place.command("add calendar workdays=(2026-12-24)"), MAX)
    assert str(refusal) == "calendar: 2026-12-24 is in extra and in workdays; take it out of one of them"


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
    import subprocess
    import sys

    code = "import sys, nqspy.daemon.main; assert not {'holidays', 'dateutil'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
