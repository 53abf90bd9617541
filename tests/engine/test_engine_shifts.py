"""Shifts come into force: by the calendar, by hand, after a restart, a long sleep, a stepped clock."""

import pytest
from engine.harness import OLGA, PLAIN, ROOT, Centre, asked, moment
from engine.story import Story, play
from msgspec.structs import replace

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
    "at its minute it runs its commands as one change": """events settings_changed 9; until 20:59:59
        shift day 1; until 21:00; shift night 5; events settings_changed 10""",
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


@pytest.mark.parametrize(
    ("shift", "until", "code"),
    [
        ("noon", None, "unknown_shift"),
        ("night", "25:00", "bad_value"),
        ("night", Instant(5), "bad_value"),
        ("night", Instant(10**18), "bad_value"),  # more than a year off
    ],
)
def test_a_switch_that_makes_no_sense_is_refused(shift, until, code):
    assert Centre(PLAIN + SHIFTS).refused(cm.SwitchShift(shift, until), OLGA).code == code


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


FAILING = f"""{PLAIN}
define shift day when=("30 8 * * mon-fri")
  set run_limit=1 batch
end
define shift night when=("0 21 * * mon-fri")
  set run_limit=5 batch
  reload exits
end
"""


@pytest.fixture
def broken():
    """A site whose exits do not load, so that the shift of the night fails."""
    place = Centre(FAILING, exits=Doors())
    place.engine.exits.broken = True
    return place


def test_a_shift_that_fails_changes_nothing_alarms_once_and_is_tried_every_five_minutes(broken):
    place, doors = broken, broken.engine.exits
    place.until("2026-03-02T21:03:00+01:00")
    Story(place).play("shift day 1")
    assert place.site.shift.failed == "night"
    assert "no Python" in str(place.refused(cm.SwitchShift("night"), OLGA)), "nor does it by hand"
    place.until("2026-03-02T21:14:59+01:00")
    assert len(place.events(ev.ShiftFailed)) == len(place.events(ev.Alarm)) == 1
    assert "exits/x.py:3" in place.events(ev.Alarm)[0].text
    assert place.site.shift.failed_text == place.events(ev.Alarm)[0].text
    assert place.sim.notices[-1].subject == "nqspy: shift night failed"
    doors.broken = False
    place.until("2026-03-02T21:15:00+01:00")
    Story(place).play("shift night 5")
    assert (place.site.shift.failed, place.site.shift.failed_text, doors.reloads) == (None, "", 1)
    place.is_sound()


def test_a_failing_shift_is_tried_again_after_a_restart_without_another_alarm(broken):
    broken.until("2026-03-02T21:01:00+01:00")
    broken.sim.restart()
    assert len(broken.events(ev.Alarm)) == 1
    broken.engine.exits.broken = False
    broken.sim.restart()
    assert broken.site.shift.current == "night"


def test_the_next_firing_is_what_the_engine_asks_to_be_woken_for():
    place = Centre(PLAIN + SHIFTS)
    assert place.engine.feed((), place.sim.now).wake_at == moment("2026-03-02T21:00:00+01:00")
    place.engine.resting = True
    command = place.command('define shift tea when=("30 20 * * *")\nset run_limit=2 batch\nend')
    outcome = place.engine.feed([asked(command)], place.sim.now)
    while outcome.again:
        outcome = place.engine.feed((), place.sim.now)
    assert outcome.wake_at == moment("2026-03-02T20:30:00+01:00")


# ---------------------------------------------------------------- typed, or of a file

DAY = 'define shift day when=("30 8 * * *") | set run_limit=1 batch | end'
NIGHT = 'define shift night when=("0 18 * * *") | set run_limit=5 batch | end'
LATE = NIGHT.replace("18", "23")


class TypedStory(Story):
    """A story in which commands are typed at a terminal, or stand in a file."""

    def typed(self, words: str, expected: str = "") -> None:
        """Type one command, and check how the answer begins; without it there is none."""
        command = self.centre.command(words.replace("|", "\n"))
        told = str(self.centre.ask(replace(command, live=True), ROOT).get("text", ""))
        assert told.startswith(expected) if expected else not told, told
        self.later("1s")

    def file(self, words: str) -> None:
        """Have a command stand in a file of ``queues.d``."""
        self.centre.ask(replace(self.centre.command(words.replace("|", "\n")), upsert=True), ROOT)
        self.later("1s")


BEGINS = "-> shift night begins at its next firing,"
TYPED = {
    "it begins at its next firing and says so": f"""typed {NIGHT} {BEGINS} tomorrow 18:00; shift day 1
        restart
        later 3h; shift day 1; qmgr set shift automatic by olga; shift day 1
        until 2026-03-03T18:00:00+01:00; shift night 5""",
    "with the word now the firing that is past counts": f"""typed {NIGHT.replace(") |", ") now |", 1)}
        shift night 5""",
    "from a file the firing that is past counts": f"qmgr {NIGHT}; shift night 5",
    "a file that alters it says what holds": f"typed {NIGHT} {BEGINS}; file {NIGHT}; shift night 5",
    "other times count from now on": f"""qmgr {LATE}
        typed set shift night when=("0 19 * * *", "0 23 * * *") {BEGINS} today 23:00; shift day 1
        until 2026-03-03T19:00:00+01:00; shift night 5""",
    "times that it had already count as before": f"""qmgr {NIGHT}; shift night 5
        typed set shift night when=("0 1 * * *", "0 18 * * *") {BEGINS}; qmgr switch shift day by olga
        qmgr set shift automatic by olga; shift night 5""",
    "other times with the word now count at once": f"""qmgr {LATE}
        typed set shift night when=("0 19 * * *") now; shift night 5""",
    "nothing else changes": f"""events shift_changed 1; typed {NIGHT} {BEGINS}
        typed set shift night spill=drain; events shift_changed 1""",
}


@pytest.mark.parametrize("title", TYPED)
def test_typed_shifts(title):
    story = TypedStory(Centre(PLAIN).qmgr(DAY.replace("|", "\n")))
    story.play(TYPED[title])
    story.centre.is_sound()


def test_a_clock_that_was_years_ahead_when_it_was_typed_says_nothing():
    story = TypedStory(Centre(PLAIN, at="2036-03-02T20:00:00+01:00"))
    command = story.centre.command(DAY.replace("|", "\n"))
    story.centre.ask(replace(command, live=True), ROOT)
    story.centre.sim.now = moment("2026-03-02T20:00:00+01:00")
    story.centre.sim.feed([])
    assert story.centre.site.shift.current == "day"
