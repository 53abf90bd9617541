"""Shifts come into force: by the calendar, by hand, after a restart, a long sleep, a stepped clock."""

import pytest
from engine.harness import OLGA, PLAIN, Centre, moment
from engine.story import play

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


STORIES = {
    "after a long sleep only the one that is due": """shift day 1; clock 2026-03-05T07:00:00+01:00
        shift report 3; events shift_changed 2""",
    "a clock stepped back switches nothing back": """until 21:10
        qmgr set run_limit=9 batch; clock 2026-03-02T20:30:00+01:00; clock 2026-03-02T20:55:00+01:00
        shift night 9; clock 2026-03-02T21:00:01+01:00; shift night 9; events shift_changed 2
        until 2026-03-03T06:00:00+01:00; shift report 3""",
    "by hand until the next firing": """qmgr switch shift report by olga; shift report 3 manual; restart
        shift report 3 manual; until 21:00; shift night 5""",
    "by hand until a moment it outlasts other firings": """qmgr switch shift report until=22:30 by olga
        until 22:29:59; shift report 3 manual; until 22:30; shift night 5""",
    "back to the calendar at once": """qmgr switch shift night until=23:00 by olga
        qmgr set shift automatic by olga; shift day 1; qmgr set shift automatic by olga
        events shift_changed 3""",
    "a queue that a shift speaks of is not deleted": """qmgr stop queue batch | disable queue batch
        qmgr set no_default batch_request queue; deny delete queue batch -> bad_shift""",
    "deleted in force it gives way to the one that is due": """qmgr switch shift report by olga
        qmgr delete shift report; shift day 1""",
    "a shift may purge": """qmgr define shift tea when="30 20 * * *" | purge queue batch | end
        submit anne held; until 20:30; end 1 dropped calendar; submit anne; state 2 running""",
}
STORIES |= {
    f"a restart keeps what operators changed: {name}": f"""until {at}; qmgr set run_limit=9 batch; later 1m
        restart; later 1m; restart; shift {name} 9"""
    for name, at in (
        ("night", "2026-03-02T21:30:00+01:00"),
        ("report", "2026-03-03T06:30:00+01:00"),
        ("day", "2026-03-03T09:00:00+01:00"),
    )
}
STORIES |= {
    f"down over firings, {name} is entered once": f"""until {down}; events shift_changed {number}; down {up}
        restart; shift {name} {limit}; events shift_changed {number + 1}"""
    for name, limit, number, down, up in (
        ("night", 5, 1, "2026-03-02T20:59:00+01:00", "2026-03-02T21:00:00+01:00"),
        ("report", 3, 1, "2026-03-02T20:59:00+01:00", "2026-03-03T06:00:01+01:00"),
        ("day", 1, 2, "2026-03-02T22:00:00+01:00", "2026-03-09T12:00:00+01:00"),
    )
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_stories(title):
    play(STORIES[title], settings=PLAIN + SHIFTS)


def centre(at: str = "2026-03-02T20:00:00+01:00", **more) -> Centre:
    return Centre(PLAIN + SHIFTS, at=at, **more)


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


# ---------------------------------------------------------------- by hand


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


# ---------------------------------------------------------------- definitions


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
