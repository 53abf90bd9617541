"""Which shift is in force: a pure function of shifts, zone and instant (interfaces.md 7)."""

from zoneinfo import ZoneInfo

import pytest
from engine.harness import moment
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.engine import calendar, zones
from nqspy.model.errors import BadValue
from nqspy.model.ids import DAY, HOUR, MINUTE, Instant
from nqspy.model.shifts import Calendar, Shift

PARIS = "Europe/Paris"
DAYS = Calendar()
CEA = (
    Shift("day", ("30 8 * * mon-fri",)),
    Shift("evening", ("0 17 * * mon-fri",)),
    Shift("night", ("0 21 * * mon-fri",)),
    Shift("report", ("0 6 * * mon-fri",)),
)


def in_force(shifts, text: str) -> str | None:
    firing = calendar.in_force(shifts, DAYS, PARIS, moment(text))
    return firing and firing.shift


def firings(shifts, since: str, hours: float) -> list[str]:
    start = moment(since)
    found = calendar.coming(shifts, DAYS, PARIS, start, Instant(round(start + hours * HOUR)))
    return [f"{zones.local(f.at, PARIS).isoformat()} {f.shift}" for f in found]


@pytest.mark.parametrize(
    ("at", "shift"),
    [
        ("2026-03-02T08:29:59+01:00", "report"),
        ("2026-03-02T08:30:00+01:00", "day"),
        ("2026-03-02T16:59:59+01:00", "day"),
        ("2026-03-02T17:00:00+01:00", "evening"),
        ("2026-03-02T21:00:00+01:00", "night"),
        ("2026-03-03T05:59:59+01:00", "night"),
        ("2026-03-03T06:00:00+01:00", "report"),
        ("2026-03-07T12:00:00+01:00", "night"),  # a Saturday: week-ends are night
        ("2026-03-08T23:00:00+01:00", "night"),
        ("2026-03-09T06:00:00+01:00", "report"),
    ],
)
def test_the_shift_in_force_is_the_one_that_fired_last(at, shift):
    assert in_force(CEA, at) == shift


def test_without_shifts_or_before_the_first_there_is_none():
    assert in_force((), "2026-03-02T08:30:00+01:00") is None
    assert calendar.next_firing((), DAYS, PARIS, Instant(0)) is None


def test_a_time_that_the_spring_change_skips_fires_at_the_change():
    shifts = (Shift("a", ("0 1 * * *",)), Shift("b", ("30 2 * * *",)))
    assert in_force(shifts, "2026-03-29T01:59:59+01:00") == "a"
    assert in_force(shifts, "2026-03-29T03:00:00+02:00") == "b"
    assert firings(shifts, "2026-03-28T23:59:00+01:00", 25) == [
        "2026-03-29T01:00:00+01:00 a",
        "2026-03-29T03:00:00+02:00 b",
        "2026-03-30T01:00:00+02:00 a",
    ]


def test_of_several_skipped_times_the_latest_on_the_wall_is_in_force():
    shifts = (Shift("late", ("50 2 * * *",)), Shift("zero", ("10 2 * * *",)), Shift("mid", ("30 2 * * *",)))
    assert in_force(shifts, "2026-03-29T03:00:00+02:00") == "late"
    assert in_force((*shifts, Shift("after", ("0 3 * * *",))), "2026-03-29T03:00:00+02:00") == "after"
    assert in_force(shifts, "2026-03-28T02:15:00+01:00") == "zero"


def test_a_time_that_the_autumn_change_repeats_fires_at_its_first_occurrence_only():
    shifts = (Shift("a", ("0 1 * * *",)), Shift("b", ("30 2 * * *",)), Shift("c", ("45 2 * * *",)))
    assert in_force(shifts, "2026-10-25T02:29:59+02:00") == "a"
    assert in_force(shifts, "2026-10-25T02:30:00+02:00") == "b"
    assert in_force(shifts, "2026-10-25T02:45:00+02:00") == "c"
    assert in_force(shifts, "2026-10-25T02:30:00+01:00") == "c", "the second 02:30 is none"
    assert firings(shifts, "2026-10-25T01:30:00+02:00", 5) == [
        "2026-10-25T02:30:00+02:00 b",
        "2026-10-25T02:45:00+02:00 c",
    ]


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
    found = calendar.collisions((Shift("a", (one,)), Shift("b", (two,))))
    assert (found is not None) == meet
    if found:
        assert found.startswith("shifts a and b both fire at ")
        assert found.endswith("; one of them must fire at another minute")


def test_one_shift_may_have_times_that_fall_together():
    assert calendar.collisions((Shift("a", ("0 9 1 * *", "0 9 * * mon")),)) is None


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


CRONS = st.builds(
    "{} {} * * {}".format,
    st.sampled_from(("0", "15", "30", "*/20", "59")),
    st.sampled_from(("0", "1", "2", "3", "21", "*", "*/6")),
    st.sampled_from(("*", "mon-fri", "sun", "6")),
)


@settings(max_examples=examples(60))
@given(
    st.lists(CRONS, min_size=1, max_size=3, unique=True),
    st.sampled_from(("2026-03-29T00:00:00+01:00", "2026-10-25T00:00:00+02:00", "2026-06-01T00:00:00+02:00")),
    st.integers(-30 * 60, 30 * 60),
)
def test_what_is_in_force_is_the_last_of_what_came(crons, day, minutes):
    """Looking back and looking ahead agree at every instant, changes of the clock included."""
    shifts = [Shift(f"s{n}", (cron,)) for n, cron in enumerate(crons)]
    now = Instant(moment(day) + minutes * MINUTE)
    before = calendar.coming(shifts, DAYS, PARIS, Instant(now - 15 * DAY), now)
    latest = calendar.in_force(shifts, DAYS, PARIS, now)
    assert latest is not None
    assert latest.at == before[-1].at
    after = calendar.next_firing(shifts, DAYS, PARIS, now)
    assert after is not None
    assert after.at > now
    assert not calendar.coming(shifts, DAYS, PARIS, now, Instant(after.at - 1))
