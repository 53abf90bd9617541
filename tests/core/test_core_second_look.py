"""A promised start that comes before its time leaves something to those whom it kept back: who stands before
it, in a queue that was served already, has his turn again, and nobody behind goes before him."""

import pytest
from core.harness import House, promised

from nqspy.model import events as ev
from nqspy.model.reasons import ReasonCode


@pytest.fixture
def two(house) -> House:
    """Six PEs, a GPU, a licence, and a queue in front of one in which everybody is promised a start."""
    for name in ("gpu", "matlab"):
        house.change(ev.Change("create", f"consumable/{name}", {"units": ("0",)}))
    house.machine(pes=6).queue("front", priority=1, order="fcfs")
    return house.queue("behind", order="fcfs", reserve=None)


def waits(house: House, running: str, *waiting: str) -> list[int]:
    """Starts one, and has others wait behind it."""
    house.run(running)
    seqs = house.submit(*waiting)
    assert house.go().starts == []
    return seqs


def after_a_minute(house: House, *ended: int) -> None:
    house.later(minutes=1)
    for seq in ended:
        house.end(seq)


def test_who_stands_in_front_starts_before_the_second_that_could_come_early(two):
    first, second = waits(two, "anne pes=5 wall=5:00", "anne pes=2 wall=3:00", "anne pes=4 wall=1:00")
    assert [promised(two, seq) for seq in (first, second)] == [5, 5]
    after_a_minute(two, 1)
    (narrow,) = two.submit("ben wall=5:00", queue="front")
    assert two.go().starts == [first, narrow], "beside both it would have held what is kept for the second"
    assert promised(two, second) == 4, "it comes no later for that, and earlier than it was told"


def test_nobody_is_left_beside_free_pes_until_something_else_ends(two):
    waits(two, "anne pes=1 gpu=1 wall=5:00")
    first, second = waits(two, "anne pes=5 wall=5:00", "anne pes=2 wall=3:00", "anne pes=4 gpu=1 wall=1:00")
    after_a_minute(two, 2)
    (narrow,) = two.submit("ben wall=5:00", queue="front")
    assert two.go().starts == [first, narrow]
    assert promised(two, second) == 5


def test_so_does_one_in_front_who_has_a_promise_himself(two):
    two.set("queue/front/reserve", None)
    waits(two, "anne gpu=1 wall=20:00")
    first, second = waits(two, "anne pes=4 wall=5:00", "anne pes=2 wall=3:00", "anne pes=3 wall=1:00")
    (third,) = two.run("ben pes=2 gpu=1 wall=5:00", queue="front")
    assert [promised(two, seq) for seq in (first, second, third)] == [5, 5, 20]
    after_a_minute(two, 1, 2)
    assert two.go().starts == [first, third]
    assert promised(two, second) == 4


def test_a_promise_that_only_moves_leaves_something_too(two):
    two.run("anne pes=3 wall=4:00", "anne gpu=1 wall=9:00", "anne matlab=1 wall=9:00")
    moves, stays = two.run("anne pes=3 gpu=1 wall=2:00", "anne pes=2 matlab=1 wall=2:00")
    (long,) = two.submit("ben pes=2 wall=20:00", queue="front")
    assert two.go().starts == []
    assert [promised(two, seq) for seq in (moves, stays)] == [9, 9]
    after_a_minute(two, 2)
    assert two.go().starts == [long]
    assert [promised(two, seq) for seq in (moves, stays)] == [4, 9]


def test_who_stands_behind_one_that_it_leaves_nothing_has_his_turn_all_the_same(two):
    two.run("anne pes=3 wall=4:00", "anne gpu=1 wall=9:00", "anne matlab=1 wall=9:00")
    two.run("anne pes=3 gpu=1 wall=2:00", "anne pes=2 matlab=1 wall=2:00")
    drawing, long = two.submit("ben pes=2 gpu=1 wall=20:00", "ben pes=2 wall=20:00", queue="front")
    assert two.go().starts == []
    after_a_minute(two, 2)
    assert two.go().starts == [long]
    assert two.why(drawing).code is ReasonCode.NO_PES, "the unit was kept for the one that moved"


def test_one_that_lets_nobody_pass_lets_others_pass_once_it_starts(two):
    two.set("queue/front/backfill", "none")
    first, second = waits(two, "anne pes=5 wall=5:00", "anne pes=2 wall=3:00", "anne pes=4 wall=1:00")
    after_a_minute(two, 1)
    bars, behind, last = two.submit("ben wall=5:00", "ben wall=1:00", "ben pes=4", queue="front")
    assert two.go().starts == [first, bars, behind]
    assert {two.why(seq).code for seq in (second, last)} == {ReasonCode.NO_PES}


