"""Recovery of an engine that died at any commit, or that starts with an older database."""

import copy

import pytest
from engine.harness import PLAIN, Centre, Crash, Failpoint, asked, submit

from nqspy.engine import lifecycle, restart
from nqspy.engine.restart import Later
from nqspy.model import columns
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import observations as ob
from nqspy.model.actions import Kill, SetAside
from nqspy.model.errors import Refusal
from nqspy.model.ids import array_key, member
from nqspy.model.requests import State, Used
from nqspy.model.site import Site
from nqspy.model.site_checks import check_site
from nqspy.ports import CommitFailed
from nqspy.store.journal import SqliteJournal
from nqspy.store.memory import MemoryJournal


def story(centre: Centre) -> None:
    """Give commands and let requests end: submissions, deletions, a rerun; a crash may interrupt each."""
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
    """Give a command as a client that repeats it after a crash or a failed commit."""
    try:
        centre.ask(command)
    except Crash:
        centre.sim.restart()
        centre.ask(command)
    except Refusal as refusal:
        if refusal.code != "not_committed":
            raise
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
    point = Failpoint(journal, number, error=Crash()) if before else After(journal, number)
    story(centre)
    assert point.count >= number, "the story is shorter than that"
    assert not centre.site.requests
    ended = {event.seq: event.end_reason for event in centre.events(ev.Ended)}
    assert ended == dict.fromkeys(range(1, 9), "exit")
    assert all(event.used.wall == 100_000 for event in centre.events(ev.Ended))
    centre.is_sound()


class After:
    """Dies right after a commit: the commit counts, but nothing was answered or ordered."""

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
    centre.sim.executor.fail()
    centre.sim.restart()
    assert centre.request(1).attempts == 2
    assert centre.end_of(2).end_reason == "lost"
    assert len(centre.events(ev.Alarm)) == 2
    centre.later(seconds=101)
    assert centre.state(1) == "ended"
    centre.is_sound()


class Running:
    """An executor in which everything keeps running with this much use; ``done``: its orders."""

    def __init__(self, used: Used = Used()) -> None:  # noqa: B008
        self.used, self.done = used, list[object]()

    def do(self, action, request, site, now):
        self.done.append(action)

    def scan(self, expected):
        return [ob.ObservedRunning(seq, attempt, self.used) for seq, attempt in expected.items()]

    def order_moves(self, rank, now):
        """Do nothing: nothing moves here."""


def test_orders_that_may_not_have_been_obeyed_are_given_again_after_a_restart():
    centre = Centre(pes=4)
    centre.submit("anne", "ben", "cleo", "dora")
    centre.ask(cm.SuspendRequests(("2", "4")))
    centre.engine.executor = centre.sim.executor = running = Running()
    resume = cm.SuspendRequests(("4",), resume=True)
    for command in (cm.Delete(("1",), force=True), cm.RerunRequests(("3",)), resume):
        centre.engine.feed([asked(command)], centre.sim.now)
    running.done.clear()
    centre.sim.restart()
    assert sorted(type(action).__name__ for action in running.done) == ["Kill", "Kill", "Resume", "Suspend"]
    kills = [action.reason for action in running.done if isinstance(action, Kill)]
    assert kills == ["deleted", "requeued"]


def test_what_a_restart_finds_is_mailed_once_with_its_own_subject(monkeypatch):
    centre = Centre()
    fates = ("alive", "done", "later")
    strays = [ob.ObservedStray(15 + n, 1, fate) for n, fate in enumerate(fates)]
    monkeypatch.setattr(centre.sim.executor, "scan", lambda expected: strays)
    centre.sim.restart()
    mails = [(each.subject, each.text) for each in centre.sim.notices]
    assert len(mails) == len(fates)
    for subject, text in mails:
        assert subject.removeprefix("nqspy: ") not in text


def test_records_of_indices_that_have_ended_are_no_strays_those_of_ones_to_come_are(monkeypatch):
    centre = Centre(pes=1, length=100)
    centre.submit("anne array=1-3")
    centre.ask(cm.HoldRequests(("1[2-3]",)))
    centre.later(seconds=150)
    done: list[object] = []
    strays = [ob.ObservedStray(member(1, index), 1, "done") for index in (1, 3)]
    monkeypatch.setattr(centre.sim.executor, "scan", lambda expected: strays)
    monkeypatch.setattr(centre.sim.executor, "do", lambda action, *_: done.append(action))
    centre.sim.restart()
    assert done == [SetAside(member(1, 3), 1)]
    [mail] = centre.sim.notices
    assert "1[3]" in mail.text
    assert "1[1]" not in mail.text


