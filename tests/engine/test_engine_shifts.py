"""Shifts come into force: by the calendar, by hand, after a restart, a long sleep, or a changed clock."""

import pytest
from engine.harness import ANNE, OLGA, PLAIN, ROOT, Centre, Failpoint, asked, item, moment
from engine.story import Story, play
from engine.test_engine_late_plans import play_late
from msgspec.structs import replace
from scenarios.computing_centre import Site

from nqspy.core.no_exits import NoExits
from nqspy.engine.calendar import note_stops
from nqspy.engine.explain import reason_of
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.errors import Refusal
from nqspy.model.ids import Instant
from nqspy.model.reasons import ReasonCode

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
    """Exits whose reload fails when the test says so."""

    def __init__(self):
        self.broken = False
        self.reloads = 0

    def reload(self):
        if self.broken:
            raise Refusal("refused", reason="exits/x.py:3: this is no Python")
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
    """Return a site whose exits do not load, so that shift night fails."""
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
    place.engine.paused = True
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
    """A test in which commands are typed at a terminal, or are in a file."""

    def typed(self, words: str, expected: str = "") -> None:
        """Type a command and check the beginning of the answer (none: no answer)."""
        command = self.centre.command(words.replace("|", "\n"))
        answer = str(self.centre.ask(replace(command, live=True), ROOT).get("text", ""))
        assert answer.startswith(expected) if expected else not answer, answer
        self.later("1s")

    def file(self, words: str) -> None:
        """Put a command into a file of ``queues.d``."""
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


# ---------------------------------------------------------------- night work that outlasts the night
MORNING, EVENING = "2026-03-03T08:30:00+01:00", "2026-03-03T21:00:00+01:00"


def hours(request) -> float:
    """Return the run time in hours from a request's name: 14 for h14-a."""
    return float(request.name[1:].partition("-")[0]) * 3600


def site(spill: str, *lines: str, pes: int = 2, more: str = "") -> Site:
    """Return the shipped site on a Monday evening with requests of the night."""
    place = Site(hours, pes=pes, more=f"set shift day spill={spill}\n{more}")
    place.submit(*lines, queue="night")
    return place


def test_a_restart_while_it_is_suspended_without_pes_changes_nothing():
    place = site("suspend", "anne name=h14-a mem=1mw")
    for at in ("2026-03-03T03:00:00+01:00", MORNING, "2026-03-03T12:00:00+01:00", EVENING):
        place.until(at)
        before = (place.count(), place.state(1))
        place.sim.restart()
        assert (place.count(), place.state(1)) == before
        assert place.site.upcoming_stops["night"].shift == "day"
        place.is_sound()
    assert [type(e) for e in place.events(ev.Suspended, ev.Resumed)] == [ev.Suspended, ev.Resumed]
    place.until("2026-03-04T00:00:00+01:00")
    assert place.state(1) == "ended"


TEN, NOON = "2026-03-03T10:00:00+01:00", "2026-03-03T12:00:00+01:00"
SPILLED = {
    "drain holds what would outlast the night until one is long enough": (2, "drain", """
        submit anne name=h9-a mem=1mw wall=11:30:00 queue=night
        submit anne name=h9-b mem=1mw wall=11:45:00 queue=night, anne name=h1-c wall=2:00:00 queue=night
        until 21:00; state 1 running 2 queued 3 running; why 2 SHIFT shift day
        until 2026-03-06T20:59:59+01:00; state 2 queued; until 2026-03-06T21:00:00+01:00; state 2 running
        events suspended 0"""),
    "night work steps aside for the day and goes on in the evening": (2, "suspend", f"""
        submit anne name=h14-a mem=1mw queue=night, anne name=h14-b mem=1mw queue=night
        until 2026-03-03T08:29:59+01:00; state 1 running 2 running; until {MORNING}
        state 1 suspended 2 suspended; why 1 SHIFT shift day
        submit anne name=h1-x cpu=10:00 queue=normal, ben name=h1-y cpu=10:00 queue=normal; pes 3 0 4 1
        until 2026-03-03T18:00:00+01:00; state 1 suspended 2 suspended 3 ended; until {EVENING}
        state 1 running 2 running; events resumed 2; until 2026-03-03T23:29:59+01:00; state 1 running
        until 2026-03-03T23:30:00+01:00; state 1 ended 2 ended; ran 1 50400"""),
    "a switch by hand until after the morning moves the end of the night": (2, "drain", """until 20:59
        submit anne name=h9-a mem=1mw wall=13:00:00 queue=night; qmgr switch shift night until=09:58
        state 1 queued; qmgr switch shift night until=10:00; state 1 running"""),
    "parked ones are deleted, run again and not held": (3, "suspend", f"""
        submit anne name=h14-a mem=1mw queue=night, anne name=h14-b mem=1mw queue=night
        submit anne name=h14-c mem=1mw queue=night; until {TEN}; delete 1 force; state 1 ended; rerun 2
        state 2 queued; has 2 pes_released=false; hold 3 -> 3:wrong_state; state 3 suspended
        until {EVENING}; state 2 running 3 running"""),
    "an operator lets one go on once its PE is free": (1, "suspend", f"""qmgr add managers = (olga:o)
        submit anne name=h14-a mem=1mw queue=night; until 2026-03-03T09:00:00+01:00
        submit anne name=h1-x cpu=10:00 queue=normal; resume 1 by olga -> 1:wrong_state
        until 2026-03-03T10:30:00+01:00; state 2 ended; resume 1 by olga; until {NOON}; state 1 running
        submit anne name=h1-x cpu=10:00 queue=normal; until 2026-03-03T12:30:00+01:00; state 1 running"""),
    "requeue runs it again in the evening": (2, "requeue", f"""
        submit anne name=h14-a mem=1mw queue=night, anne name=h14-b mem=1mw once queue=night
        until {MORNING}; state 1 queued 2 running; events requeued 1; until 2026-03-03T11:00:00+01:00
        state 2 ended; until {EVENING}; state 1 running; has 1 attempts=2"""),
    "asleep over the switch, awake by day": (2, "suspend", """submit anne name=h34-a mem=1mw queue=night
        until 2026-03-03T03:00:00+01:00; down 2026-03-03T09:00:00+01:00; later 0s; state 1 suspended"""),
    "asleep over the switch, awake in the evening": (2, "suspend", f"""
        submit anne name=h34-a mem=1mw queue=night; until 2026-03-03T03:00:00+01:00; down {EVENING}; later 0s
        state 1 running"""),
}  # fmt: skip


