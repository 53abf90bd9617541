"""Queues in which nobody passes who waits, and requests that can never start beside promises."""

import pytest
from core.harness import promised

from nqspy.model.ids import Seq, member
from nqspy.model.reasons import ReasonCode


@pytest.fixture
def strict(house):
    """Six PEs, held for ten minutes; queue night serves the shortest first, and nobody passes who waits."""
    house.machine(pes=6).queue("night", order="sjf", backfill="none", reserve=2)
    house.run("anne pes=6 wall=10:00")
    return house


def test_who_comes_in_front_of_a_promise_later_does_not_keep_it_from_its_start(strict):
    (long,) = strict.run("ben pes=6 wall=5:00")
    (shorter,) = strict.run("cleo pes=6 wall=1:00")
    assert (promised(strict, long), promised(strict, shorter)) == (10, None)
    strict.later(minutes=10).end(Seq(1))
    assert strict.go().starts == [long]


def test_nobody_passes_a_promise_that_waits_for_its_time(strict):
    strict.end(Seq(1)).run("anne pes=4 wall=10:00")
    strict.run("ben pes=6 wall=5:00")
    (narrow,) = strict.submit("cleo pes=1 wall=1:00")
    told = strict.go()
    assert told.starts == []
    assert told.reason(narrow).code is not None


def test_who_was_put_first_waits_for_the_room_of_a_promise_and_does_not_bar_it(strict):
    (long,) = strict.run("ben pes=6 wall=5:00")
    (urgent,) = strict.submit("cleo pes=6 wall=1:00")
    strict.schedule(urgent, "next").go()
    strict.later(minutes=10).end(Seq(1))
    assert strict.go().starts == [long]
    assert strict.why(urgent).code is ReasonCode.NO_PES


def test_whom_a_limit_of_his_own_keeps_back_beside_one_of_all_lets_others_pass(house):
    house.machine(pes=8).limit(user_limit=1)
    house.queue("night", order="fcfs", backfill="none", reserve=None, pe_limit=6)
    house.run("anne pes=4 wall=10:00")
    second, other = house.submit("anne pes=3 wall=1:00", "ben pes=2 wall=20:00")
    assert house.go().starts == [other]
    assert promised(house, second) == 10


