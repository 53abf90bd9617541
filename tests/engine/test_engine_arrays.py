"""Arrays of requests: one submission, one row, one event; an index becomes a request when it starts."""

import pytest
from engine.harness import ANNE, BEN, PLAIN, ROOT, Centre, item
from msgspec.structs import replace

from nqspy.engine.explain import reasons_of
from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import indices
from nqspy.model.errors import Refusal
from nqspy.model.ids import Seq, index_of, member, number_of
from nqspy.model.people import Caller
from nqspy.model.reasons import ReasonCode
from nqspy.model.requests import Output, Request, State


def _array(centre: Centre, seq: Seq) -> Request:
    return centre.site.requests[seq]


def _left(centre: Centre, seq: Seq) -> str:
    state = _array(centre, seq).array
    assert state is not None
    return indices.show(state.left)


def _running(centre: Centre, seq: Seq) -> list[int]:
    return [index_of(each) or 0 for each in centre.site.started if each in centre.site.members.get(seq, ())]


def _lengths(failing: set[int], seconds: int = 600):  # type: ignore[no-untyped-def]
    """Indices of that many seconds, some of which end with status 3 (the virtual executor knows none: they
    are given a signal's end by the test)."""
    return lambda request: Run(wall=seconds * 1000)


# ---------------------------------------------------------------- the way of an array


def test_an_array_is_one_row_and_its_indices_start_one_by_one() -> None:
    centre = Centre(pes=3)
    (seq,) = centre.submit("anne name=sweep array=1-10")
    assert centre.id(seq) == "1[].sim"
    assert len(centre.events(ev.Submitted)) == 1
    assert [centre.id(each) for each in centre.starts()] == ["1[1].sim", "1[2].sim", "1[3].sim"]
    assert len(centre.site.waiting["batch"]) == 1
    assert _left(centre, seq) == "4-10"
    assert _array(centre, seq).shown_state is State.RUNNING
    centre.is_sound()
    centre.later(hours=1)
    assert centre.site.requests == {}
    assert [index_of(each) for each in centre.starts()] == list(range(1, 11))
    end = centre.end_of(seq)
    assert (end.end_reason, end.exit_status, end.attempt) == ("exit", 0, 0)
    assert end.used.cpu == 10 * 600_000
    centre.is_sound()


def test_indices_count_as_requests_for_limits_and_counts() -> None:
    centre = Centre(PLAIN + "set queue batch queued_limit=10 user=8\nset queue batch user_limit=2\n", pes=8)
    (seq,) = centre.submit("anne array=1-6")
    assert _running(centre, seq) == [1, 2]
    assert centre.site.tally.total == 6
    assert centre.site.tally.owners == {"anne": 6}
    refusal = centre.refused(cm.Submit((item("anne array=1-3", centre.sim.now),)), ANNE)
    assert refusal.code == "queued_limit"
    assert "anne has 6 requests" in str(refusal)
    centre.submit("anne array=1-2")
    assert centre.refused(cm.Submit((item("ben array=5-7", centre.sim.now),)), BEN).code == "queued_limit"
    centre.is_sound()


def test_a_limit_of_its_own_keeps_most_indices_back() -> None:
    centre = Centre(pes=8)
    (seq,) = centre.submit("anne array=1-9%2")
    (other,) = centre.submit("ben")
    assert _running(centre, seq) == [1, 2]
    assert centre.state(other) == "running"
    reason = centre.engine.plan.reasons.own[seq]
    assert (reason.code.value, reason.text) == (
        "LIMIT",
        "2 of its indices run, as many as 1[].sim may have at a time",
    )
    centre.later(minutes=10)
    assert _running(centre, seq) == [3, 4]
    centre.later(hours=2)
    assert centre.site.requests == {}


