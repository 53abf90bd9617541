"""Requests that wait for others, whatever becomes of the daemon, of its commits and of any graph of them."""

import pytest
from engine.harness import Centre, Crash, Failpoint, by_name
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.store.journal import SqliteJournal
from nqspy.store.memory import MemoryJournal

WORDS = ("ok", "any", "fail", "start")


def centre(**more):
    return Centre(lengths=by_name, pes=4, **more)


def story(site):
    site.submit("anne name=bad3", "anne", "ben after=1,2", "ben after=2", "ben after=4:start,1:fail")
    site.submit("ben after=5", "ben after=3:any")
    site.ask(cm.Delete(("3",)))


@pytest.mark.parametrize("open_journal", [MemoryJournal, None], ids=["memory", "sqlite"])
def test_a_restart_at_any_moment_changes_nothing(tmp_path, open_journal):
    journal = open_journal() if open_journal else SqliteJournal.open(tmp_path / "nqs.db")
    site, plain = centre(journal=journal), centre()
    story(site)
    story(plain)
    for _ in range(9):
        site.sim.restart()
        site.later(minutes=5)
        plain.later(minutes=5)
        site.is_sound()
        assert site.starts() == plain.starts()
    assert site.starts() == [1, 2, 7, 4, 5, 6]
    journal.close()


@pytest.mark.parametrize("number", range(1, 7))
@pytest.mark.parametrize("dies", [True, False], ids=["dies", "disk full"])
def test_an_end_and_what_it_brings_about_are_committed_together_or_not_at_all(number, dies):
    journal = MemoryJournal()
    site = centre(journal=journal)
    story(site)
    point = Failpoint(journal, number, error=Crash() if dies else None)
    try:
        site.later(hours=2)
    except Crash:
        site.sim.restart()
        site.is_sound()
    site.later(hours=2)
    assert point.count >= number
    assert sorted(site.starts()) == [1, 2, 4, 5, 6, 7]
    assert not site.site.requests
    site.is_sound()


def test_events_of_before_there_were_dependencies_still_load():
    site = centre()
    site.submit("anne held")
    [told] = site.events(ev.Submitted)
    body = ev.encode(told).replace(b'"after":[],', b"").replace(b',"after":[]', b"")
    assert b"after" not in body
    assert ev.decode("submitted", body) == told


# ---------------------------------------------------------------- any graph


graphs = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(1, 9), st.sampled_from(WORDS)), max_size=3),
        st.sampled_from(("job", "bad1")),
    ),
    min_size=1,
    max_size=9,
)


@settings(max_examples=examples(60))
@given(
    graph=graphs,
    policy=st.sampled_from(("hold", "delete", "run")),
    deleted=st.sets(st.integers(1, 9), max_size=2),
)
def test_nothing_starts_before_what_it_awaits_has_come_about(graph, policy, deleted):
    site = centre().qmgr(f"set dependency_failed {policy}")
    wanted = {}
    for number, (after, name) in enumerate(graph, 1):
        mine = [(seq, word) for seq, word in after if seq < number]
        wanted[number] = mine
        words = ",".join(f"{seq}:{word}" for seq, word in mine)
        site.submit(f"anne name={name}" + (f" after={words}" if words else ""))
    site.ask(cm.Delete(tuple(map(str, sorted(deleted)))))
    site.later(hours=3)
    site.is_sound()
    check_order(site, wanted, policy)


def check_order(site, wanted, policy):
    """Every start came after all that it awaited; what waits still waits for something that cannot come."""
    happened = {}
    for event in site.events(ev.Started, ev.Starting, ev.Ended, ev.Deleted):
        if isinstance(event, ev.Starting):
            for seq, word in wanted[event.seq]:
                assert policy == "run" or word in happened.get(seq, ()), (event, seq, word)
                assert seq in happened
        else:
            happened.setdefault(event.seq, set()).update(words_of(event))
    live = site.site.requests
    for request in live.values():
        assert request.never or any(each.seq in live for each in request.unmet)


def words_of(event):
    if isinstance(event, ev.Started):
        return {"start"}
    if isinstance(event, ev.Deleted):
        return {"any", "fail"}
    well = event.end_reason == "exit" and event.exit_status == 0
    return {"any", "ok" if well else "fail"}