def test_where_exits_are_asked_the_next_pass_comes_at_once(two):
    waits(two, "anne pes=1 gpu=1 wall=5:00")
    first, _ = waits(two, "anne pes=5 wall=5:00", "anne pes=2 wall=3:00", "anne pes=4 gpu=1 wall=1:00")
    after_a_minute(two, 2)
    two.exits(jobselect=lambda request, view: None)
    (narrow,) = two.submit("ben wall=5:00", queue="front")
    assert two.go().starts == [first]
    assert two.plan.wake_at == two.now + 1
    two.later(ms=1)
    assert two.go().starts == [narrow]


def test_in_a_queue_promises_are_gone_through_once_in_its_order(two):
    two.run("anne gpu=1 wall=12:00", "anne pes=3 wall=5:00", "anne pes=2 wall=5:00")
    long, wide, short = two.run("anne pes=2 gpu=1 wall=7:00", "anne pes=4 wall=3:00", "anne wall=2:00")
    assert [promised(two, seq) for seq in (long, wide, short)] == [12, 5, 5]
    after_a_minute(two, 1, 3)
    assert two.go().starts == [short], "conservative backfilling: one sweep, all other promises in place"
    assert [promised(two, seq) for seq in (long, wide)] == [7, 5]


def test_who_comes_to_a_limit_of_his_own_by_a_start_of_another_queue_lets_others_pass(house):
    house.machine(pes=6).limit(user_limit=2)
    house.queue("strict", order="fcfs", backfill="none", priority=1).queue("other", order="fcfs")
    house.run("cleo", "ben pes=2", queue="other")
    wide, narrow = house.submit("ben pes=6", "anne", queue="strict")
    (second,) = house.submit("ben", queue="other")
    assert house.go().starts == [second, narrow]
    assert house.why(wide).matches(kind="limit_reached", values=("global user", 2, None, "ben"))
    house.submit("dora pes=5", queue="strict")
    assert house.go().starts == []


def in_the_next_pass(house: House) -> list[int]:
    """Return what the next pass starts, which comes at once; no other is to follow at once."""
    assert house.plan.wake_at == house.now + 1
    starts = house.later(ms=1).go().starts
    assert house.plan.wake_at != house.now + 1
    assert house.site.swept == house.site.freed
    return starts


def test_a_reservation_moves_at_once_that_one_of_another_queue_has_left_room_for(two):
    two.change(ev.Change("create", "consumable/barrier", {"units": ("0",)}))
    two.set("queue/front/reserve", None)
    two.submit("anne pes=3 wall=4:00", "anne gpu=1 wall=9:00", "anne matlab=1 wall=9:00")
    two.run("anne barrier=1 wall=7:00")
    two.run("anne pes=3 gpu=1 wall=2:00", "anne pes=2 matlab=1 wall=2:00")
    (long,) = two.run("ben pes=2 barrier=1 wall=20:00", queue="front")
    assert promised(two, long) == 11
    after_a_minute(two, 2)
    assert two.go().starts == []
    assert in_the_next_pass(two) == []
    assert promised(two, long) == 7


def test_a_start_is_possible_at_once_that_waited_for_a_reservation_without_a_time(house):
    house.machine(pes=4).queue("behind", order="fcfs", reserve=1)
    house.queue("front", priority=1, order="fcfs", reserve=None)
    waits(house, "anne pes=3")
    (first,) = house.run("cleo pes=2 wall=5:00", queue="behind")
    wide, short = house.submit("ben pes=4 wall=20:00", "ben wall=1:00", queue="front")
    assert house.go().starts == []
    after_a_minute(house, 1)
    assert house.go().starts == [first]
    assert promised(house, wide) is None, "it was examined before the other request started"
    assert in_the_next_pass(house) == [short]
    assert promised(house, wide) == pytest.approx(6, abs=0.001)


def test_one_examined_before_has_the_reservation_that_a_start_has_used(house):
    house.machine(pes=3).queue("night", order="fcfs", reserve=1)
    first, second = house.run("anne pes=3 wall=10:00", "ben wall=5:00")
    wide, long = house.submit("cleo pes=3 wall=15:00", "dora wall=60:00")
    house.schedule(wide, "next").go()
    house.later(minutes=10).end(first)
    assert house.go().starts == [second]
    assert promised(house, wide) == 15
    house.later(minutes=5).end(second)
    assert house.go().starts == [wide]
    assert promised(house, long) == 30