def test_the_limit_of_an_array_can_be_changed_and_taken_back() -> None:
    centre = Centre(pes=8)
    (seq,) = centre.submit("anne array=1-20%2")
    (lone,) = centre.submit("ben")

    def limit(value: object, id: str = "1[]") -> None:
        centre.ask(cm.ModifyRequest((id,), {"array/limit": value}), ANNE)

    limit(4)
    assert _running(centre, seq) == [1, 2, 3, 4]
    assert len(centre.events(ev.Modified)) == 1
    limit(1)
    assert _running(centre, seq) == [1, 2, 3, 4]  # who runs stays
    centre.ask(cm.RerunRequests(("1[2-4]",)), ANNE)
    centre.later(minutes=1)
    assert _running(centre, seq) == [1]  # indices that wait as requests of their own have the new limit, too
    centre.is_sound()
    limit(0)
    assert len(_running(centre, seq)) == 7
    assert seq not in centre.site.limited
    limit(3)
    limit(None)
    for value, id in ((-1, "1[]"), ("x", "1[]"), (3, "1[1]"), (3, str(lone))):
        answer = centre.ask(cm.ModifyRequest((id,), {"array/limit": value}), ROOT)
        assert answer["failed"]
    centre.is_sound()


def test_other_requests_take_their_turn_between_indices() -> None:
    centre = Centre(pes=1, length=60)
    centre.submit("anne array=1-3")
    (first,) = centre.submit("ben")
    centre.qmgr(f"schedule request {first} first")
    centre.later(minutes=10)
    assert [centre.id(each) for each in centre.starts()] == ["1[1].sim", "2.sim", "1[2].sim", "1[3].sim"]


# ---------------------------------------------------------------- parts of it


def test_a_range_is_held_and_released_in_one_event() -> None:
    centre = Centre(pes=1)
    (seq,) = centre.submit("anne array=1-1000")
    answer = centre.ask(cm.HoldRequests(("1[3-9,20-30:5]",)), ANNE)
    assert answer == {"done": ["1[3-9,20-30:5].sim"], "failed": []}
    (held,) = centre.events(ev.Held)
    assert held.indices == ((3, 9, 1), (20, 30, 5))
    assert _array(centre, seq).array is not None
    assert _array(centre, seq).multiplicity == 999 - 10
    centre.later(hours=1)
    assert [index_of(each) for each in centre.starts()][:4] == [1, 2, 10, 11]
    centre.ask(cm.ReleaseRequests(("1[5]",)), ANNE)
    centre.is_sound()
    centre.later(minutes=10)
    assert index_of(centre.starts()[-1]) == 5
    centre.ask(cm.ReleaseRequests(("1",)), ANNE)
    assert _array(centre, seq).array.held == ()  # type: ignore[union-attr]
    centre.is_sound()


def test_the_whole_is_held_and_what_runs_goes_on() -> None:
    centre = Centre(pes=2)
    (seq,) = centre.submit("anne array=1-5")
    centre.ask(cm.HoldRequests(("1[]",)), ANNE)
    centre.later(hours=1)
    assert _left(centre, seq) == "3-5"
    assert centre.site.started == {}
    assert _array(centre, seq).shown_state is State.RUNNING
    centre.ask(cm.ReleaseRequests(("1[]",)), ANNE)
    centre.later(hours=1)
    assert centre.site.requests == {}


def test_indices_are_deleted_in_part_and_the_rest_goes_on() -> None:
    centre = Centre(pes=2)
    (seq,) = centre.submit("anne array=1-6")
    centre.ask(cm.Delete(("1[5-6]", "1[2]"), force=True), ANNE)
    assert _left(centre, seq) == "4"
    centre.later(hours=1)
    assert [index_of(each) for each in centre.starts()] == [1, 2, 3, 4]
    end = centre.end_of(seq)
    assert (end.end_reason, end.exit_status) == ("exit", 143)
    assert end.text == "of its indices 3 ended well, 1 failed, 2 were deleted"
    centre.is_sound()


def test_an_array_is_deleted_whole_before_and_after_it_began() -> None:
    centre = Centre(pes=1)
    first, second = centre.submit("anne array=1-4", "anne array=1-4")
    centre.ask(cm.Delete(("1[]", "2"), force=True), ANNE)
    assert isinstance(centre.end_of(second), ev.Deleted)
    assert not centre.end_of(second).indices
    centre.later(seconds=20)
    assert isinstance(centre.end_of(first), ev.Deleted | ev.Ended)
    assert centre.site.requests == {}
    assert centre.site.tally.total == 0
    centre.is_sound()


