"""Commits: what waits for them, what becomes of a group whose commit fails, and of an engine that crashes."""

import pytest
from engine.harness import ANNE, BEN, PLAIN, Centre, asked, item, observable, replies_to

from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import sightings as si
from nqspy.model.actions import Kill
from nqspy.model.errors import Refusal
from nqspy.model.requests import Ending, Request
from nqspy.ports import CommitFailed
from nqspy.sim.machine import Run
from nqspy.store.journal import SqliteJournal
from nqspy.store.memory import MemoryJournal


class Crash(BaseException):
    """The process dies here: nothing in it may catch that."""


class Failpoint:
    """Raises at the commits of the given numbers, counted from now."""

    def __init__(self, journal, *numbers: int, error: BaseException | None = None) -> None:
        self.numbers, self.count, self.error = (
            set(numbers),
            0,
            error or OSError(28, "No space left on device"),
        )
        journal.failpoint = self

    def __call__(self) -> None:
        self.count += 1
        if self.count in self.numbers:
            raise self.error


def submit(owner: str, centre: Centre, key: str = "") -> cm.Submit:
    return cm.Submit((item(owner, centre.sim.now),), key)


# ---------------------------------------------------------------- who waits


def test_a_group_is_one_commit_and_every_reply_comes_after_it():
    centre = Centre(PLAIN + "stop queue batch\n")
    commits = centre.engine.commits
    handles = [object() for _ in range(8)]
    inputs = [asked(submit("anne", centre), ANNE, handle) for handle in handles]
    outcome = centre.engine.feed(inputs, centre.sim.now)
    assert [reply.value["ids"][0] for reply in replies_to(handles, outcome.replies)] == [
        f"{n}.sim" for n in range(1, 9)
    ]
    assert centre.engine.commits == commits + 1
    assert outcome.again, "a pass is due, and replies did not wait for it"


def test_the_next_command_of_a_group_sees_what_the_one_before_did():
    centre = Centre(PLAIN + "stop queue batch\n")
    one, two = object(), object()
    inputs = [asked(submit("anne", centre), ANNE, one), asked(cm.Delete(("1",)), ANNE, two)]
    outcome = centre.engine.feed(inputs, centre.sim.now)
    assert replies_to((two,), outcome.replies)[0].value["done"] == ["1.sim"]


def test_a_refused_command_of_a_group_does_not_trouble_the_others():
    centre = Centre()
    bad, good = object(), object()
    inputs = [asked(cm.SwitchShift("none"), BEN, bad), asked(submit("anne", centre), ANNE, good)]
    outcome = centre.engine.feed(inputs, centre.sim.now)
    refused, done = replies_to((bad, good), outcome.replies)
    assert refused.refusal.code == "not_permitted"
    assert done.value["ids"] == ["1.sim"]


def test_what_nobody_waits_for_is_committed_with_what_comes_next_or_by_flush():
    centre = Centre()
    centre.engine.hands = type("Hands", (), {"do": lambda *a: None})()
    centre.submit("anne")
    n, commits = centre.count(), centre.engine.commits
    outcome = centre.engine.feed([si.SeenRunning(1, 1)], centre.sim.now)
    assert outcome.pending
    assert (centre.count(), centre.engine.commits) == (n, commits)
    assert not centre.request(1).starting, "it is applied at once"
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


def test_an_idle_engine_commits_nothing_and_asks_for_nothing():
    centre = Centre()
    n = centre.engine.commits
    for _ in range(5):
        outcome = centre.engine.feed((), centre.sim.now)
    assert (outcome.again, outcome.pending, outcome.wake_at, outcome.replies) == (False, False, None, [])
    assert centre.engine.commits == n


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
        assert reply.refusal.code == "not_committed"
        assert "nothing was changed" in str(reply.refusal)
        assert "No space left" in str(reply.refusal)
    assert observable(centre.site) == before
    later = centre.engine.feed(inputs, centre.sim.now)
    assert [r.value["ids"][0] for r in replies_to(handles, later.replies)] == ["2.sim", "3.sim", "4.sim"]
    centre.is_sound()


def test_nothing_is_started_whose_start_is_not_committed():
    centre = Centre()
    Failpoint(centre.journal, 2)
    centre.submit("anne")
    assert centre.state(1) == "queued"
    assert centre.sim.machine.begun == []
    centre.later(seconds=2)
    assert centre.sim.machine.begun == [(1, 1)], "it is tried again by itself"
    centre.is_sound()


