"""Small graphs in one transaction, what a failure brings about told once, and deletions that take along what
waits."""

import pytest
from engine.harness import ANNE, Centre, by_name, item
from engine.story import play
from msgspec.structs import replace

from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.requests import Dependency


def centre():
    return Centre(lengths=by_name, pes=8)


def graph(site, *lines, by=ANNE, **more):
    """A list of (line, places and words that it waits for)."""
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
    assert (again["ids"], again["repeated"]) == (answer["ids"], True)
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


@pytest.mark.parametrize("title", STORIES)
def test_deletions(title):
    play(STORIES[title])
