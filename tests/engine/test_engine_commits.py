"""Commits: what waits for them, and the effects of a failed one."""

import pytest
from engine.harness import (
    ANNE,
    BEN,
    PLAIN,
    Centre,
    Failpoint,
    asked,
    goes_on,
    observable,
    replies_to,
    submit,
)  # fmt: skip

from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import observations as ob
from nqspy.model.actions import Kill


class Idle:
    """An executor that only records its orders."""

    def __init__(self):
        self.done = []

    def do(self, action, *_):
        self.done.append(action)


# ---------------------------------------------------------------- who waits
def test_a_group_is_one_commit_and_every_reply_comes_after_it():
    centre = Centre(PLAIN + "stop queue batch\n")
    commits = centre.engine.commits
    handles = [object() for _ in range(8)]
    inputs = [asked(submit("anne", centre), ANNE, handle) for handle in handles]
    outcome = centre.engine.feed(inputs, centre.sim.now)
    ids = [reply.value["ids"][0] for reply in replies_to(handles, outcome.replies)]
    assert ids == [f"{n}.sim" for n in range(1, 9)]
    assert centre.engine.commits == commits + 1
    assert outcome.again, "a pass is due, and replies did not wait for it"


def test_what_nobody_waits_for_is_committed_with_what_comes_next_or_by_flush():
    centre = Centre()
    centre.engine.executor = Idle()
    centre.submit("anne")
    n, commits = centre.count(), centre.engine.commits
    outcome = centre.engine.feed([ob.ObservedRunning(1, 1)], centre.sim.now)
    assert outcome.pending
    assert (centre.count(), centre.engine.commits) == (n, commits)
    assert not centre.request(1).run.starting, "it is applied at once"
    again = centre.engine.feed((), centre.sim.now)
    assert again.pending
    done = centre.engine.flush(centre.sim.now)
    assert not done.pending
    assert (centre.count(), centre.engine.commits) == (n + 1, commits + 1)
    assert not centre.engine.flush(centre.sim.now).pending
    assert centre.engine.commits == commits + 1


def test_what_the_driver_notes_is_committed_and_logged():
    centre = Centre()
    outcome = centre.engine.note(ev.Alarm("queues.d", "not applied"), centre.sim.now)
    assert outcome.pending
    centre.engine.flush(centre.sim.now)
    assert centre.events(ev.Alarm) == [ev.Alarm("queues.d", "not applied")]
    assert centre.sim.log == ["not applied"]


# ---------------------------------------------------------------- a commit that fails
def test_a_failed_commit_refuses_everybody_who_waits_and_nothing_has_happened():
    centre = Centre(PLAIN + "stop queue batch\n")
    centre.submit("anne")
    before = observable(centre.site)
    Failpoint(centre.journal, 1)
    handles = [object() for _ in range(3)]
    inputs = [asked(submit("anne", centre, f"k{n}"), ANNE, handle) for n, handle in enumerate(handles)]
    outcome = centre.engine.feed(inputs, centre.sim.now)
    for reply in replies_to(handles, outcome.replies):
        assert (reply.refusal.code, "No space left" in str(reply.refusal)) == ("not_committed", True)
    assert observable(centre.site) == before
    later = centre.engine.feed(inputs, centre.sim.now)
    assert [r.value["ids"][0] for r in replies_to(handles, later.replies)] == ["2.sim", "3.sim", "4.sim"]
    centre.is_sound()


def test_sightings_that_nobody_waited_for_survive_too():
    centre = Centre()
    centre.engine.executor = Idle()
    centre.submit("anne")
    assert centre.engine.feed([ob.ObservedRunning(1, 1)], centre.sim.now).pending
    Failpoint(centre.journal, 1)
    centre.engine.feed([asked(submit("ben", centre), BEN)], centre.sim.now)
    assert centre.request(1).run.starting
    centre.later(seconds=2)
    assert not centre.request(1).run.starting
    assert centre.events(ev.Started) == [ev.Started(1, 1, (0,))]


def test_an_order_whose_commit_failed_is_not_carried_out():
    centre = Centre()
    centre.engine.executor = Idle()
    done = centre.engine.executor.done
    centre.submit("anne")
    done.clear()
    Failpoint(centre.journal, 1)
    centre.engine.feed([asked(cm.Delete(("1",), force=True), ANNE)], centre.sim.now)
    assert done == []
    assert centre.request(1).ending is None
    centre.engine.feed([asked(cm.Delete(("1",), force=True), ANNE)], centre.sim.now)
    assert done == [Kill(1, 1, "deleted", 10_000, 15)]