@pytest.mark.parametrize("fails", [(1,), (1, 2, 3)])
def test_sightings_survive_a_commit_that_fails(fails):
    centre = Centre(length=60)
    centre.submit("anne")
    Failpoint(centre.journal, *fails)
    centre.later(seconds=60)
    assert centre.state(1) == "running"
    centre.later(seconds=2 * len(fails))
    assert centre.state(1) == "ended"
    assert centre.end_of(1).used.wall == 60_000
    centre.is_sound()


def test_sightings_that_nobody_waited_for_survive_too():
    centre = Centre()
    centre.engine.hands = type("Hands", (), {"do": lambda *a: None})()
    centre.submit("anne")
    assert centre.engine.feed([si.SeenRunning(1, 1)], centre.sim.now).pending
    Failpoint(centre.journal, 1)
    centre.engine.feed([asked(submit("ben", centre), BEN)], centre.sim.now)
    assert centre.request(1).starting
    centre.later(seconds=2)
    assert not centre.request(1).starting
    assert centre.events(ev.Started) == [ev.Started(1, 1, (0,))]


def test_an_order_whose_commit_failed_is_not_carried_out():
    centre = Centre()
    done = []
    centre.engine.hands = type("Hands", (), {"do": lambda self, action, *a: done.append(action)})()
    centre.submit("anne")
    done.clear()
    Failpoint(centre.journal, 1)
    centre.engine.feed([asked(cm.Delete(("1",), force=True), ANNE)], centre.sim.now)
    assert done == []
    assert centre.request(1).ending == ""
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
        assert len(centre.sim.machine.begun) == 12
        centre.is_sound()


# ---------------------------------------------------------------- bugs of ours


def test_a_desk_that_breaks_down_refuses_its_group_and_the_engine_goes_on(monkeypatch):
    from nqspy.engine import loop

    def broken(desk, command, caller):
        desk.emit(ev.Held((1,), "u", "anne"))
        raise ZeroDivisionError("a bug")

    centre = Centre(PLAIN + "stop queue batch\n")
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


def test_a_sighting_that_breaks_its_desk_is_left_out_and_the_others_are_taken(monkeypatch):
    from nqspy.engine.desk import hands

    take = hands._TAKERS[si.SeenEnded]

    def broken(desk, request, sighting):
        if request.seq == 1:
            raise ZeroDivisionError("a bug")
        take(desk, request, sighting)

    centre = Centre(length=60)
    centre.submit("anne", "ben")
    monkeypatch.setitem(hands._TAKERS, si.SeenEnded, broken)
    centre.later(seconds=70)
    assert (centre.state(1), centre.state(2)) == ("running", "ended")
    centre.is_sound()


def test_a_pass_that_breaks_down_keeps_nobody_from_ending_or_submitting():
    class Broken:
        def ask(self, site, now, samples):
            raise ZeroDivisionError("a bug")

    centre = Centre(length=60)
    centre.submit("anne")
    centre.engine.decider = Broken()
    centre.submit("ben", "ben")
    centre.later(seconds=60)
    assert centre.state(1) == "ended"
    assert len(centre.events(ev.Alarm)) == 1, "told once"
    assert "ZeroDivisionError" in "".join(centre.sim.log)


# ---------------------------------------------------------------- crashes


def story(centre: Centre) -> None:
    """Submissions, deletions, ends, a rerun: what a crash may interrupt anywhere."""
    for n in range(4):
        again(centre, submit("anne", centre, f"a{n}"))
        again(centre, submit("ben", centre, f"b{n}"))
        go(centre, 50)
    again(centre, cm.RerunRequests(("1",)))
    again(centre, cm.HoldRequests(("7",)))
    go(centre, 300)
    again(centre, cm.ReleaseRequests(("7",)))
    go(centre, 3600)


def again(centre: Centre, command: cm.Command) -> None:
    """A client that repeats itself when the daemon died under it or could not commit."""
    try:
        centre.ask(command)
    except Crash:
        centre.sim.restart()
        centre.ask(command)
    except Refusal as refusal:
        assert refusal.code == "not_committed"
        centre.ask(command)


def go(centre: Centre, seconds: int) -> None:
    end = centre.sim.now + seconds * 1000
    try:
        centre.sim.run(end)
    except Crash:
        centre.sim.restart()
        centre.sim.run(end)


