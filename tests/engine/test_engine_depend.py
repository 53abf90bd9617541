"""Requests that wait for others (``--after``): held until what they await has come about, whatever becomes of
the others, of the daemon and of its commits."""

import pytest
from engine.harness import ANNE, BEN, OLGA, Centre, item

from nqspy.engine.explain import chain, reason_of
from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.reasons import ReasonCode
from nqspy.model.requests import Dependency

WORDS = ("ok", "any", "fail", "start")


def by_name(request):
    """A request named bad7 ends with status 7, one named long runs an hour, others ten minutes."""
    status = int(request.name[3:]) if request.name.startswith("bad") else 0
    return Run(wall=3_600_000 if request.name == "long" else 600_000, status=status)


def centre(**more):
    return Centre(lengths=by_name, pes=4, **more)


def why(site, seq):
    reason = reason_of(site.engine, site.request(seq))
    assert (reason.code, reason.who) == (ReasonCode.DEPENDENCY, "dependency")
    return reason.text


def ends_well(site, seq):
    site.later(minutes=11)


def is_deleted_waiting(site, seq):
    site.ask(cm.Delete((str(seq),)))


def is_killed(site, seq):
    site.later(minutes=1)
    site.ask(cm.Delete((str(seq),), kill=True))
    site.later(minutes=1)


ENDINGS = {
    "ends well": ("anne", ends_well, ("ok", "any", "start")),
    "ends badly": ("anne name=bad3", ends_well, ("any", "fail", "start")),
    "is killed": ("anne", is_killed, ("any", "fail", "start")),
    "is deleted before it ran": ("anne held", is_deleted_waiting, ("any", "fail")),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("word", WORDS)
def test_each_word_is_met_by_the_endings_it_names(word, ending):
    line, happen, met = ENDINGS[ending]
    site = centre()
    [first] = site.submit(line)
    [second] = site.submit(f"ben after={first}:{word}")
    happen(site, first)
    site.is_sound()
    if word in met:
        assert second in site.starts()
    else:
        assert site.state(second) == "held"
        assert "can never come about" in why(site, second)
    site.later(hours=2)
    assert (second in site.starts()) == (word in met)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("word", WORDS)
def test_what_has_ended_already_is_judged_by_its_record_alike(word, ending):
    line, happen, met = ENDINGS[ending]
    site = centre()
    [first] = site.submit(line)
    happen(site, first)
    assert site.state(first) == "ended"
    [second] = site.submit(f"ben after={first}:{word}")
    assert (second in site.starts()) == (word in met)
    assert (site.state(second) == "held") == (word not in met)
    site.is_sound()


def test_while_it_waits_it_is_held_by_the_system_and_says_for_what():
    site = centre()
    first, second = site.submit("anne", "ben name=long")
    [third] = site.submit("anne after=1,2:any")
    assert site.state(third) == "held"
    assert site.request(third).letters == "s"
    assert why(site, third) == (
        f"it waits until {site.id(1)} has ended with exit status 0 and {site.id(2)} has ended"
    )
    site.later(minutes=11)
    assert site.request(third).unmet == (Dependency(2, "any"),)
    assert why(site, third) == f"it waits until {site.id(2)} has ended"
    site.later(hours=1)
    assert site.starts() == [first, second, third]


def test_start_is_met_when_the_hands_have_begun_it_not_before():
    site = centre().qmgr("stop queue batch")
    site.submit("anne", "ben after=1:start")
    assert site.state(2) == "held"
    site.qmgr("start queue batch")
    assert site.starts() == [1, 2]
    site.submit("anne after=1:start")
    assert site.starts() == [1, 2, 3], "it runs already"
    begun = [type(event) for event in site.events(ev.Started, ev.DependencyMet)]
    assert begun[0] is ev.Started


def test_a_chain_of_three_runs_one_after_the_other_and_can_be_walked():
    site = centre()
    site.submit("anne", "anne after=1", "anne after=2", "anne after=3,1:any")
    links = [(link.needed_by, link.seq, link.word) for link in chain(site.engine, 4)]
    assert links == [(4, 3, "ok"), (4, 1, "any"), (3, 2, "ok")]
    site.later(minutes=25)
    assert site.starts() == [1, 2, 3]
    site.later(hours=1)
    assert site.starts() == [1, 2, 3, 4]


def test_a_chain_is_told_up_to_ten_links():
    site = centre()
    site.submit("anne", *(f"anne after={n}" for n in range(1, 15)))
    assert [link.seq for link in chain(site.engine, 15)] == list(range(14, 4, -1))


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ("99", "--after: Unknown Job Id 99."),
        ("2", "--after: Unknown Job Id 2."),
        ("1.elsewhere:ok", "--after: Unknown Job Id 1.elsewhere"),
        ("0", "--after: Unknown Job Id 0."),
        ("1:soon", "--after: '1:soon' is no dependency"),
        (":ok", "--after: ':ok' is no dependency"),
        ("1:", "--after: '1:' is no dependency"),
        ("job:ok", "--after: 'job' is no identifier"),
    ],
)
def test_what_never_existed_or_says_nothing_is_refused(after, said):
    site = centre()
    site.submit("anne")
    wish = cm.Submit((item(f"ben after={after}", site.sim.now),))
    refusal = site.refused(wish, BEN)
    assert str(refusal).startswith(said)
    assert (refusal.code, refusal.status) == ("bad_dependency", 206)


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