def test_indices_that_go_their_own_way_become_requests() -> None:
    centre = Centre(PLAIN + "create batch_queue other priority=5\nenable queue other\n", pes=1)
    (seq,) = centre.submit("anne array=1-6")
    centre.ask(cm.MoveRequests(("1[4-5]",), "other"), ANNE)
    moved = [member(seq, 4), member(seq, 5)]
    assert [centre.request(each).queue for each in moved] == ["other", "other"]
    assert _left(centre, seq) == "2-3,6"
    centre.ask(cm.ModifyRequest(("1[6]",), {"ask/pes": 1, "name": "last"}), ANNE)
    assert centre.request(member(seq, 6)).name == "last"
    centre.is_sound()
    centre.qmgr("start queue other")
    centre.later(hours=2)
    assert sorted(index_of(each) or 0 for each in centre.starts()) == [1, 2, 3, 4, 5, 6]
    assert centre.end_of(seq).exit_status == 0


@pytest.mark.parametrize(
    ("command", "by"),
    [
        (cm.RerunRequests(("1[4-5]",)), BEN),
        (cm.RerunRequests(("1[1-5]",)), ANNE),
        (cm.SuspendRequests(("1[1-5]",)), ROOT),
        (cm.MoveRequests(("1[4-5]",), "batch"), ANNE),
        (cm.ModifyRequest(("1[3-5]",), {"ask/pes": 9}), ANNE),
        (cm.ModifyRequest(("1[3-5]",), {"name": "mine"}), BEN),
    ],
)
def test_what_is_not_done_to_indices_leaves_them_in_their_array(command: cm.Command, by: Caller) -> None:
    """Whoever may do nothing to an array may not make a thousand requests of it either."""
    centre = Centre(pes=2)
    (seq,) = centre.submit("anne array=1-6")
    centre.ask(command, by)
    assert _left(centre, seq) == "3-6"
    assert len(centre.site.requests) == 3
    centre.is_sound()


def test_indices_start_in_ascending_order_also_those_that_are_requests_of_their_own() -> None:
    centre = Centre(pes=2)
    centre.submit("ben pes=2", "anne array=1-6")
    centre.ask(cm.ModifyRequest(("2[2,5]",), {"name": "mine"}), ANNE)
    centre.is_sound()
    centre.later(hours=2)
    assert [index_of(each) for each in centre.starts()[1:]] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1[7]", "Unknown Job Id 1[].sim: it has no index 7, only 1-3"),
        ("1[2-9]", "it has no index 4-9"),
        ("1[x]", "illegally formed job identifier: 'x' is no index"),
        ("1[²]", "illegally formed job identifier: '²' is no index"),
        ("1[٣]", "illegally formed job identifier: '٣' is no index"),
        (f"1[{'9' * 5000}]", "illegally formed job identifier"),
        ("1[3", "illegally formed job identifier"),
        ("9[]", "Unknown Job Id 9[].sim"),
    ],
)
def test_what_an_array_has_not_is_refused(text: str, said: str) -> None:
    centre = Centre(pes=1)
    centre.submit("anne array=1-3")
    answer = centre.ask(cm.HoldRequests((text,)), ANNE)
    assert answer["done"] == []
    assert said in answer["failed"][0]["text"]


@pytest.mark.parametrize("given", ["array=1-3%0"])
def test_an_array_that_makes_no_sense_is_refused(given: str) -> None:
    refusal = Centre().refused(cm.Submit((item(f"anne {given}", 0),)), ANNE)  # type: ignore[arg-type]
    assert refusal.code == "bad_array"


# ---------------------------------------------------------------- dependencies


