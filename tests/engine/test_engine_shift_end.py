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
from nqspy.model.ids import HOUR
from nqspy.model.reasons import ReasonCode

MORNING, EVENING = "2026-03-03T08:30:00+01:00", "2026-03-03T21:00:00+01:00"


def hours(request) -> float:
    """A request called h14-a runs 14 hours."""
    return float(request.name[1:].partition("-")[0]) * 3600


def site(spill: str, *lines: str, pes: int = 2, more: str = "") -> Site:
    """The shipped site on a Monday evening, with a department's list of the night."""
    place = Site(hours, pes=pes, more=f"set shift day spill={spill}\n{more}")
    if lines:
        place.list_of("d1", *lines)
    return place


def state_at(place: Site, text: str, *seqs: int) -> list[str]:
    place.until(text)
    place.is_sound()
    return [place.state(seq) for seq in seqs]


# ---------------------------------------------------------------- leave and drain


def test_drain_holds_back_what_would_outlast_the_night_until_one_is_long_enough():
    place = site(
        "drain",
        "name=h9-a mem=1mw wall=11:30:00",
        "name=h9-b mem=1mw wall=11:45:00",
        "name=h1-c mem=1mw wall=2:00:00",
    )
    assert state_at(place, "2026-03-02T21:00:00+01:00", 1, 2, 3) == ["running", "queued", "running"]
    reason = reason_of(place.engine, place.request(2))
    assert reason.matches(code=ReasonCode.SHIFT, who="shift day", until=moment(MORNING))
    assert reason.text == (
        "its wall limit of 11:45:00 goes beyond 08:30, when shift day stops queue night; "
        "it may start after that, or with a shorter limit"
    )
    start, _ = place.estimate(2)
    assert start == moment("2026-03-06T21:00:00+01:00"), "from Friday evening to Monday it is night"
    assert state_at(place, "2026-03-06T20:59:59+01:00", 2) == ["queued"]
    assert state_at(place, "2026-03-06T21:00:00+01:00", 2) == ["running"]
    assert not place.events(ev.Suspended)


# ---------------------------------------------------------------- suspend


def test_night_work_steps_aside_for_the_day_and_goes_on_in_the_evening():
    place = site("suspend", "name=h14-a mem=1mw", "name=h14-b mem=1mw")
    assert state_at(place, "2026-03-03T08:29:59+01:00", 1, 2) == ["running", "running"]
    assert state_at(place, MORNING, 1, 2) == ["suspended", "suspended"]
    reason = reason_of(place.engine, place.request(1))
    assert reason.matches(code=ReasonCode.SHIFT, who="shift day")
    assert reason.text == "shift day stopped queue night; it goes on when the queue is started again"
    anne, ben = place.submit("anne name=h1-x cpu=10:00 queue=normal", "ben name=h1-y cpu=10:00 queue=normal")
    assert [place.request(seq).pes for seq in (anne, ben)] == [(0,), (1,)]
    assert state_at(place, "2026-03-03T18:00:00+01:00", 1, 2, anne) == ["suspended", "suspended", "ended"]
    assert state_at(place, EVENING, 1, 2) == ["running", "running"]
    assert [e.by for e in place.events(ev.Resumed)] == ["scheduler", "scheduler"]
    place.until("2026-03-03T23:29:59+01:00")
    assert place.state(1) == "running"
    assert state_at(place, "2026-03-03T23:30:00+01:00", 1, 2) == ["ended", "ended"]
    assert place.end_of(1).used.wall == 14 * HOUR, "what it did not run it is not charged"


def test_a_restart_while_it_is_parked_changes_nothing():
    place = site("suspend", "name=h14-a mem=1mw")
    for at in ("2026-03-03T03:00:00+01:00", MORNING, "2026-03-03T12:00:00+01:00", EVENING):
        place.until(at)
        before = (place.count(), place.state(1))
        place.sim.restart()
        assert (place.count(), place.state(1)) == before
        assert place.site.upcoming_stops["night"].shift == "day"
        place.is_sound()
    assert [type(e) for e in place.events(ev.Suspended, ev.Resumed)] == [ev.Suspended, ev.Resumed]
    assert state_at(place, "2026-03-04T00:00:00+01:00", 1) == ["ended"]


TEN, NOON = "2026-03-03T10:00:00+01:00", "2026-03-03T12:00:00+01:00"
STORIES = {
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


def test_a_switch_by_hand_until_after_the_morning_moves_the_end_of_the_night():
    place = site("drain", "name=h9-a mem=1mw wall=13:00:00")
    place.until("2026-03-02T20:59:00+01:00")
    place.qmgr("switch shift night until=10:00")
    closing = place.site.upcoming_stops["night"]
    assert (closing.at, closing.shift) == (moment("2026-03-03T10:00:00+01:00"), "day")
    assert place.state(1) == "running"


# ---------------------------------------------------------------- told


def test_its_owner_is_told_when_it_starts_if_he_wanted_mail():
    place = Site(hours, more="set shift day spill=suspend")
    place.submit(
        "anne name=h14-a mem=1mw wall=14:00:00 mail=end queue=night",
        "ben name=h1-b mem=1mw wall=14:00:00 queue=night",
    )
    place.until("2026-03-02T21:00:00+01:00")
    told = [notice for notice in place.sim.notices if "may not end in time" in notice.subject]
    assert [notice.to for notice in told] == ["anne"]
    assert told[0].text == (
        f"Request {place.id(1)} (h14-a): if it still runs then, it will be suspended at 08:30, "
        "when shift day stops queue night"
    )
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


# ---------------------------------------------------------------- plans that come late

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
