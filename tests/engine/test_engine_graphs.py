"""Requests that wait for others (``--after``): they stay held until their prerequisites are met, despite
crashes, failed commits and deletions; small graphs are submitted in one transaction."""

import pytest
from engine.harness import ANNE, BEN, Centre, Crash, Failpoint, by_name, item
from engine.story import play
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nqspy.engine.explain import chain, reason_of
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.reasons import ReasonCode
from nqspy.model.requests import Dependency
from nqspy.store.journal import SqliteJournal
from nqspy.store.memory import MemoryJournal


def centre(**more):
    return Centre(lengths=by_name, pes=8, **more)


def graph(site, *lines, by=ANNE, **more):
    """Submit a list of (line, places and words of its prerequisites)."""
    items = [
        replace(item(line, site.sim.now, number=n), after=tuple(after))
        for n, (line, after) in enumerate(lines, 1)
    ]
    return site.ask(cm.Submit(tuple(items), **more), by)


# ---------------------------------------------------------------- a list that is a graph
def test_a_diamond_runs_from_the_top_to_the_bottom():
    site = centre()
    site.submit("ben")
    graph(
        site,
        ("anne", ()),
        ("anne", ((0, "ok"),)),
        ("anne", ((0, "start"),)),
        ("anne", ((1, "ok"), (2, "any"))),
    )
    assert [site.state(seq) for seq in (2, 3, 4, 5)] == ["running", "held", "running", "held"]
    assert site.request(5).spec.after == (Dependency(3, "ok"), Dependency(4, "any"))
    site.is_sound()
    site.later(minutes=11)
    assert site.starts() == [1, 2, 4, 3]
    site.later(minutes=11)
    assert site.starts() == [1, 2, 4, 3, 5]
    site.is_sound()


@pytest.mark.parametrize("after", [((1, "ok"),), ((2, "ok"),), ((-1, "ok"),), ((7, "any"),)])
def test_nobody_waits_for_himself_or_for_a_later_one_and_then_nothing_is_accepted(after):
    site = centre()
    items = (item("anne", site.sim.now, number=4), replace(item("anne", site.sim.now, number=9), after=after))
    refusal = site.refused(cm.Submit(items), ANNE)
    assert (refusal.code, str(refusal)[:8]) == ("bad_dependency", "line 9: ")


def test_a_list_is_a_graph_again_after_a_restart_and_the_same_key_gives_the_same():
    site = centre()
    answer = graph(site, ("anne held", ()), ("anne", ((0, "ok"),)), key="k")
    site.sim.restart()
    again = graph(site, ("anne held", ()), ("anne", ((0, "ok"),)), key="k")
    assert again == answer | {"repeated": True}
    assert site.request(2).unmet == (Dependency(1),)
    other = replace(item("anne", site.sim.now, number=2), after=((0, "any"),))
    refusal = site.refused(cm.Submit((item("anne held", site.sim.now, number=1), other), "k"), ANNE)
    assert refusal.code == "key_reused"


def test_a_request_waits_for_a_thousand_of_its_list_and_for_no_more():
    site = centre().qmgr("stop queue batch")
    many = [("anne", ())] * 1000
    graph(site, *many, ("anne", [(place, "ok") for place in range(1000)]))
    assert len(site.request(1001).unmet) == 1000
    refused = replace(item("anne", site.sim.now, number=1002), after=[(place, "ok") for place in range(1001)])
    items = tuple(item("anne", site.sim.now, number=n) for n in range(1, 1002))
    refusal = site.refused(cm.Submit((*items, refused)), ANNE)
    assert (refusal.code, str(refusal)[:11]) == ("bad_dependency", "line 1002: ")


def test_a_dry_run_of_a_graph_accepts_nothing():
    site = centre()
    answer = graph(site, ("anne", ()), ("anne", ((0, "ok"),)), dry_run=True)
    assert [row["queue"] for row in answer["dry_run"]] == ["batch", "batch"]
    assert not site.site.requests