@pytest.mark.parametrize(
    ("path", "value", "asked"),
    [
        ("queue/night/pe_limit", 6, ""), ("global/pe_limit", 6, ""),
        ("queue/night/memory_limit", 1 << 20, " mem=20mb"), ("queue/night/run_limit", 0, ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("settings", [{"reserve": 1}, {"reserve": None}, {"backfill": "none", "reserve": 1}])
def test_who_can_never_start_keeps_nobody_back(house, path, value, asked, settings):
    house.machine(pes=12).queue("night", order="fcfs", **settings).queue("other", priority=5)
    (wide,) = house.set(path, value).submit(f"anne pes=12 wall=10:00{asked}", queue="night")
    behind = house.submit("ben pes=1 wall=1:00", queue="night" if value else "other")
    (other,) = house.submit("ben pes=1 wall=1:00", queue="other")
    assert set(house.go().starts) == {*behind, other}
    assert house.request(wide).reservation is None
    assert house.why(wide).code is (ReasonCode.NEVER if value else ReasonCode.LIMIT)


@pytest.mark.parametrize("most", [1, 3])
def test_only_the_request_that_blocks_its_queue_gets_a_reservation(house, most):
    house.machine(pes=6).queue("night", order="fcfs", backfill="none", reserve=most)
    house.run("anne pes=4 wall=10:00")
    behind = house.submit("ben pes=6 wall=5:00", "cleo pes=6 wall=1:00", "dora pes=1 wall=1:00")
    for _ in range(3):
        assert house.go().starts == []
    assert [promised(house, seq) for seq in behind] == [10, None, None]
    house.later(minutes=10).end(Seq(1))
    assert house.go().starts == behind[:1]
    assert [promised(house, seq) for seq in behind[1:]] == [15, None]


@pytest.mark.parametrize(("most", "second"), [(1, None), (2, 15)])
def test_a_request_put_in_front_gets_a_reservation_if_one_more_may_have_one(house, most, second):
    house.machine(pes=6).queue("night", order="fcfs", backfill="none", reserve=most)
    house.run("anne pes=6 wall=10:00")
    first, urgent = house.run("ben pes=6 wall=5:00", "cleo pes=6 wall=1:00")
    house.schedule(urgent, "next").go()
    assert [promised(house, seq) for seq in (first, urgent)] == [10, second]
    house.later(minutes=10).end(Seq(1))
    assert house.go().starts == [first], "its time has come, though the urgent one blocks the queue"
    assert house.why(urgent).code is ReasonCode.NO_PES


@pytest.mark.parametrize(("most", "second"), [(1, None), (2, 15)])
def test_the_next_one_blocks_once_a_limit_of_its_owner_holds_the_first(house, most, second):
    house.machine(pes=6).queue("other", priority=9)
    house.queue("night", order="fcfs", backfill="none", reserve=most)
    house.run("anne pes=3 wall=10:00", queue="other")
    waiting = house.run("ben pes=6 wall=5:00", "cleo pes=5 wall=1:00", "eve pes=1 wall=1:00", queue="night")
    assert [promised(house, seq) for seq in waiting] == [10, None, None]
    (bens,) = house.limit(user_limit=1).submit("ben pes=1 wall=1:00", queue="other")
    assert house.go().starts == [bens]
    assert [promised(house, seq) for seq in waiting] == [10, second, None]


@pytest.mark.parametrize(("most", "started"), [(0, ["long", "short"]), (1, ["short"])])
def test_a_blocked_queue_does_not_block_others_beyond_its_reservations(house, most, started):
    house.machine(pes=6).queue("other").queue("night", priority=9, backfill="none", reserve=most)
    house.run("anne pes=4 wall=10:00", queue="night")
    house.submit("ben pes=6 wall=5:00", queue="night")
    long, short = house.submit("eve wall=1:00:00", "eve wall=10:00", queue="other")
    names = {long: "long", short: "short"}
    assert [names[seq] for seq in house.go().starts] == started


def test_the_next_index_of_an_array_does_not_pass_the_blocker_by_the_reservation_of_the_former(house):
    house.machine(pes=4).queue("night", backfill="none", reserve=1, time=1)
    (running,) = house.run("anne pes=4 wall=10:00")
    array = house.array("ben pes=2 wall=20:00", 2)
    house.go()
    assert promised(house, array) == 10
    (first,) = house.submit("cleo pes=4 wall=5:00")
    house.schedule(first, "first").at(600).end(running)
    assert house.go().starts == [member(array, 1)]
    assert promised(house, first) == 30


def test_a_request_that_blocks_by_a_limit_of_all_stands_before_those_it_blocks(house):
    house.machine(pes=6).queue("night", order="fcfs", backfill="none", pe_limit=5)
    house.run("anne pes=4 wall=10:00")
    blocker, behind = house.submit("ben pes=2 wall=1:00", "cleo pes=1 wall=1:00")
    assert house.go().starts == []
    assert house.site.id_of(blocker) in house.why(behind).text
    assert house.standing("night").line() == [blocker, behind]


def test_a_request_with_a_reservation_stands_before_a_shorter_one_that_it_blocks(strict):
    (long,) = strict.run("ben pes=6 wall=5:00")
    (shorter,) = strict.run("cleo pes=6 wall=1:00")
    assert strict.standing("night").line() == [long, shorter]
    strict.schedule(shorter, "next")
    assert strict.standing("night").line() == [shorter, long]


def test_the_reason_behind_a_blocker_with_a_reservation_is_the_blocker(house):
    house.machine(pes=6).queue("night", order="fcfs", backfill="none", reserve=1)
    house.run("anne pes=5 wall=10:00")
    (blocker,) = house.run("ben pes=6 wall=5:00")
    (narrow,) = house.run("cleo pes=1 wall=1:00:00")
    assert house.why(narrow).kind == "in_line"
    assert house.site.id_of(blocker) in house.why(narrow).text