@pytest.mark.parametrize("title", SPILLED)
def test_night_work_that_outlasts_the_night(title):
    pes, spill, text = SPILLED[title]
    story = Story(site(spill, pes=pes))
    story.play(text)
    story.centre.is_sound()


def test_its_owner_gets_mail_when_it_starts_if_he_wanted_it():
    place = Site(hours, more="set shift day spill=suspend")
    place.submit(
        "anne name=h14-a mem=1mw wall=14:00:00 mail=end queue=night",
        "ben name=h1-b mem=1mw wall=14:00:00 queue=night",
    )
    place.until("2026-03-02T21:00:00+01:00")
    mails = [notice for notice in place.sim.notices if "may not end in time" in notice.subject]
    assert [notice.to for notice in mails] == ["anne"]
    reason = reason_of(place.engine, place.request(1))
    assert reason.matches(code=ReasonCode.SHIFT, who="shift day", until=moment(MORNING))


@pytest.mark.parametrize(
    ("spill", "wall", "note"),
    [
        ("drain", "13:00:00", "13 h goes beyond 08:30"),
        ("suspend", "13:00:00", "suspended at 08:30"),
        ("requeue", "13:00:00", "queued again at 08:30"),
        ("leave", "13:00:00", ""),
        ("drain", "10:00:00", ""),
    ],
)
def test_a_dry_run_says_what_the_day_will_do(spill, wall, note):
    place = site(spill)
    place.until("2026-03-02T21:30:00+01:00")
    one = item(f"anne name=h9-a mem=1mw wall={wall} queue=night", place.sim.now)
    [row] = place.ask(cm.Submit((one,), dry_run=True), ANNE)["dry_run"]
    assert note in row["note"]
    assert bool(row["note"]) == bool(note)


SHORT = """
create batch_queue night priority=20
enable queue night
define shift day when=("30 8 * * *") spill=suspend
  stop queue night
end
define shift night when=("0 21 * * *")
  start queue night
end
"""
LATE_PLANS = {
    "it leaves what was deleted meanwhile": f"""submit anne queue=night; plans; until {MORNING}
        delete 1 force; plans; events suspended 0; later 0s; state 1 ended""",
    "a start falls that would outlast the night by now": """qmgr set shift day spill=drain; plans
        submit anne queue=night wall=11:00:00, ben queue=night wall=10:00:00
        until 2026-03-02T21:31:00+01:00; plans; state 1 queued 2 running""",
}


@pytest.mark.parametrize("title", LATE_PLANS)
def test_late_plans(title):
    play_late(LATE_PLANS[title], PLAIN + SHORT, at="2026-03-02T21:30:00+01:00", length=14 * 3600)


# ---------------------------------------------------------------- when queues are stopped next
def test_the_next_stop_of_each_queue_is_worked_out_from_settings_and_time():
    place = site("suspend", more="set shift evening spill=drain")
    note_stops(place.site, moment("2026-03-02T12:00:00+01:00"))
    found = place.site.upcoming_stops
    assert set(found) == {"night"}
    assert (found["night"].shift, found["night"].clock) == ("evening", "17:00")
    note_stops(place.site, moment("2026-03-06T17:00:00+01:00"))
    found = place.site.upcoming_stops
    assert (found["night"].shift, found["night"].clock) == ("day", "Mon 08:30")


def test_a_change_of_settings_is_seen_at_once():
    place = site("leave")
    place.qmgr("set shift day spill=drain")
    assert place.site.upcoming_stops["night"].spill == "drain"
    place.qmgr("set timezone UTC")
    assert place.site.upcoming_stops["night"].at == moment("2026-03-03T08:30:00+00:00")
    place.qmgr("set shift day spill=leave")
    assert place.site.upcoming_stops == {}


def test_after_a_commit_that_failed_it_is_worked_out_anew():
    place = site("drain")
    Failpoint(place.journal, 1)
    outcome = place.engine.feed([asked(place.command("set queue night run_limit=3"))], place.sim.now)
    assert outcome.replies[0][1].refusal is not None
    assert place.site.upcoming_stops == {}, "the site was loaded again"
    place.later(seconds=10)
    assert place.site.upcoming_stops["night"].spill == "drain"
