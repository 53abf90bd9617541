"""Any order of commands, observations and times: no exception, a sound site, and a journal that gives the
same site again."""

from collections.abc import Iterable
from typing import Any

import pytest
from core.story import foreign_jobs
from engine.harness import ANNE, BEN, MAX, OLGA, PLAIN, Centre, asked, item, moment, observable
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from nqspy.core.no_exits import NoExits
from nqspy.engine.replay.follow import Follower
from nqspy.engine.replay.recording import Recording
from nqspy.engine.replay.what_if import WhatIf, WhatIfChange, side_by_side
from nqspy.engine.virtual.attempts import ENDLESS
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import observations as ob
from nqspy.model.events import Change, Recorded
from nqspy.model.requests import Ending, Used
from nqspy.model.site import Site
from nqspy.model.site_checks import check_site
from nqspy.store.journal import SqliteJournal

SETTINGS = f"""{PLAIN}
create batch_queue other priority=20 run_limit=2
create pipe_queue pipe priority=5 destination=(other, batch)
enable queue other, pipe
start queue other, pipe
set per_request cpu_limit=60 other
create probe nfs file=/nfs running=suspend
create probe licence tcp=licence:1 running=requeue
set needs=(nfs) other
create group d1 share=3
add members=(anne) d1
define shift night when=("0 21 * * *")
set run_limit=1 batch
stop queue other
end
define shift day when=("0 8 * * *")
set run_limit=unlimited batch
start queue other
end
"""

people = st.sampled_from((ANNE, BEN, OLGA, MAX))
ids = st.lists(st.integers(1, 12).map(str), min_size=1, max_size=3).map(tuple)
queues = st.sampled_from(("batch", "other", "pipe", "nowhere", ""))
lines = st.builds(
    "x cpu={} wall=2:00:00 pes={} {} at={} queue={} after={} needs={}".format,
    st.sampled_from(("30", "100", "unlimited")),
    st.integers(1, 3),
    st.sampled_from(("held", "once", "")),
    st.sampled_from(("0", "100", "5000", "100000")),
    queues.map(lambda name: name),
    st.sampled_from(("", "", "1", "1:any,2:start", "2:fail", "3:ok")),
    st.sampled_from(("", "", "", "licence", "nfs+licence", "unknown")),
)
submits = st.builds(
    lambda given, key: cm.Submit(tuple(item(line, 1_772_478_000_000) for line in given), key),
    st.lists(lines, max_size=3),
    st.sampled_from(("", "", "k1", "k2")),
)
CHANGES = (
    ("set", "queue/batch/run_limit", 1), ("set", "queue/batch/run_limit", None),
    ("set", "queue/*/started", True), ("set", "queue/other/started", False),
    ("set", "queue/batch/enabled", False), ("set", "queue/batch/enabled", True), ("set", "machine/pes", 1),
    ("set", "server/dependency_failed", "delete"), ("set", "server/dependency_failed", "run"),
    ("set", "machine/pes", None), ("delete", "queue/other"), ("set", "usage/charge", "pe_wall"),
    ("set", "usage/charge", "cpu"), ("set", "usage/half_life", 60_000), ("set", "sched_factor/share", 20),
    ("set", "sched_factor/cpu", 6), ("add", "group/d1/members", "ben"),
    ("create", "shift/tea", {"when": ["0 16 * * *"]}), ("delete", "shift/night"), ("set", "nonsense", 1),
    ("set", "queue/batch/needs", ("nfs",)), ("set", "queue/*/needs", ()),
    ("set", "probe/nfs/running", "requeue"), ("set", "probe/*/running", "hold"), ("delete", "probe/nfs"),
    ("delete", "probe/licence"), ("set", "server/lost_request", "fail"), ("set", "global/user_limit", 1),
    ("set", "shift/night/spill", "suspend"), ("set", "shift/night/spill", "suspend"),
    ("set", "shift/night/spill", "requeue"), ("set", "shift/night/spill", "drain"),
    ("add", "calendar/extra", "2026-03-03"), ("set", "calendar/holidays", "FR"),
)  # fmt: skip
changes = st.sampled_from([Change(*each) for each in CHANGES])
commands = st.one_of(
    submits,
    submits,
    submits,
    st.builds(cm.Delete, ids, st.booleans(), st.sampled_from((None, 10)), st.booleans()),
    st.builds(cm.HoldRequests, ids, st.sampled_from((None, "u", "o", "s", "x"))),
    st.builds(cm.ReleaseRequests, ids, st.sampled_from((None, "u", "o"))),
    st.builds(cm.MoveRequests, ids, queues),
    st.builds(cm.MoveRequests, st.just(()), queues, queues),
    st.builds(cm.RerunRequests, ids),
    st.builds(cm.SuspendRequests, ids, st.booleans()),
    st.builds(cm.ScheduleRequest, ids, st.sampled_from(("first", "next", "now", "system"))),
    st.builds(
        cm.ModifyRequest,
        ids,
        st.sampled_from(({"ask/pes": 2}, {"eligible": 1_772_490_000_000}, {"ask/cpu": 1}, {"x": 1})),
    ),
    st.builds(lambda change: cm.Configure((change,)), changes),
    st.builds(cm.PurgeQueue, queues),
    st.builds(cm.AbortQueue, queues, st.integers(0, 5)),
    st.builds(cm.SwitchShift, st.sampled_from(("night", "day", "none")), st.sampled_from((None, "23:00"))),
    st.just(cm.AutomaticShift()),
)
endings = st.builds(
    Ending,
    st.sampled_from(("exit", "signal", "cpu_limit")),
    st.just(0),
    st.none(),
    st.builds(Used, st.integers(0, 10**6), st.integers(0, 10**6)),
)
seqs, attempts = st.integers(1, 12), st.integers(1, 3)
observations = st.one_of(
    st.builds(ob.ObservedEnded, seqs, attempts, endings),
    st.builds(ob.ObservedLost, seqs, attempts),
    st.builds(ob.ObservedVoid, seqs, attempts),
    st.builds(ob.ObservedNotStarted, seqs, attempts, st.just("no folder")),
    st.builds(ob.ObservedRunning, seqs, attempts),
    st.builds(
        ob.ObservedResource,
        st.sampled_from(("nfs", "licence")),
        st.sampled_from(("ok", "broken")),
        st.just("so"),
    ),
    st.builds(
        lambda cpus: ob.ObservedForeign(foreign_jobs(*map(str, cpus))), st.sets(st.integers(0, 3), max_size=2)
    ),
    st.builds(ob.ObservedUse, seqs, attempts, st.builds(Used, st.integers(0, 10**6), st.integers(0, 10**6))),
)
asking = st.builds(lambda command, by: asked(command, by, object()), commands, people)
steps = st.lists(
    st.tuples(
        st.sampled_from((0, 1, 500, 60_000, 3_600_000)),
        st.lists(st.one_of(asking, asking, observations), max_size=4),
    ),
    max_size=14,
)


