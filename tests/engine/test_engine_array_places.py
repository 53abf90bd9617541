"""Arrays among other requests: holds of a part, from when they age, and their place in the line, as if each
index were a request of its own."""

import pytest
from engine.harness import ANNE, PLAIN, ROOT, Centre

from nqspy.model import commands as cm
from nqspy.model import indices
from nqspy.model.arrays import ArrayState
from nqspy.model.errors import Refusal
from nqspy.model.ids import Seq, index_of, member


def _state(centre: Centre, seq: Seq) -> ArrayState:
    state = centre.request(seq).array
    assert state is not None
    return state


def _running(centre: Centre, seq: Seq) -> list[int]:
    return [index_of(each) or 0 for each in centre.site.started if each in centre.site.members.get(seq, ())]


def test_a_range_is_released_of_an_array_that_is_held_as_a_whole() -> None:
    centre = Centre(pes=4)
    (seq,) = centre.submit("anne array=1-9 held")
    centre.ask(cm.HoldRequests(("1[]",), "o"), ROOT)
    answer = centre.ask(cm.ReleaseRequests(("1[3-5]",)), ANNE)
    assert answer["done"] == ["1[3-5].sim"]
    assert _running(centre, seq) == [], "an operator holds them too"
    centre.ask(cm.ReleaseRequests(("1[2-4]",), "uo"), ROOT)
    assert _running(centre, seq) == [2, 3, 4]
    assert {indices.show(each.indices): each.letters for each in _state(centre, seq).held} == {
        "5": "o", "1,6-9": "ou",
    }  # fmt: skip
    centre.is_sound()


def test_an_index_is_let_go_that_waits_with_its_array() -> None:
    centre = Centre(pes=2)
    _, second = centre.submit("ben", "anne array=1-3 after=1:ok")
    assert centre.ask(cm.ReleaseRequests(("2[2]",), "s"), ROOT)["done"] == ["2[2].sim"]
    assert _running(centre, second) == [2]
    assert indices.show(_state(centre, second).left) == "1,3"
    centre.is_sound()


def test_what_was_not_held_keeps_its_date_when_the_rest_is_released() -> None:
    centre = Centre(pes=1)
    centre.submit("ben")
    (seq,) = centre.submit("anne array=1-3")
    date = centre.request(seq).date_in_queue
    centre.ask(cm.HoldRequests(("2[3]",)), ANNE)
    centre.later(minutes=5)
    centre.ask(cm.ReleaseRequests(("2[]",)), ANNE)
    assert centre.request(seq).date_in_queue == date


def test_an_array_of_which_nothing_could_start_gathers_no_age() -> None:
    """While its indices await those of another array, or all of them are held one by one."""
    centre = Centre(pes=1)
    centre.submit("anne array=1-2")
    _, awaits = centre.submit("anne", "anne array=1-2 after=1[]:each")
    held = centre.submit("ben array=1-2", "anne")[0]
    centre.ask(cm.HoldRequests(("4[1]",)), ROOT)
    centre.ask(cm.HoldRequests(("4[2]",)), ROOT)
    centre.later(minutes=1)
    centre.ask(cm.ReleaseRequests(("4[1]",)), ROOT)
    assert centre.request(held).date_in_queue == centre.sim.now
    centre.later(hours=3)
    centre.is_sound()
    assert [centre.id(each) for each in centre.starts()] == [
        "1[1].sim", "1[2].sim", "2.sim", "5.sim", "4[1].sim", "3[1].sim", "3[2].sim",
    ]  # fmt: skip
    assert awaits not in centre.site.requests


def test_all_indices_of_an_array_that_is_put_ahead_go_ahead() -> None:
    site = PLAIN + "create batch_queue fast priority=20 user_limit=1\nenable queue fast\nstart queue fast\n"
    centre = Centre(site, pes=3)
    centre.submit("ben pes=3", "anne array=1-3", "carl queue=fast", "dora queue=fast")
    centre.qmgr("schedule request 2[] next")
    centre.later(minutes=10)
    assert [centre.id(each) for each in centre.starts()[1:]] == ["2[1].sim", "2[2].sim", "2[3].sim"]


# ---------------------------------------------------------------- queues that are full

PIPE = (
    PLAIN
    + """
create batch_queue small priority=5
enable queue small
start queue small
create pipe_queue pipe destination=(small, batch)
enable queue pipe
"""
)


@pytest.mark.parametrize("limit", ["queued_limit=5", "user_queued_limit=5", "run_limit=5 loadonly=on"])
def test_an_array_is_routed_to_where_there_is_room_for_its_indices(limit: str) -> None:
    centre = Centre(PIPE + f"set queue small {limit}\n", pes=1)
    waits, small = centre.submit("anne array=1-6 queue=pipe", "anne array=1-3 queue=pipe")
    centre.qmgr("start queue pipe")
    at_once, other = centre.submit("anne array=1-6 queue=pipe", "anne array=1-3 queue=pipe")
    found = [centre.request(seq).queue for seq in (waits, small, at_once, other)]
    assert found == ["batch", "small", "batch", "batch"]
    with pytest.raises(Refusal, match=r"this array counts 6|there are 3 requests|anne has 3 requests"):
        centre.submit("anne array=1-6 queue=small")
    centre.submit("anne array=1-2 queue=small")
    assert centre.site.count("small") == 5


@pytest.mark.parametrize("passing", ["set queue small queued_limit=5", "disable queue small"])
@pytest.mark.parametrize("never", ["queued_limit user=3", "run_limit=3 loadonly=on"])
def test_an_array_that_never_has_room_is_refused_whatever_else_keeps_it_now(never: str, passing: str) -> None:
    centre = Centre(f"{PIPE}set queue small {never}\nset destination=(small) pipe\nstart queue pipe\n")
    centre.submit("anne array=1-2 queue=small")
    centre.qmgr(passing)
    with pytest.raises(Refusal, match="this array counts 4"):
        centre.submit("anne array=1-4 queue=pipe")


def test_a_queue_whose_requests_are_moved_takes_no_index_along_that_waits_elsewhere() -> None:
    site = (
        PLAIN + "create batch_queue other\nenable queue other\ncreate batch_queue third\nenable queue third\n"
    )
    centre = Centre(site)
    centre.qmgr("stop queue batch")
    (seq,) = centre.submit("anne array=1-5")
    centre.ask(cm.MoveRequests(("1[4]",), "other"), ANNE)
    centre.qmgr("move queue batch third")
    assert centre.request(seq).queue == "third"
    assert centre.request(member(seq, 4)).queue == "other"


def test_who_owns_an_array_is_told_that_somebody_deleted_of_it() -> None:
    centre = Centre()
    centre.qmgr("stop queue batch")
    centre.submit("anne array=1-5 mail=abort", "anne array=1-5", "anne array=7-8 mail=abort")
    centre.ask(cm.Delete(("1[3-4]", "2[3-4]")), ROOT)
    centre.ask(cm.Delete(("1[5]",)), ANNE)
    centre.ask(cm.Delete(("1[]",)), ROOT)
    centre.qmgr("purge queue batch")
    assert [each.subject for each in centre.sim.notices] == [
        "nqspy: 1[3-4].sim deleted", "nqspy: 1[].sim deleted", "nqspy: 3[].sim deleted",
    ]  # fmt: skip