def test_what_waits_for_the_whole_waits_for_the_last_index() -> None:
    centre = Centre(pes=4)
    (seq,) = centre.submit("anne array=1-6")
    well, begun, failed = centre.submit("anne after=1[]:ok", "anne after=1:start", "anne after=1[]:fail")
    assert centre.state(begun) == "queued"
    centre.later(minutes=15)
    assert centre.state(well) == "held"
    centre.later(minutes=10)
    assert seq not in centre.site.requests
    assert centre.state(well) == "running"
    assert centre.request(failed).never
    centre.is_sound()


@pytest.mark.parametrize("late", [False, True])
def test_an_array_of_which_an_index_was_deleted_has_not_ended_well(late: bool) -> None:
    """Every index is to end with 0; so it is for those that wait for requests one by one."""
    centre = Centre(pes=1)
    (seq,) = centre.submit("anne array=1-3")
    after = "anne after=1[]:ok", "anne after=1[]:fail", "anne after=1[]"
    waiting = [] if late else centre.submit(*after)
    centre.ask(cm.Delete(("1[3]",)), ANNE)
    centre.later(minutes=20)
    assert centre.end_of(seq).exit_status == 3
    well, failed, also = waiting or centre.submit(*after)
    assert (
        centre.request(well).never == "1[].sim ended without index 3, deleted before it began: "
        "what it waits for can never come about"
    )
    assert (centre.state(failed), centre.state(also)) == ("running", "held")


@pytest.mark.parametrize(("status", "whole"), [(0, 3), (1, 3), (2, 3), (7, 7)])
def test_an_index_deleted_before_it_began_counts_among_the_statuses(status: int, whole: int) -> None:
    centre = Centre(pes=1, lengths=lambda request: Run(wall=60_000, status=status))
    (seq,) = centre.submit("anne array=1-3")
    centre.ask(cm.Delete(("1[3]",)), ANNE)
    centre.later(minutes=20)
    assert centre.end_of(seq).exit_status == whole


def test_each_index_waits_for_its_own() -> None:
    """Index 1 of the second step may run while index 6 of the first has not begun."""
    centre = Centre(pes=2)
    _, second = centre.submit("anne array=1-6", "anne array=1-6 after=1[]:each")
    assert _array(centre, second).shown_state is State.HELD
    centre.later(minutes=10)
    assert [centre.id(each) for each in centre.starts()] == ["1[1].sim", "1[2].sim", "1[3].sim", "1[4].sim"]
    assert _array(centre, second).multiplicity == 2
    centre.qmgr(f"schedule request {centre.id(second)} first")
    centre.later(minutes=10)
    assert [centre.id(each) for each in centre.starts()][4:] == ["2[1].sim", "2[2].sim"]
    centre.is_sound()
    centre.later(hours=3)
    assert centre.site.requests == {}
    assert len(centre.starts()) == 12


def test_an_index_whose_own_one_failed_is_held_and_the_others_run() -> None:
    centre = Centre(pes=6)
    _, second = centre.submit("anne array=1-4", "anne array=1-4 after=1[]:each")
    centre.ask(cm.Delete(("1[2]",), force=True), ANNE)
    centre.later(hours=1)
    assert [centre.id(each) for each in centre.starts()][4:] == ["2[1].sim", "2[3].sim", "2[4].sim"]
    state = _array(centre, second).array
    assert state is not None
    assert (indices.show(state.left), state.held[0].letters) == ("2", "s")
    assert "can never come about" in state.held[0].never
    assert reasons_of(centre.engine, [second])[second].code is ReasonCode.DEPENDENCY
    centre.is_sound()
    centre.ask(cm.ReleaseRequests(("2[2]",), "s"), ROOT)
    centre.later(hours=1)
    assert centre.site.requests == {}


@pytest.mark.parametrize("policy", ["delete", "run"])
def test_the_site_says_what_becomes_of_an_index_without_its_own(policy: str) -> None:
    centre = Centre(PLAIN + f"set dependency_failed {policy}\n", pes=6)
    _, second = centre.submit("anne array=1-4", "anne array=1-4 after=1[]:each")
    centre.ask(cm.Delete(("1[2]",), force=True), ANNE)
    centre.later(hours=1)
    assert second not in centre.site.requests
    begun = [index_of(each) for each in centre.starts() if number_of(each) == 2]
    assert sorted(begun) == ([1, 3, 4] if policy == "delete" else [1, 2, 3, 4])
    centre.is_sound()


