"""The shipped site over days and nights, where night work cannot end before the day shift."""

import pytest
from engine.harness import ANNE, PLAIN, Failpoint, asked, item, moment
from engine.story import Story
from engine.test_engine_late_plans import play_late
from scenarios.computing_centre import Site

from nqspy.engine.calendar import look_at_stops
from nqspy.engine.explain import reason_of
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.reasons import ReasonCode

MORNING, EVENING = "2026-03-03T08:30:00+01:00", "2026-03-03T21:00:00+01:00"


def hours(request) -> float:
    """A request called h14-a runs 14 hours."""
    return float(request.name[1:].partition("-")[0]) * 3600


def site(spill: str, *lines: str, pes: int = 2, more: str = "") -> Site:
    """The shipped site on a Monday evening, with requests of the night."""
    place = Site(hours, pes=pes, more=f"set shift day spill={spill}\n{more}")
    place.submit(*lines, queue="night")
    return place


def test_a_restart_while_it_is_parked_changes_nothing():
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
STORIES = {
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


@pytest.mark.parametrize("title", STORIES)
def test_stories(title):
    pes, spill, text = STORIES[title]
    story = Story(site(spill, pes=pes))
    story.play(text)
    story.centre.is_sound()


def test_its_owner_is_told_when_it_starts_if_he_wanted_mail():
    place = Site(hours, more="set shift day spill=suspend")
    place.submit(
        "anne name=h14-a mem=1mw wall=14:00:00 mail=end queue=night",
        "ben name=h1-b mem=1mw wall=14:00:00 queue=night",
    )
    place.until("2026-03-02T21:00:00+01:00")
    told = [notice for notice in place.sim.notices if "may not end in time" in notice.subject]
    assert [notice.to for notice in told] == ["anne"]
    reason = reason_of(place.engine, place.request(1))
    assert reason.matches(code=ReasonCode.SHIFT, who="shift day", until=moment(MORNING))


@pytest.mark.parametrize(
    ("spill", "wall", "note"),
    [
        ("drain", "13:00:00", "its wall limit of 13:00:00 goes beyond 08:30"),
        ("suspend", "13:00:00", "it will be suspended at 08:30"),
        ("requeue", "13:00:00", "it will be ended and queued again at 08:30"),
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
LATE = {
    "it leaves what was deleted meanwhile": f"""submit anne queue=night; plans; until {MORNING}
        delete 1 force; plans; events suspended 0; later 0s; state 1 ended""",
    "a start falls that would outlast the night by now": """qmgr set shift day spill=drain; plans
        submit anne queue=night wall=11:00:00, ben queue=night wall=10:00:00
        until 2026-03-02T21:31:00+01:00; plans; state 1 queued 2 running""",
}


@pytest.mark.parametrize("title", LATE)
def test_late_plans(title):
    play_late(LATE[title], PLAIN + SHORT, at="2026-03-02T21:30:00+01:00", length=14 * 3600)


# ---------------------------------------------------------------- when queues are stopped next


def test_the_next_stop_of_each_queue_is_worked_out_from_settings_and_time():
    place = site("suspend", more="set shift evening spill=drain")
    look_at_stops(place.site, moment("2026-03-02T12:00:00+01:00"))
    found = place.site.upcoming_stops
    assert set(found) == {"night"}
    assert (found["night"].shift, found["night"].clock) == ("evening", "17:00")
    look_at_stops(place.site, moment("2026-03-06T17:00:00+01:00"))
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