def test_a_commit_that_fails_during_a_restart_loses_no_end():
    centre = Centre(length=100)
    centre.submit("anne")
    centre.sim.now += 100_000
    Failpoint(centre.journal, 1, 2)
    [(_, number, end)] = [
        entry for entry in centre.sim.heap.entries() if isinstance(entry[2], ob.ObservedEnded)
    ]
    centre.sim.heap.drop(number)
    centre.sim.executor.ended([end], centre.sim.now)
    centre.sim.restart()
    assert centre.state(1) == "running"
    centre.later(seconds=5)
    assert centre.state(1) == "ended"
    centre.is_sound()


def test_what_was_used_while_the_daemon_was_down_is_known_after_a_restart():
    centre = Centre()
    centre.submit("anne")
    centre.sim.executor = Running(Used(70_000, 80_000))
    centre.sim.restart()
    assert centre.engine.samples == {1: Used(70_000, 80_000)}


def test_a_machine_that_changed_is_noted_once():
    centre = Centre()
    centre.sim.restart()
    assert len(centre.events(ev.MachineFound)) == 1
    centre.sim._found = type(centre.sim._found)((0, 1, 2, 3), 1 << 30)
    centre.sim.restart()
    assert len(centre.events(ev.MachineFound)) == 2
    assert centre.site.pes() == 4


# ---------------------------------------------------------------- a start over an older database
def rewound(minutes, *lines):
    """Return a site whose journal is set back by so many minutes; its jobs stay as they are."""
    centre = Centre(PLAIN, pes=1, length=600)
    centre.submit(*lines)
    stored = copy.deepcopy(centre.journal.__dict__)
    centre.later(minutes=minutes)
    centre.journal.__dict__.update(stored)
    return centre


def begin(centre, seen, told=None):
    sim = centre.sim
    later = restart.later_than(centre.journal.load(), seen, told)
    sim.restart(later)
    return later


def test_a_start_that_is_not_rewound_finds_nothing():
    site = Site(next_seq=5)
    assert restart.later_than(site, {}) is None
    assert restart.later_than(site, {3: 1, 4: 2}) is None


def test_a_request_that_was_started_since_is_held_and_its_attempt_is_not_used_again():
    centre = rewound(1, "anne", "ben")
    site = centre.site
    assert not site.touched.requests
    later = begin(centre, {2: 3, 9: 1})
    assert (later.next_seq, later.attempts) == (10, {2: 3, 9: 1})
    ben = centre.site.requests[2]
    assert (ben.state, ben.attempts, ben.holds) == (State.HELD, 3, "o")
    assert centre.site.next_seq == 10
    [alarm] = [each.event for each in centre.journal.events() if each.event.kind == "alarm"]
    assert all(each in alarm.text for each in ("10.", ": 2.", ": 9."))
    [cleo] = centre.submit("cleo")
    assert cleo == 10
    replayed = Site()
    for each in centre.journal.events():
        lifecycle.apply(replayed, each)
    assert (replayed.next_seq, replayed.requests[2].attempts) == (11, 3)


def test_an_attempt_without_a_trace_after_a_restore_is_held_and_not_run_again():
    centre = rewound(30, "anne")  # it ends without a trace
    begin(centre, {}, Later("a backup was restored", 7, {}))
    assert centre.site.requests[1].state is State.HELD
    assert centre.site.next_seq == 7
    centre.later(minutes=30)
    assert centre.sim.executor.begun == [(1, 1)]


def test_an_attempt_that_still_runs_after_a_restore_is_adopted():
    centre = rewound(1, "anne")
    begin(centre, {1: 1}, Later("a backup was restored", 2, {}))
    assert centre.site.requests[1].state is State.RUNNING
    centre.later(minutes=30)
    assert [row["seq"] for row in centre.journal.ended((1,))] == [1]
    assert centre.sim.executor.begun == [(1, 1)]


def night(limit):
    """Return what a night starts, in order, and how many names are remembered at its end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "LEAST_NAMES", limit)
        settings = PLAIN + "set sched_factor share 20\ncreate group d1 share=30 members=(anne)\n"
        centre = Centre(settings, pes=2, length=300)
        centre.site.numbers.limit = limit
        for number in range(12):
            centre.submit(f"anne name=a{number}", f"ben name=b{number}", f"cleo name=c{number % 3}")
            centre.later(minutes=7)
        centre.later(minutes=200)
        starts = [each.event.seq for each in centre.journal.events() if each.event.kind == "starting"]
        return starts, len(centre.site.numbers.names)


def test_forgetting_names_changes_no_decision():
    """Run the same night twice, once with names removed after every few new ones."""
    starts, few = night(1)
    as_ever, many = night(10_000)
    assert starts == as_ever
    assert len(starts) == 36
    assert few < many


def test_an_index_that_began_since_is_held_as_a_request_of_its_own():
    """Otherwise its array would start it again, because it had not begun in the backup."""
    centre = rewound(25, "anne array=1-4")
    began = member(array_key(1), 2)
    begin(centre, {began: 1})
    assert centre.state(began) == "held"
    centre.later(hours=2)
    assert centre.state(began) == "held"
    assert began not in centre.starts()[1:]
    check_site(centre.site)