def live(centre: Centre, happenings) -> None:
    """Let everything happen; each command gets exactly one answer, and no answer is an internal error."""
    for ms, inputs in happenings:
        centre.sim.run(centre.sim.now + ms)
        centre.sim.replies.clear()
        centre.sim.feed(inputs)
        answered = [id(handle) for handle, _ in centre.sim.replies]
        assert answered == [id(each.handle) for each in inputs if hasattr(each, "handle")]
        assert all(
            reply.refusal is None or reply.refusal.code != "not_committed" for _, reply in centre.sim.replies
        )
        check_site(centre.site)
    assert not [line for line in centre.sim.log if "internal error" in line]


@settings(max_examples=25)
@given(steps)
def test_the_rows_give_the_same_site_as_the_events(tmp_path_factory, happenings):
    with SqliteJournal.open(tmp_path_factory.mktemp("home") / "nqs.db") as journal:
        centre = Centre(SETTINGS, length=100, pes=3, journal=journal)
        live(centre, happenings)
        centre.engine.flush(centre.sim.now)
        assert observable(journal.load()) == observable(centre.site)


@settings(max_examples=examples(80))
@given(steps, st.sets(st.integers(1, 40), max_size=4))
def test_commits_that_fail_anywhere_lose_nothing_but_what_was_refused(happenings, numbers):
    centre = Centre(SETTINGS, length=100, pes=3)
    count = 0

    def full():
        nonlocal count
        count += 1
        if count in numbers:
            raise OSError(28, "No space left on device")

    centre.journal.failpoint = full
    for ms, inputs in happenings:
        centre.sim.run(centre.sim.now + ms)
        centre.sim.feed(inputs)
        check_site(centre.site)
    centre.journal.failpoint = None
    centre.later(seconds=3)
    centre.is_sound()
    assert not centre.engine._retry
    assert not [line for line in centre.sim.log if "internal error" in line]


# ---------------------------------------------------------------- replay
def recording(journal: Any) -> Recording:
    """Return the whole recording of a journal, from an empty site on."""
    return Recording(Site, list(journal.events()), journal.ended)


def unlike(journal: Any) -> list:
    """Return the differences between a journal and its replay."""
    follower = Follower(recording(journal), NoExits())
    follower.follow()
    return follower.differences


