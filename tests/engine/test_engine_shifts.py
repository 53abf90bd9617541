"""Shifts come into force: by the calendar, by hand, after a restart, a long sleep, a stepped clock."""

import pytest
from engine.harness import OLGA, PLAIN, Centre, moment

from nqspy.core.no_exits import NoExits
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.errors import Refusal
from nqspy.model.ids import Instant

SHIFTS = """
define shift day when=("30 8 * * mon-fri")
  set run_limit=1 batch
end
define shift night when=("0 21 * * mon-fri")
  set run_limit=5 batch
  set sched_factor share 20 time 1
end
define shift report when=("0 6 * * mon-fri")
  set run_limit=3 batch
end
"""


def centre(at: str = "2026-03-02T20:00:00+01:00", **more) -> Centre:
    return Centre(PLAIN + SHIFTS, at=at, **more)


def changes(place: Centre) -> list[tuple[str | None, str | None]]:
    return [(e.former, e.shift) for e in place.events(ev.ShiftChanged)]


def run_limit(place: Centre) -> int | None:
    return place.site.settings.queues["batch"].run_limit


def test_at_its_minute_a_shift_runs_its_commands_as_one_change():
    place = centre()
    n = len(place.events(ev.SettingsChanged))
    place.until("2026-03-02T20:59:59+01:00")
    assert place.site.shift.current == "day"
    place.until("2026-03-02T21:00:00+01:00")
    assert (place.site.shift.current, run_limit(place)) == ("night", 5)
    assert place.site.settings.sched_factor.share == 20
    changed = place.events(ev.SettingsChanged)[n:]
    assert [e.source for e in changed] == ["shift night"]
    last = [r for r in place.journal.events() if isinstance(r.event, ev.ShiftChanged)][-1]
    assert last.at == last.event.fired == moment("2026-03-02T21:00:00+01:00")
    place.is_sound()


def test_after_a_long_sleep_only_the_shift_that_is_due_is_entered():
    place = centre()
    before = len(changes(place))
    place.sim.now = moment("2026-03-05T07:00:00+01:00")
    place.sim.feed([])
    assert changes(place)[before:] == [("day", "report")]


def test_a_clock_stepped_back_switches_nothing_back():
    place = centre()
    place.until("2026-03-02T21:10:00+01:00")
    place.qmgr("set run_limit=9 batch")
    before = len(changes(place))
    place.sim.now = moment("2026-03-02T20:30:00+01:00")
    place.sim.feed([])
    for minute in range(30, 60, 5):
        place.sim.now = moment(f"2026-03-02T20:{minute}:00+01:00")
        place.sim.feed([])
    assert changes(place)[before:] == []
    place.sim.now = moment("2026-03-02T21:00:01+01:00")
    place.sim.feed([])
    assert changes(place)[before:] == [], "its firing has counted"
    assert run_limit(place) == 9
    place.until("2026-03-03T06:00:00+01:00")
    assert place.site.shift.current == "report"


@pytest.mark.parametrize(
    "at", ["2026-03-02T21:30:00+01:00", "2026-03-03T06:30:00+01:00", "2026-03-03T09:00:00+01:00"]
)
def test_a_restart_within_a_shift_keeps_what_operators_changed_in_it(at):
    place = centre()
    place.until(at)
    before = changes(place)
    place.qmgr("set run_limit=9 batch")
    for _ in range(3):
        place.later(minutes=1)
        place.sim.restart()
    assert changes(place) == before
    assert run_limit(place) == 9
    place.is_sound()


@pytest.mark.parametrize(
    ("down", "up", "shift"),
    [
        ("2026-03-02T20:59:00+01:00", "2026-03-02T21:00:00+01:00", "night"),
        ("2026-03-02T20:59:00+01:00", "2026-03-03T06:00:01+01:00", "report"),
        ("2026-03-02T22:00:00+01:00", "2026-03-09T12:00:00+01:00", "day"),
    ],
)
def test_after_a_restart_another_shift_that_is_due_is_entered_exactly_once(down, up, shift):
    place = centre()
    place.until(down)
    before = len(changes(place))
    place.sim.now = moment(up)
    place.sim.restart()
    place.sim.restart()
    assert [s for _, s in changes(place)[before:]] == [shift]


# ---------------------------------------------------------------- by hand


def test_a_shift_put_in_force_by_hand_lasts_until_the_next_firing():
    place = centre()
    place.ask(cm.SwitchShift("report"), OLGA)
    assert (place.site.shift.current, place.site.shift.manual, run_limit(place)) == ("report", True, 3)
    place.sim.restart()
    assert place.site.shift.current == "report"
    place.until("2026-03-02T21:00:00+01:00")
    assert (place.site.shift.current, place.site.shift.manual) == ("night", False)
    place.is_sound()


def test_a_shift_by_hand_until_a_moment_outlasts_other_firings():
    place = centre()
    place.ask(cm.SwitchShift("report", "22:30"), OLGA)
    place.until("2026-03-02T22:29:59+01:00")
    assert place.site.shift.current == "report"
    place.until("2026-03-02T22:30:00+01:00")
    assert (place.site.shift.current, place.site.shift.until) == ("night", None)


