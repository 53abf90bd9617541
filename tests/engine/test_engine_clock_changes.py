"""Weeks with a change of the clock (Europe/Paris) on the shipped site, with restarts in each shift: the right
shift is in force, and each switch happens exactly once."""

import pytest
from engine.harness import PLAIN, Centre, moment
from scenarios.computing_centre import Site

from nqspy.engine import calendar, zones
from nqspy.model import events as ev
from nqspy.model.ids import DAY, HOUR, MINUTE, Instant

SPRING, AUTUMN = "2026-03-26T12:00:00+01:00", "2026-10-22T12:00:00+02:00"
WEEKDAYS = ("06:00 report", "08:30 day", "17:00 evening", "21:00 night")


def site(start: str, more: str = "") -> Site:
    return Site(lambda request: 600, at=start, more=more)


def switches(place: Centre) -> list[str]:
    """Return every switch by local time, with the offset of the day."""
    return [
        f"{zones.local(r.at, 'Europe/Paris'):%a %d %H:%M %z} {r.event.shift}"
        for r in place.journal.events()
        if isinstance(r.event, ev.ShiftChanged)
    ]


def week(*days: str) -> list[str]:
    """Return the four switches of each of these weekdays, given as ``"Fri 27 +0100"``."""
    return [f"{day[:6]} {each[:5]} {day[7:]} {each[6:]}" for day in days for each in WEEKDAYS]


SPRING_WEEK = [
    "Thu 26 12:00 +0100 day",
    *week("Thu 26 +0100")[2:],
    *week("Fri 27 +0100", "Mon 30 +0200", "Tue 31 +0200", "Wed 01 +0200"),
]
AUTUMN_WEEK = [
    "Thu 22 12:00 +0200 day",
    *week("Thu 22 +0200")[2:],
    *week("Fri 23 +0200", "Mon 26 +0100", "Tue 27 +0100", "Wed 28 +0100"),
]
BOTH = pytest.mark.parametrize(("start", "expected"), [(SPRING, SPRING_WEEK), (AUTUMN, AUTUMN_WEEK)])


def end_of(start: str) -> Instant:
    """Return the instant six days and twelve hours later in local time."""
    return moment("2026-04-02T00:00:00+02:00" if start == SPRING else "2026-10-29T00:00:00+01:00")


@BOTH
def test_with_a_restart_in_each_shift_and_around_each_change_of_the_clock(start, expected):
    place, end = site(start), end_of(start)
    firings = calendar.coming(place.site.settings, "Europe/Paris", place.sim.now, Instant(end - HOUR))
    around = [firing.at + each for firing in firings for each in (-1, 0, MINUTE)]
    change = moment("2026-03-29T03:00:00+02:00" if start == SPRING else "2026-10-25T02:00:00+01:00")
    around += [change + each for each in (-HOUR, -1, 0, 1, HOUR // 2, HOUR)]
    for at in sorted(around):
        place.sim.run(Instant(at))
        shift = place.site.shift.current
        place.sim.restart()
        assert place.site.shift.current == shift
    place.sim.run(end)
    assert switches(place) == expected
    place.is_sound()


@BOTH
def test_a_restart_after_a_sleep_over_the_change_enters_only_what_is_due(start, expected):
    place = site(start)
    friday = "Fri 27" if start == SPRING else "Fri 23"
    place.sim.run(Instant(moment(start) + DAY))
    before = len(switches(place))
    assert switches(place)[-1].startswith(f"{friday} 08:30")
    monday = moment("2026-03-30T07:00:00+02:00" if start == SPRING else "2026-10-26T07:00:00+01:00")
    place.sim.now = monday
    place.sim.restart()
    place.sim.restart()
    assert [each.rpartition(" ")[2] for each in switches(place)[before:]] == ["report"]
    place.sim.run(end_of(start))
    rest = expected[expected.index(next(e for e in expected if e.startswith("Mon") and "08:30" in e)) :]
    assert switches(place)[before + 1 :] == rest
    place.is_sound()


NIGHTLY = f"""{PLAIN}
define shift day when=("30 8 * * *") spill=drain
  stop queue batch
end
define shift night when=("0 21 * * *")
  start queue batch
end
define shift backup when=("30 2 * * *")
  set run_limit=3 batch
end
"""


@pytest.mark.parametrize(
    ("evening", "hours", "second"),
    [
        ("2026-03-28T21:00:00+01:00", 10.5, "2026-03-29T03:00:00+02:00"),
        ("2026-10-24T21:00:00+02:00", 12.5, "2026-10-25T02:30:00+02:00"),
        ("2026-06-06T21:00:00+02:00", 11.5, "2026-06-07T02:30:00+02:00"),
    ],
)
def test_the_night_of_the_change_is_as_long_as_it_really_is(evening, hours, second):
    place = Centre(NIGHTLY, at=evening, pes=4, length=60)
    wall = round(hours * 3600)
    fits, not_quite = place.submit(f"anne wall={wall}", f"ben wall={wall + 1}")
    assert (place.state(fits), place.state(not_quite)) == ("running", "queued")
    place.sim.run(Instant(moment(evening) + 14 * HOUR))
    changes = [(r.event.shift, r.at) for r in place.journal.events() if isinstance(r.event, ev.ShiftChanged)]
    assert changes[-2:] == [
        ("backup", moment(second)),
        ("day", Instant(moment(evening) + round(hours * HOUR))),
    ]
    place.is_sound()