def test_an_array_that_ended_already_is_judged_index_by_index() -> None:
    centre = Centre(pes=4)
    centre.submit("anne array=1-3")
    centre.ask(cm.Delete(("1[3]",), force=True), ANNE)
    centre.later(hours=1)
    (second,) = centre.submit("anne array=1-3 after=1:each")
    assert _running(centre, second) == [1, 2]
    assert _left(centre, second) == "3"
    centre.is_sound()


def test_one_index_of_an_array_can_be_waited_for() -> None:
    centre = Centre(pes=1)
    centre.submit("anne array=1-3")
    (late,) = centre.submit("anne after=1[2]:ok")
    centre.qmgr(f"schedule request {late} first")
    centre.later(minutes=15)
    assert centre.state(late) == "held"
    centre.later(minutes=10)
    assert centre.state(late) == "running"


_GONE = {
    "held whole": ("held array=1-3", ("1[]",)),
    "whole, after an index began": ("array=1-3", ("1[]",)),
    "the index alone": ("held array=1-3", ("1[3]",)),
    "a part": ("held array=1-3", ("1[2-3]",)),
    "index by index": ("held array=1-3", ("1[1]", "1[2]", "1[3]")),
    "a part, then the rest": ("held array=1-3", ("1[1]", "1[]")),
    "with its queue": ("held array=1-3", ()),
}


@pytest.mark.parametrize("policy", ["hold", "delete", "run"])
@pytest.mark.parametrize(("array", "gone"), _GONE.values(), ids=_GONE)
def test_dependants_of_an_index_learn_that_its_array_was_deleted(
    array: str, gone: tuple[str, ...], policy: str
) -> None:
    centre = Centre(f"{PLAIN}create batch_queue q2\nenable queue q2\nset dependency_failed {policy}", pes=1)
    centre.submit(f"anne {array}")
    words = ("any", "fail", "ok", "start")
    lines = (f"anne queue=q2 after=1[3]:{word}" for word in words)
    met_any, met_fail, failed_ok, failed_start = centre.submit(*lines)
    if gone:
        centre.ask(cm.Delete(gone), ANNE)
    else:
        centre.qmgr("purge queue batch")
    assert [centre.state(each) for each in (met_any, met_fail)] == ["queued", "queued"]
    other = {"hold": "held", "delete": "ended", "run": "queued"}[policy]
    assert [centre.state(each) for each in (failed_ok, failed_start)] == [other, other]
    if policy == "hold":
        assert all(centre.request(each).never for each in (failed_ok, failed_start))
    centre.is_sound()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("anne array=1-4 after=1:each", "it has the indices 1-3, this array 1-4; they must be equal"),
        ("anne after=1:each", "only an array can wait for an array"),
        ("anne array=1-3 after=2:each", "only an array can wait for an array"),
        ("anne after=1[9]", "Unknown Job Id 1[9].sim"),
    ],
)
def test_indices_that_have_no_fellows_are_refused(line: str, said: str) -> None:
    centre = Centre(pes=1)
    centre.submit("anne array=1-3", "anne")
    with pytest.raises(Refusal, match=said.replace("[", r"\[")):
        centre.ask(cm.Submit((item(line, centre.sim.now),)), ANNE)


# ---------------------------------------------------------------- crashes


@pytest.mark.parametrize(
    ("way", "path", "warned"), [("number", "/o", 0), ("overwrite", "/o", 1), ("overwrite", "/o.%a", 0)]
)
def test_indices_that_overwrite_one_file_are_warned_of(way: str, path: str, warned: int) -> None:
    centre = Centre(pes=1)
    centre.qmgr(f"set output_clash {way}")
    wish = item("anne array=1-3", centre.sim.now)
    wish = replace(wish, spec=replace(wish.spec, output=Output(stdout=path)))
    answer = centre.ask(cm.Submit((wish,)), by=ANNE)
    assert len(answer.get("warnings", ())) == warned