def test_arrays_of_a_list_wait_for_each_other_index_by_index():
    site = centre()
    answer = graph(site, ("anne array=1-3", ()), ("anne array=1-3", ((0, "each"),)), ("anne", ((1, "ok"),)))
    assert answer["ids"] == ["1[].sim", "2[].sim", "3.sim"]
    site.later(hours=1)
    assert not site.site.requests
    assert {each.end_reason for each in site.events(ev.Ended)} == {"exit"}
    starts = [site.site.id_of(seq) for seq in site.starts()]
    assert starts[-1] == "3.sim"
    assert all(starts.index(f"1[{n}].sim") < starts.index(f"2[{n}].sim") for n in (1, 2, 3))
    site.is_sound()


@pytest.mark.parametrize(
    ("first", "second"), [("array=1-3", "array=1-4"), ("", "array=1-3"), ("array=1-3", "")]
)
def test_index_by_index_the_arrays_of_a_list_are_equal_or_refused(first, second):
    site = centre()
    items = (
        item(f"anne name=x {first}", site.sim.now, number=1),
        replace(item(f"anne {second}", site.sim.now, number=2), after=((0, "each"),)),
    )
    refusal = site.refused(cm.Submit(items), ANNE)
    assert (refusal.code, str(refusal)[:8]) == ("bad_dependency", "line 2: ")


# ---------------------------------------------------------------- consequences are told once
def notes(site, to):
    return [notice for notice in site.sim.notices if notice.to == to]


def test_a_chain_that_falls_is_one_mail_for_each_person():
    site = centre().qmgr("set dependency_failed delete")
    site.submit("olga name=bad3", "anne mail=abort after=1")
    for n in range(2, 40):
        site.submit(f"anne mail=abort after={n}")
    site.submit("ben mail=abort after=40", "ben mail=abort after=1", "eva after=40")
    site.later(minutes=11)
    assert not site.site.requests
    [mail] = notes(site, "anne")
    assert mail.subject == "nqspy: 39 requests are deleted"
    assert mail.text.startswith("1.sim ")
    assert mail.text.endswith("and 19 more.")
    [mail] = notes(site, "ben")
    assert "42.sim (STDIN), 41.sim (STDIN)" in mail.text, "the root is told, whatever lies between"
    assert not notes(site, "eva"), "who has not asked for mail gets none"


def test_five_hundred_that_stay_held_are_one_mail_and_one_event():
    site = centre()
    site.submit("olga name=bad3")
    graph(site, *[("anne after=1", ())] * 500)
    site.later(minutes=11)
    [mail] = notes(site, "anne")
    assert mail.subject == "nqspy: 500 requests are held"
    [failed] = site.events(ev.DependencyFailed)
    assert len(failed.seqs) == 500


def test_a_list_whose_prerequisite_had_failed_before_is_one_mail():
    site = centre()
    site.submit("olga name=bad3")
    site.later(minutes=11)
    graph(site, *[("anne after=1", ())] * 50)
    [mail] = notes(site, "anne")
    assert mail.subject == "nqspy: 50 requests are held"


