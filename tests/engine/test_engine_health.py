"""A resource breaks in the night and is repaired: reactions of the engine, whatever else happens."""

import pytest
from engine.harness import ANNE, PLAIN, Centre, Failpoint, item, moment
from engine.story import play
from engine.test_engine_late_plans import play_late

from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import observations as ob
from nqspy.store.journal import SqliteJournal

NIGHT = (
    PLAIN
    + """
create probe nfs command="/usr/local/bin/check-nfs" every=60 timeout=10 fails=3 recovers=2 running={}
create probe licence tcp=licence:27000 running=hold
create batch_queue night priority=20
enable queue night
start queue night
set queue night needs=(nfs)
"""
)
AT_23 = moment("2026-03-02T23:00:12+01:00")
AT_01 = moment("2026-03-03T01:00:00+01:00")


def night(running="hold", **more):
    """Return a site at 22:50 where nfs will break at 23:00:12 and be repaired at 01:00."""
    centre = more.pop("kind", Centre)(NIGHT.format(running), at="2026-03-02T22:50:00+01:00", **more)
    centre.sim.see(AT_23, ob.ObservedResource("nfs", "broken", "stale file handle"))
    centre.sim.see(AT_01, ob.ObservedResource("nfs", "ok", ""))
    return centre


def broken(centre, name="nfs", state="broken", text="gone"):
    centre.sim.feed([ob.ObservedResource(name, state, text)])
    centre.sim.run(centre.sim.now)
    centre.is_sound()


AT_ONE = "until 2026-03-03T01:00:00+01:00; probe nfs ok"
NIGHTS = {
    "suspended what runs gives its PEs away and goes on once it is well": ("suspend", 1, 3600, f"""
        submit anne queue=night, ben queue=batch, ben queue=batch; until 23:00:12; probe nfs broken
        until 23:30; state 1 suspended 2 running 3 queued; has 1 pes_released=true; why 1 RESOURCE probe nfs
        {AT_ONE}; later 6h; empty; ran 1 3600; events suspended 1"""),
    "requeued what may be run again waits and starts again once it is well": ("requeue", 2, 7200, f"""
        submit anne queue=night, anne once queue=night; until 23:00:12; probe nfs broken; until 23:30
        state 1 queued 2 running; events requeued 1; {AT_ONE}; state 1 running; has 1 attempts=2"""),
    "of a good result nobody is told": ("hold", 2, 60, "probe nfs ok; mails 0"),
}  # fmt: skip


@pytest.mark.parametrize("title", NIGHTS)
def test_nights(title):
    running, pes, length, text = NIGHTS[title]
    play(text, settings=NIGHT.format(running), at="2026-03-02T22:50:00+01:00", pes=pes, length=length)


def test_the_managers_get_one_mail_when_it_breaks_and_one_when_it_is_repaired():
    centre = night("suspend")
    for minute in range(5):
        centre.sim.see(AT_23 + (minute + 1) * 60_000, ob.ObservedResource("nfs", "broken", "still"))
    centre.until("2026-03-03T02:00:00+01:00")
    assert [(e.name, e.state, e.text) for e in centre.events(ev.ResourceChanged)] == [
        ("nfs", "broken", "stale file handle"), ("nfs", "ok", ""),
    ]  # fmt: skip
    breaks, is_well = (each.text for each in centre.sim.notices)
    assert ("queue night" in breaks, " 1 h 59 min" in is_well) == (True, True)
    [alarm] = centre.events(ev.Alarm)
    assert (alarm.who, alarm.text in centre.sim.log) == ("probe nfs", True)