def test_back_to_the_calendar_at_once():
    place = centre()
    place.ask(cm.SwitchShift("night", "23:00"), OLGA)
    place.ask(cm.AutomaticShift(), OLGA)
    assert (place.site.shift.current, place.site.shift.manual, run_limit(place)) == ("day", False, 1)
    n = place.count()
    place.ask(cm.AutomaticShift(), OLGA)
    assert place.count() == n


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (cm.SwitchShift("noon"), "there is no shift noon; shifts: day, night, report"),
        (cm.SwitchShift("night", "25:00"), "no time of day"),
        (cm.SwitchShift("night", Instant(5)), "until is in the past"),
    ],
)
def test_a_switch_that_makes_no_sense_is_refused(command, text):
    assert text in str(centre().refused(command, OLGA))


# ---------------------------------------------------------------- a shift that fails


class Doors(NoExits):
    """Exits whose reload fails while it is told to."""

    def __init__(self):
        self.broken = False
        self.reloads = 0

    def reload(self):
        if self.broken:
            raise Refusal("refused", said="exits/x.py:3: this is no Python")
        self.reloads += 1
        return "ok"


FAILING = (
    PLAIN
    + """
define shift day when=("30 8 * * mon-fri")
  set run_limit=1 batch
end
define shift night when=("0 21 * * mon-fri")
  set run_limit=5 batch
  reload exits
end
"""
)


def test_a_shift_that_fails_changes_nothing_alarms_once_and_is_tried_every_five_minutes():
    doors = Doors()
    place = Centre(FAILING, exits=doors)
    doors.broken = True
    place.until("2026-03-02T21:03:00+01:00")
    assert (place.site.shift.current, run_limit(place), place.site.shift.failed) == ("day", 1, "night")
    place.until("2026-03-02T21:14:59+01:00")
    assert len(place.events(ev.ShiftFailed)) == len(place.events(ev.Alarm)) == 1
    assert "exits/x.py:3" in place.events(ev.Alarm)[0].text
    assert place.site.shift.failed_text == place.events(ev.Alarm)[0].text
    assert "exits/x.py:3" in place.sim.log[-1]
    assert place.sim.notices[-1].subject == "nqspy: shift night failed"
    doors.broken = False
    place.until("2026-03-02T21:15:00+01:00")
    assert (place.site.shift.current, run_limit(place), place.site.shift.failed) == ("night", 5, None)
    assert place.site.shift.failed_text == ""
    assert doors.reloads == 1
    place.is_sound()


def test_a_shift_that_fails_by_hand_is_refused_and_changes_nothing():
    doors = Doors()
    place = Centre(FAILING, exits=doors)
    doors.broken = True
    assert "no Python" in str(place.refused(cm.SwitchShift("night"), OLGA))


def test_a_failing_shift_is_tried_again_after_a_restart_without_another_alarm():
    doors = Doors()
    place = Centre(FAILING, exits=doors)
    doors.broken = True
    place.until("2026-03-02T21:01:00+01:00")
    place.sim.restart()
    assert len(place.events(ev.Alarm)) == 1
    doors.broken = False
    place.sim.restart()
    assert place.site.shift.current == "night"


def test_a_shift_may_purge_and_hold():
    place = Centre(
        PLAIN + 'define shift night when=("0 21 * * *")\npurge queue batch\nstop queue batch\nend\n', pes=1
    )
    _, waiting = place.submit("anne wall=2:00:00", "anne")
    place.until("2026-03-02T20:05:00+01:00")
    place.until("2026-03-02T21:00:00+01:00")
    assert place.state(waiting) == "ended"
    assert not place.site.settings.queues["batch"].started


# ---------------------------------------------------------------- definitions


def test_a_queue_that_a_shift_speaks_of_is_not_deleted():
    place = centre().qmgr("stop queue batch\ndisable queue batch\nset no_default batch_request queue")
    assert "shift day: there is no queue batch" in str(place.refused(place.command("delete queue batch")))


def test_a_deleted_shift_in_force_gives_way_to_the_one_that_is_due():
    place = centre()
    place.ask(cm.SwitchShift("report"), OLGA)
    place.qmgr("delete shift report")
    assert place.site.shift.current == "day"


def test_the_next_firing_is_what_the_engine_asks_to_be_woken_for():
    place = centre()
    outcome = place.engine.feed((), place.sim.now)
    assert outcome.wake_at == moment("2026-03-02T21:00:00+01:00")
    place.engine.resting = True
    command = place.command('define shift tea when=("30 20 * * *")\nset run_limit=2 batch\nend')
    from engine.harness import asked

    outcome = place.engine.feed([asked(command)], place.sim.now)
    while outcome.again:
        outcome = place.engine.feed((), place.sim.now)
    assert outcome.wake_at == moment("2026-03-02T20:30:00+01:00")