@pytest.mark.parametrize("before", [True, False], ids=["before the commit", "after the commit"])
@pytest.mark.parametrize("number", range(1, 26))
def test_a_crash_at_any_commit_loses_nothing_and_starts_nothing_twice(number, before):
    journal = MemoryJournal()
    centre = Centre(journal=journal, length=100)
    if before:
        point = Failpoint(journal, number, error=Crash())
    else:
        point = After(journal, number)
    story(centre)
    assert point.count >= number, "the story is shorter than that"
    assert not centre.site.requests
    ended = {event.seq: event.end_reason for event in centre.events(ev.Ended)}
    assert ended == dict.fromkeys(range(1, 9), "exit")
    assert all(event.used.wall == 100_000 for event in centre.events(ev.Ended))
    centre.is_sound()


class After:
    """Dies right after a commit: it counts, and nobody was told, nothing was ordered."""

    def __init__(self, journal: MemoryJournal, number: int) -> None:
        self.count, commit = 0, journal.commit

        def dying(batch, site):
            commit(batch, site)
            self.count += 1
            if self.count == number:
                raise Crash

        journal.commit = dying  # type: ignore[method-assign]


def test_the_same_on_a_real_database(tmp_path):
    with SqliteJournal.open(tmp_path / "nqs.db") as journal:
        centre = Centre(journal=journal, length=100)
        Failpoint(journal, 5, 9, 14, error=CommitFailed("the disk is gone"))
        story(centre)
        assert not centre.site.requests
        centre.is_sound()


def test_after_a_power_cut_what_ran_is_run_again():
    centre = Centre(length=100)
    centre.submit("anne", "ben once")
    centre.later(seconds=50)
    centre.sim.machine.fail()
    centre.sim.restart()
    assert centre.request(1).attempt == 2
    assert centre.end_of(2).end_reason == "lost"
    assert len(centre.events(ev.Alarm)) == 2
    centre.later(seconds=101)
    assert centre.state(1) == "ended"
    centre.is_sound()


def test_orders_that_may_not_have_been_obeyed_are_given_again_after_a_restart():
    done = []

    class Hands:
        def do(self, action, request, site, now):
            done.append(action)

        def scan(self, expected):
            return [si.SeenRunning(seq, attempt) for seq, attempt in expected.items()]

    centre = Centre(pes=3)
    centre.submit("anne", "ben", "cleo")
    centre.ask(cm.SuspendRequests(("2",)))
    centre.engine.hands = centre.sim.machine = Hands()
    for command in (cm.Delete(("1",), force=True), cm.RerunRequests(("3",))):
        centre.engine.feed([asked(command)], centre.sim.now)
    done.clear()
    centre.sim.restart()
    assert sorted(type(action).__name__ for action in done) == ["Kill", "Kill", "Suspend"]
    assert [action.reason for action in done if isinstance(action, Kill)] == ["deleted", "requeued"]


def test_a_commit_that_fails_during_a_restart_loses_no_end():
    centre = Centre(length=100)
    centre.submit("anne")
    centre.sim.now += 100_000
    Failpoint(centre.journal, 1, 2)
    [(_, _, end)] = [entry for entry in centre.sim.heap.entries() if isinstance(entry[2], si.SeenEnded)]
    centre.sim.heap.drop(end)
    centre.sim.machine.ended(end)
    centre.sim.restart()
    assert centre.state(1) == "running"
    centre.later(seconds=5)
    assert centre.state(1) == "ended"
    centre.is_sound()


def test_a_machine_that_changed_is_noted_once():
    def found(centre: Centre) -> int:
        return len(centre.events(ev.MachineFound))

    centre = Centre()
    assert found(centre) == 1
    centre.sim.restart()
    assert found(centre) == 1
    centre.sim._found = type(centre.sim._found)((0, 1, 2, 3), 1 << 30)
    centre.sim.restart()
    assert found(centre) == 2
    assert centre.site.pes() == 4


def test_what_requests_used_is_the_same_after_replay_on_both_journals(tmp_path):
    def lengths(request: Request) -> Run:
        return Run(wall=60_000 + request.seq * 1000, cpu=30_000, memory=request.seq)

    memory = Centre(lengths=lengths)
    with SqliteJournal.open(tmp_path / "nqs.db") as journal:
        disk = Centre(lengths=lengths, journal=journal)
        for centre in (memory, disk):
            centre.submit(*("anne", "ben") * 5)
            centre.later(hours=1)
            centre.is_sound()
        assert memory.events() == disk.events()
        assert Ending("exit", 0).status == disk.end_of(3).exit_status