def test_a_shift_that_could_not_be_committed_is_entered_later():
    centre = Centre(PLAIN + 'define shift night when=("0 21 * * *")\nset run_limit=5 batch\nend\n')
    centre.qmgr("set run_limit=1 batch")
    Failpoint(centre.journal, 1, 2)
    centre.until("2026-03-02T21:00:03+01:00")
    assert centre.site.settings.queues["batch"].run_limit == 1
    centre.until("2026-03-02T21:00:05+01:00")
    assert centre.site.settings.queues["batch"].run_limit == 5
    assert len([e for e in centre.events(ev.ShiftChanged) if e.shift == "night"]) == 2


def test_every_commit_may_fail_once_and_the_night_goes_on():
    plain = Centre(length=100)
    for _ in range(6):
        plain.submit("anne", "ben")
    plain.later(hours=1)
    for number in range(1, 12):
        centre = Centre(length=100)
        for _ in range(6):
            centre.submit("anne", "ben")
        Failpoint(centre.journal, number)
        centre.later(hours=1)
        assert not centre.site.requests
        assert centre.starts() == plain.starts()
        assert len(centre.sim.executor.begun) == 12
        centre.is_sound()


@pytest.mark.parametrize("failures", [1, 3])
def test_the_time_in_which_nothing_could_be_committed_is_journaled_once_it_can(failures):
    centre = Centre(PLAIN + "stop queue batch\n")
    Failpoint(centre.journal, *range(1, failures + 1))
    begun = centre.sim.now
    assert centre.refused(submit("anne", centre), ANNE).code == "not_committed"
    centre.later(seconds=60)
    [alarm] = centre.events(ev.Alarm)
    assert (alarm.who, alarm.since) == ("store", begun)
    assert f" for {2 * failures} s, " in alarm.text, "it is tried every two seconds"
    assert "No space left" in alarm.text
    centre.submit("anne")
    assert len(centre.events(ev.Alarm)) == 1
    centre.is_sound()


def test_the_time_in_which_nothing_could_be_submitted_is_journaled_once_there_is_room(monkeypatch):
    centre = Centre(PLAIN + "stop queue batch\n")
    begun, low = centre.sim.now, [True]
    monkeypatch.setattr(centre.journal, "low", lambda: low[0])
    for _ in range(3):
        assert centre.refused(submit("anne", centre), ANNE).code == "no_room"
        centre.later(seconds=20)
    centre.qmgr("set queue batch run_limit=3")
    assert not centre.events(ev.Alarm), "the disk is still full"
    low.clear()
    low.append(False)
    centre.submit("anne")
    centre.submit("anne")
    [alarm] = centre.events(ev.Alarm)
    assert (alarm.who, alarm.since) == ("store", begun)
    assert " for 1 min: " in alarm.text


# ---------------------------------------------------------------- bugs of ours
def test_a_handler_that_breaks_down_refuses_its_group_and_the_engine_goes_on(monkeypatch):
    from nqspy.engine import loop

    def broken(tx, command, caller):
        tx.emit(ev.Held((1,), "u", "anne"))
        raise ZeroDivisionError("a bug")

    centre = Centre(PLAIN + "stop queue batch\n", failed=goes_on)
    centre.submit("anne")
    before = observable(centre.site)
    monkeypatch.setitem(loop.HANDLERS, cm.PurgeQueue, broken)
    handles = [object() for _ in range(3)]
    commands = (submit("anne", centre), cm.PurgeQueue("batch"), submit("ben", centre))
    inputs = [asked(command, ANNE, handle) for command, handle in zip(commands, handles, strict=True)]
    outcome = centre.engine.feed(inputs, centre.sim.now)
    assert [r.refusal.code for r in replies_to(handles, outcome.replies)] == ["not_committed"] * 3
    assert observable(centre.site) == before
    assert "ZeroDivisionError: a bug" in "".join(centre.sim.log)
    centre.submit("anne")


def test_an_observation_that_breaks_its_handler_is_left_out_and_the_others_are_taken(monkeypatch):
    from nqspy.engine.handlers import observations

    finish = observations.finish

    def broken(tx, request, ending):
        if request.seq == 1:
            raise ZeroDivisionError("a bug")
        finish(tx, request, ending)

    centre = Centre(length=60, failed=goes_on)
    centre.submit("anne", "ben")
    monkeypatch.setattr(observations, "finish", broken)
    centre.later(seconds=70)
    assert (centre.state(1), centre.state(2)) == ("running", "ended")
    centre.is_sound()


def test_after_a_pass_that_breaks_down_requests_end_and_are_submitted():
    class Broken:
        def ask(self, site, now, samples):
            raise ZeroDivisionError("a bug")

        def follow(self, events):
            """Do nothing: the decider reads the site directly."""

    centre = Centre(length=60, failed=goes_on)
    centre.submit("anne")
    centre.engine.decider = Broken()
    centre.submit("ben", "ben")
    centre.later(seconds=60)
    assert centre.state(1) == "ended"
    assert len(centre.events(ev.Alarm)) == 1, "told once"
    assert "ZeroDivisionError" in "".join(centre.sim.log)