def test_a_list_names_only_what_has_an_identifier_already_so_there_is_no_cycle():
    site = centre()
    lines = tuple(
        item(line, site.sim.now, number=n) for n, line in enumerate(("anne after=2", "anne after=1"), 1)
    )
    assert str(site.refused(cm.Submit(lines), ANNE)).startswith("line 1: --after: Unknown Job Id 2.")


def test_the_attributes_keep_what_is_no_dependency_and_each_is_kept_once():
    site = centre()
    site.submit("anne name=long", "ben after=1,1:ok,1:any")
    spec = site.request(2).spec
    assert (spec.after, spec.attributes) == ((Dependency(1), Dependency(1, "any")), ())


def test_an_operator_releases_it_and_its_owner_cannot():
    site = centre()
    site.submit("anne name=long", "ben after=1")
    failed = site.ask(cm.ReleaseRequests(("2",)), BEN)["failed"]
    assert "hold s is not yours to release" in failed[0]["text"]
    assert site.ask(cm.ReleaseRequests(("2",)), OLGA)["failed"] == []
    assert site.starts() == [1, 2]
    site.is_sound()


def test_other_holds_stay_when_the_dependency_is_met():
    site = centre()
    site.submit("anne", "ben after=1 held", "ben after=1")
    site.ask(cm.HoldRequests(("3",), "s"), OLGA)
    assert site.request(2).letters == "su"
    site.later(minutes=11)
    assert [(site.state(seq), site.request(seq).letters) for seq in (2, 3)] == [("held", "u"), ("held", "s")]
    site.ask(cm.ReleaseRequests(("2", "3")), OLGA)
    assert site.starts() == [1, 2, 3]


def test_modify_and_move_leave_it_waiting():
    site = centre().qmgr("create batch_queue other priority=5\nenable queue other\nstart queue other")
    site.submit("anne", "ben after=1")
    site.ask(cm.ModifyRequest(("2",), {"name": "renamed"}), BEN)
    site.ask(cm.MoveRequests(("2",), "other"), BEN)
    site.is_sound()
    assert (site.state(2), site.request(2).queue, site.request(2).unmet) == (
        "held",
        "other",
        (Dependency(1),),
    )
    site.later(minutes=11)
    assert site.starts() == [1, 2]


# ---------------------------------------------------------------- what can never be met


def test_hold_keeps_it_tells_its_owner_and_an_operator_may_let_it_run():
    site = centre()
    site.submit("anne name=bad3", "ben after=1")
    site.later(minutes=11)
    assert why(site, 2) == f"{site.id(1)} ended with exit status 3: what it waits for can never come about"
    [mail] = [notice for notice in site.sim.notices if notice.to == "ben"]
    assert mail.subject == f"nqspy: {site.id(2)} is held"
    assert f"It stays held: {site.id(2)} (STDIN)." in mail.text
    site.ask(cm.ReleaseRequests(("2",), "s"), OLGA)
    assert site.starts() == [1, 2]
    assert site.request(2).never == ""
    site.is_sound()


def test_delete_deletes_the_whole_chain_behind_it():
    site = centre().qmgr("set dependency_failed delete")
    site.submit(
        "anne name=bad3", "ben after=1 mail=abort", "ben after=2", "ben after=2:any", "ben after=2:fail"
    )
    site.later(minutes=11)
    assert [site.state(seq) for seq in (2, 3)] == ["ended", "ended"]
    end = site.end_of(2)
    assert (end.who, end.text) == (
        "dependency",
        f"{site.id(1)} ended with exit status 3; it waited until {site.id(1)} has ended with exit status 0",
    )
    assert [notice.subject for notice in site.sim.notices if notice.to == "ben"] == [
        f"nqspy: {site.id(2)} deleted"
    ]
    assert site.starts() == [1, 4, 5], "any and fail are met by a deletion"
    site.is_sound()


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


@pytest.mark.parametrize(("policy", "state"), [("hold", "held"), ("delete", "ended"), ("run", "running")])
def test_the_policy_holds_for_what_had_failed_before_the_submission_too(policy, state):
    site = centre().qmgr(f"set dependency_failed {policy}")
    site.submit("anne name=bad3")
    site.later(minutes=11)
    answer = site.hand_in("ben after=1,1:fail", by=BEN, key="k")
    assert answer["ids"] == [site.id(2)]
    assert site.state(2) == state
    site.is_sound()


def test_a_lost_prerequisite_that_is_given_up_counts_as_failed():
    site = centre().qmgr("set lost_request fail")
    site.submit("anne", "ben after=1", "ben after=1:fail")
    site.sim.executor.fail()
    site.sim.restart()
    site.sim.run(site.sim.now)
    assert (site.state(1), site.state(2), site.state(3)) == ("ended", "held", "running")
    assert "lost" in why(site, 2)
    site.is_sound()


def test_a_rerun_of_the_prerequisite_is_no_end():
    site = centre()
    site.submit("anne", "ben after=1:any")
    site.later(minutes=5)
    site.ask(cm.RerunRequests(("1",)))
    site.later(minutes=9)
    assert site.state(2) == "held"
    site.later(minutes=3)
    assert site.state(2) == "running"