@settings(max_examples=examples(150), deadline=None)
@given(steps)
def test_whatever_happened_happens_again_to_the_event_and_goes_to_its_end_under_a_change(happenings):
    centre = Centre(SETTINGS, length=100, pes=3)
    live(centre, happenings)
    centre.later(hours=30)
    assert not unlike(centre.journal)
    was, would = what_if(centre, "set sched_factor time 1")  # as it is: nothing is moved
    assert happened(was.made) == happened(would.made)
    check_site(was.site)
    check_site(what_if(centre, "set machine pes=1", "set global run_limit=2")[1].site)


def test_a_replay_compares_codes_and_no_texts_of_earlier_versions():
    """Messages may be worded anew: a journal of an earlier version replays the same all the same."""
    centre = Centre(SETTINGS, length=100, pes=3)
    centre.submit("anne pes=2 wall=100", "ben pes=3 wall=100", "cleo wall=10")
    centre.later(hours=1)
    taken = list(centre.journal.events())
    place, event = next((n, r.event) for n, r in enumerate(taken) if getattr(r.event, "wait", ()))
    differences = []
    for former in ("", "LIMIT"):
        wait = tuple((seq, former or code, who, "in former words") for seq, code, who, _ in event.wait)
        taken[place] = structs.replace(taken[place], event=structs.replace(event, wait=wait))
        follower = Follower(Recording(Site, taken, centre.journal.ended), NoExits())
        follower.follow()
        differences.append(len(follower.differences))
    assert differences == [0, 1]


def what_if(centre: Centre, *lines: str) -> tuple[WhatIf, WhatIf]:
    """Return the runs of all that happened without a change, and with these commands."""
    taken = recording(centre.journal)
    changes = tuple(change for line in lines for change in centre.command(line).changes)
    change = WhatIfChange(
        (cm.Configure(changes, "replay", upsert=True),) if changes else (), lambda settings: changes
    )
    was, would = WhatIf(taken, NoExits()), WhatIf(taken, NoExits(), change=change)
    side_by_side(was, would)
    return was, would


def happened(events: Iterable[Recorded]) -> list:
    """Return the events without those that a change of settings causes, and without numbers."""
    ours = (each for each in events if getattr(each.event, "source", "") != "replay")
    return [
        (each.at, structs.replace(each.event, as_of=0) if hasattr(each.event, "as_of") else each.event)
        for each in ours
    ]


def test_a_what_if_run_without_a_change_is_what_happened():
    """Attempts end by themselves, at a limit, by a command or without a trace; a person moves and deletes."""
    centre = Centre(pes=2, length=600)
    for line in ("anne", "ben wall=5:00", "anne pes=2", "ben", "anne name=lost", "ben", "anne"):
        centre.submit(line)
        centre.later(seconds=1)
    centre.qmgr("delete request 4")
    centre.later(minutes=11)
    assert centre.state(5) == centre.state(6) == "running"
    centre.sim.feed([ob.ObservedLost(5, 1)])
    centre.later(minutes=1)
    centre.ask(cm.Delete(("6",), force=True))
    centre.later(hours=2)
    was, _ = what_if(centre, "set machine pes=3")
    assert happened(was.made) == happened(centre.journal.events())
    assert (was.executor.unknown[2], was.executor.unknown[6]) == ((300_000, ENDLESS), None)


def down_until(centre: Centre, instant: str) -> None:
    """Stop the daemon until then; at its start it finds what ended and came due meanwhile."""
    centre.sim.now = moment(instant)
    centre.sim.make(centre.journal.load())
    centre.engine.note(ev.DaemonStarted(centre.site.at, False), centre.sim.now)
    centre.engine.flush(centre.sim.now)
    used = Used(600_000, 600_000)
    ends = [ob.ObservedEnded(seq, 1, Ending("exit", 0, None, used)) for seq in centre.site.started]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(centre.sim.executor, "scan", lambda expected: ends)
        centre.sim.restart()


def test_what_a_start_finds_comes_before_what_came_by_time_and_both_come_again(tmp_path):
    centre = Centre(SETTINGS, length=600, pes=3, journal=SqliteJournal.open(tmp_path / "nqs.db"))
    first, _ = centre.submit("anne wall=2:00:00", "ben wall=2:00:00")
    centre.submit(f"ben name=later wall=2:00:00 after={first}", "anne at=+1800 wall=2:00:00")
    centre.later(minutes=1)
    down_until(centre, "2026-03-02T21:30:00+01:00")
    centre.later(hours=2)
    kinds = [each.kind for each in centre.events()]
    found = kinds[kinds.index("daemon_started") + 1 :][:5]
    assert found == ["ended", "ended", "eligible", "settings_changed", "shift_changed"], kinds
    assert not unlike(centre.journal)
    was, would = what_if(centre, "set queue batch enabled=yes", "set global run_limit=1")
    assert was.started == would.started == {1, 2, 3, 4}
    assert happened(was.made) != happened(would.made)
