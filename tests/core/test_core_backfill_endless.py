"""Promises without a time beside what never ends: however many pass, together they leave what is kept."""

import pytest
from core.harness import promised

from nqspy.model import events as ev
from nqspy.model.ids import Seq
from nqspy.model.reasons import ReasonCode


@pytest.fixture
def endless(house):
    """Eight PEs, four of which are held by one without a wall limit; ben waits for six of them."""
    house.machine(pes=8).queue("night", order="fcfs", reserve=1).run("anne pes=4")
    house.run("ben pes=6 wall=5:00")
    assert house.request(Seq(2)).reservation.at is None
    return house


@pytest.mark.parametrize("length", ["wall=10:00", ""])
def test_those_that_pass_one_after_the_other_hold_what_is_spare_and_no_more(endless, length):
    (first,) = endless.submit(f"cleo pes=2 {length}")
    assert endless.go().starts == [first]
    (second,) = endless.submit(f"dora pes=2 {length}")
    assert endless.go().starts == []
    assert endless.why(second).code is ReasonCode.RESERVED
    endless.end(Seq(1))
    assert endless.go().starts == [Seq(2)]


def test_those_that_pass_at_once_hold_no_more_either(endless):
    narrow = endless.submit(*["cleo pes=1 wall=10:00"] * 4)
    assert endless.go().starts == narrow[:2]


def test_when_one_that_passed_has_ended_the_next_one_may(endless):
    first, second = endless.submit("cleo pes=2 wall=10:00", "dora pes=2 wall=1:00")
    assert endless.go().starts == [first]
    endless.later(minutes=10).end(first)
    assert endless.go().starts == [second]


def test_where_all_are_promised_a_start_nobody_is_promised_one_at_its_cost(endless):
    endless.set("queue/night/reserve", None)
    wide, narrow = endless.submit("cleo pes=3 wall=10:00", "dora pes=2 wall=10:00")
    # Four are free, but six of eight are kept for ben, and by now three for cleo.
    for _ in range(3):
        assert endless.go().starts == []
        assert [promised(endless, seq) for seq in (wide, narrow)] == [None, None]
        endless.later(minutes=1)
    endless.end(Seq(1))
    assert endless.go().starts == [Seq(2), narrow]


def test_a_time_that_is_promised_behind_it_is_one_for_what_is_spare(endless):
    endless.set("queue/night/reserve", None)
    first, second = endless.submit("cleo pes=2 wall=10:00", "dora pes=2 wall=5:00")
    assert endless.go().starts == [first]
    assert promised(endless, second) == 10
    (third,) = endless.run("eva pes=1 wall=10:00")
    assert promised(endless, third) == 15
    endless.later(minutes=10).end(first)
    assert endless.go().starts == [second]
    endless.end(Seq(1))
    assert endless.go().starts == [Seq(2)]


def test_who_is_forced_past_it_counts_too(endless):
    forced, narrow = endless.submit("cleo pes=2 wall=10:00", "dora pes=1 wall=1:00")
    endless.schedule(forced, "now")
    assert endless.go().starts == [forced]
    assert endless.why(narrow).code is ReasonCode.RESERVED


def test_units_that_it_needs_are_kept_so_too(house):
    house.machine(pes=8).queue("night", order="fcfs", reserve=1)
    house.change(ev.Change("create", "consumable/gpu", {"units": ("0", "1", "2", "3")}))
    house.run("anne gpu=2")
    house.run("ben gpu=3 wall=5:00")
    narrow = house.submit(*["cleo gpu=1 wall=10:00"] * 2)
    (none,) = house.submit("dora pes=2 wall=10:00")
    assert house.go().starts == [narrow[0], none]
    assert house.go().starts == []
    assert house.why(narrow[1]).code is ReasonCode.RESERVED