# ---------------------------------------------------------------- what else happens
@pytest.mark.parametrize("running", ["hold", "suspend", "requeue"])
def test_a_restart_in_the_middle_changes_nothing(running, tmp_path):
    ends = []
    for restarts in (False, True):
        with SqliteJournal.open(tmp_path / f"{restarts}.db") as journal:
            centre = night(running, pes=2, length=3600, journal=journal)
            centre.submit("anne queue=night", "ben queue=night", "anne queue=batch", "ben queue=night")
            for hour in range(8):
                centre.later(minutes=37)
                if restarts:
                    centre.sim.restart()
                    centre.is_sound()
                    assert (centre.site.resources["nfs"].state == "broken") == (
                        AT_23 <= centre.sim.now < AT_01
                    ), hour
            centre.later(hours=5)
            assert not centre.site.requests
            centre.is_sound()
            ends.append([(e.seq, e.attempt, e.used.wall) for e in centre.events(ev.Ended)])
    assert ends[0] == ends[1]


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("running", ["suspend", "requeue"])
def test_a_disk_that_is_full_when_it_breaks_loses_no_news(running, number):
    centre = night(running, pes=2, length=7200)
    centre.submit("anne queue=night", "ben queue=night")
    centre.until("2026-03-02T23:00:00+01:00")
    Failpoint(centre.journal, *range(1, number + 1))
    centre.until("2026-03-02T23:02:00+01:00")
    assert centre.site.resources["nfs"].state == "broken"
    assert {centre.state(seq) for seq in (1, 2)} == {"suspended" if running == "suspend" else "queued"}
    assert [alarm.who for alarm in centre.events(ev.Alarm)] == ["store", "probe nfs"]
    centre.until("2026-03-03T01:00:01+01:00")
    assert {centre.state(seq) for seq in (1, 2)} == {"running"}
    centre.is_sound()


def test_older_news_that_could_not_be_committed_are_not_believed_after_newer_ones():
    centre = Centre(NIGHT.format("hold"))
    Failpoint(centre.journal, 1)
    centre.sim.feed([ob.ObservedResource("nfs", "broken", "gone")])
    assert "nfs" not in centre.site.resources, "it was not committed"
    centre.sim.feed([ob.ObservedResource("nfs", "ok", "back")])
    centre.later(seconds=10)
    assert centre.site.resources["nfs"].state == "ok"
    centre.is_sound()


def test_a_probe_is_deleted_only_where_nobody_needs_it_and_takes_its_state_along():
    centre = night("suspend", length=7200)
    centre.submit("anne queue=night", "ben needs=licence")
    centre.until("2026-03-02T23:10:00+01:00")
    for name, needed in (("nfs", "queue night"), ("licence", "2.sim")):
        assert needed in str(centre.refused(centre.command(f"delete probe {name}")))
    centre.qmgr("set queue night needs=()\ndelete probe nfs")
    assert centre.state(1) == "running"
    assert centre.site.resources == {}
    broken(centre)
    assert centre.site.resources == {}, "what comes late of a deleted probe is nobody's business"
    centre.sim.restart()
    assert centre.site.resources == {}
    centre.is_sound()


STORIES = {
    "an operator does not let go on what needs something broken": """qmgr set probe nfs running=suspend
        probe nfs ok; submit anne queue=night; probe nfs broken; state 1 suspended
        resume 1 -> 1:wrong_state""",
    "needs of its own are modified": """probe licence broken; submit anne needs=nfs+licence, ben
        state 1 queued 2 running; why 1 RESOURCE probe licence; qmgr modify request 1 needs=nfs by anne
        state 1 running; has 1 spec.ask.needs=["nfs"]; submit anne pes=2 needs=licence
        qmgr modify request 3 needs=none by anne; has 3 spec.ask.needs=[]""",
    "an unknown probe": """refuse anne needs=nfs+tape -> unknown_probe; submit anne held
        modify 1 ask.needs=["tape"] -> 1:unknown_probe""",
}


@pytest.mark.parametrize("title", STORIES)
def test_stories(title):
    play(STORIES[title], settings=NIGHT.format("hold"))


LATE = {
    "a start falls when what it needs breaks": ("hold", """submit anne queue=night, ben needs=licence
        probe nfs broken; probe licence broken; plans; starts -; probe nfs ok; probe licence ok; plans
        starts 1 2"""),
    "what is parked stays so when it breaks again": ("suspend", """submit anne queue=night; plans
        probe nfs broken; plans; state 1 suspended; probe nfs ok; probe nfs broken; plans
        state 1 suspended; events resumed 0"""),
} | {
    f"nothing gives way for what is well again: {running}": (running, """submit anne queue=night; plans
        probe nfs broken; probe nfs ok; plans; state 1 running; events suspended 0; events deleting 0""")
    for running in ("suspend", "requeue")
}  # fmt: skip


@pytest.mark.parametrize("title", LATE)
def test_late_plans(title):
    running, story = LATE[title]
    play_late(story, NIGHT.format(running))


def test_a_dry_run_names_the_broken_resource():
    centre = Centre(NIGHT.format("hold"))
    broken(centre)
    wish = cm.Submit((item("anne queue=night", centre.sim.now),), dry_run=True)
    [would] = centre.ask(wish, ANNE)["dry_run"]
    assert would["estimate"]["start"] is None
    assert "probe nfs" in would["estimate"]["basis"]