STORIES = {
    "what waits is deleted too, and no failure is told": """qmgr stop queue batch
        submit anne, anne after=1, anne after=1:fail, anne after=2,3:any, anne
        delete 1 cascade by anne -> 1 2 3 4; known 1; mails 0; events dependency_failed 0
        events dependency_met 0""",
    "of a running one the waiting go at once": """submit anne, anne after=1, anne after=2
        delete 1 force cascade by anne; state 1 ended 2 ended 3 ended; starts 1""",
    "what waits for indices is deleted too": """qmgr stop queue batch
        submit anne array=1-3, anne array=1-3 after=1[]:each, anne after=1[2], anne
        delete 1 cascade by anne -> 1[] 2[] 3; known 1""",
    "those of others stay": """qmgr stop queue batch; submit anne, ben after=1, anne after=2
        delete 1 cascade by anne -> 1 3 2.sim:not_permitted; never 2""",
    "what is not deleted takes none along": """submit anne, anne after=1
        delete 1 cascade by olga -> 1:wrong_state
        state 2 held; delete 1 cascade signal=10 by olga; state 2 held""",
    "what is named and waits is deleted once": """qmgr stop queue batch
        submit anne, anne after=1, anne after=2
        delete 1+2+3.sim cascade by anne -> 1 2 3""",
    "what has ended meanwhile is no failure": """site length=1; submit anne, anne held; later 2s
        delete 1+2+9 lenient by anne -> 2 9:unknown_request""",
    "a record stays, and that is told": """site length=1; submit anne, anne held; later 2s
        delete 1+9+2 history by anne -> 2 9:unknown_request 1:record_stays""",
}
ENDINGS = {
    "ends well": ("anne", "later 11m", ("ok", "any", "start"), "1 2"),
    "ends badly": ("anne name=bad3", "later 11m", ("any", "fail", "start"), "1 2"),
    "is killed": ("anne", "later 1m; delete 1 kill; later 1m", ("any", "fail", "start"), "1 2"),
    "is deleted before it ran": ("anne held", "delete 1", ("any", "fail"), "2"),
}
"""Submitted requests, what happens to them, the words that this meets, and the requests that then start."""
STORIES |= {
    "held by the system while it waits, and says for what": """submit anne, ben name=long, anne after=1,2:any
        state 3 held; holds 3 s; why 3 DEPENDENCY dependency
        says 3 1.sim has ended with exit status 0 and 2.sim; later 11m
        says 3 2.sim; later 1h; starts 1 2 3""",
    "start is met once it has begun": """qmgr stop queue batch; submit anne, ben after=1:start; state 2 held
        qmgr start queue batch; starts 1 2; submit anne after=1:start; starts 3""",
    "an operator releases it and its owner cannot": """submit anne name=long, ben after=1
        release 2 by ben -> 2:not_permitted; release 2 by olga; starts 1 2""",
    "other holds stay": """submit anne, ben after=1 held, ben after=1; hold 3 letter=s by olga; holds 2 su
        later 11m; state 2 held 3 held; holds 2 u 3 s; release 2+3 by olga; starts 1 2 3""",
    "modified and moved it waits": """qmgr create batch_queue other priority=5 | enable queue other
        qmgr start queue other; submit anne, ben after=1; modify 2 name=renamed by ben; move 2 to=other by ben
        state 2 held; queue 2 other; later 11m; starts 1 2""",
    "a rerun of the prerequisite is no end": """submit anne, ben after=1:any; later 5m; rerun 1; later 9m
        state 2 held; later 3m; state 2 running""",
    "what can never be met is held and told, and an operator may let it run": """
        submit anne name=bad3, ben after=1; later 11m; state 2 held; never 2; why 2 DEPENDENCY dependency
        mails 1; release 2 letter=s by olga; starts 1 2""",
    "a failure deletes the whole chain behind it": """qmgr set dependency_failed delete
        submit anne name=bad3, ben after=1 mail=abort, ben after=2, ben after=2:any, ben after=2:fail
        later 11m; state 2 ended 3 ended; end 2 dropped dependency; mails 1; starts 1 4 5""",
    "what never existed or says nothing": "submit anne; " + "; ".join(
        f"refuse ben after={after} -> bad_dependency"
        for after in ("99", "2", "1.elsewhere:ok", "0", "1:soon", ":ok", "1:", "job:ok")
    ),
    "two failures are two mails": """submit olga name=bad3, olga name=bad4, anne after=1, anne after=2
        later 11m; mails 2""",
    "a chain of three runs one after the other": """submit anne, anne after=1, anne after=2
        submit anne after=3,1:any; later 25m; starts 1 2 3; later 1h; starts 4""",
    "attributes keep what is no dependency, and each is kept once": """submit anne name=long
        submit ben after=1,1:ok,1:any
        has 2 spec.after=[{"seq":1,"word":"ok"},{"seq":1,"word":"any"}] spec.attributes=[]""",
} | {
    f"{word} where it {ending}{when}": f"submit {line}{early}; {happen}{late}; {then}"
    for ending, (line, happen, met, started) in ENDINGS.items()
    for word in ("ok", "any", "fail", "start")
    for then in (f"starts {started}" if word in met else "state 2 held; never 2; later 2h; state 2 held",)
    for when, early, late in (
        ("", f", ben after=1:{word}", ""),
        (", named by its record", "", f"; state 1 ended; submit ben after=1:{word}"),
    )
} | {
    f"what had failed before the submission: {policy}": f"""qmgr set dependency_failed {policy}
        submit anne name=bad3; later 11m; submit ben after=1,1:fail; state 2 {state}"""
    for policy, state in (("hold", "held"), ("delete", "ended"), ("run", "running"))
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_stories(title):
    play(STORIES[title], lengths=by_name, pes=4)


def test_a_chain_can_be_walked_up_to_ten_links():
    site = centre()
    site.submit("anne", "anne after=1", "anne after=2", "anne after=3,1:any")
    links = [(link.needed_by, link.seq, link.word) for link in chain(site.engine, 4)]
    assert links == [(4, 3, "ok"), (4, 1, "any"), (3, 2, "ok")]
    site.submit(*(f"anne after={n}" for n in range(4, 15)))
    assert [link.seq for link in chain(site.engine, 15)] == list(range(14, 4, -1))


def test_a_dry_run_says_what_it_would_wait_for():
    site = centre()
    site.submit("anne name=long")
    wish = cm.Submit((item("ben after=1,1:start", site.sim.now),), dry_run=True)
    [would] = site.ask(wish, BEN)["dry_run"]
    assert would["depends_on"] == [site.id(1)]
    assert would["estimate"]["start"] is None
    met = cm.Submit((item("ben after=1:start", site.sim.now),), dry_run=True)
    [would] = site.ask(met, BEN)["dry_run"]
    assert would["depends_on"] == []
    assert would["estimate"]["start"] is not None


# ---------------------------------------------------------------- what can never be met
def test_what_a_deleted_dependant_waited_for_is_named_and_nothing_else():
    site = centre().qmgr("set dependency_failed delete")
    site.submit("anne held", "ben after=1", "ben after=1:start", "ben after=1:ok,1:start")
    site.ask(cm.Delete(("1",)))
    ok, start = f"{site.id(1)} has ended with exit status 0", f"{site.id(1)} has started"
    waited = [site.end_of(seq).text.partition("; it waited until ")[2] for seq in (2, 3, 4)]
    assert waited == [ok, start, f"{ok} or {start}"]


def test_a_long_chain_is_deleted_in_one_go():
    site = centre().qmgr("set dependency_failed delete")
    site.submit("anne held")
    for n in range(1, 1200):
        site.hand_in(f"anne after={n}")
    site.ask(cm.Delete(("1",)))
    assert not site.site.requests
    assert not site.site.dependants


def test_a_lost_prerequisite_that_is_given_up_counts_as_failed():
    site = centre().qmgr("set lost_request fail")
    site.submit("anne", "ben after=1", "ben after=1:fail")
    site.sim.executor.fail()
    site.sim.restart()
    site.sim.run(site.sim.now)
    assert (site.state(1), site.state(2), site.state(3)) == ("ended", "held", "running")
    reason = reason_of(site.engine, site.request(2))
    assert (reason.code, reason.who) == (ReasonCode.DEPENDENCY, "dependency")
    assert "lost" in reason.text
    site.is_sound()


WORDS = ("ok", "any", "fail", "start")


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
    """Check that every start came after all its prerequisites, and that requests still waiting have one that
    cannot be met."""
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
