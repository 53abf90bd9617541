"""Queues in which nobody passes who waits, and requests that can never start beside promises."""

import pytest
from core.harness import promised

from nqspy.model.ids import Seq
from nqspy.model.reasons import ReasonCode


@pytest.fixture
def strict(house):
    """Six PEs, held for ten minutes; queue night serves the shortest first, and nobody passes who waits."""
    house.machine(pes=6).queue("night", order="sjf", backfill="none", reserve=2)
    house.submit("anne pes=6 wall=10:00")
    house.go()
    return house


def test_who_comes_in_front_of_a_promise_later_does_not_keep_it_from_its_start(strict):
    (long,) = strict.submit("ben pes=6 wall=5:00")
    strict.go()
    (shorter,) = strict.submit("cleo pes=6 wall=1:00")
    strict.go()
    assert (promised(strict, long), promised(strict, shorter)) == (10, None)
    strict.later(minutes=10)
    strict.end(Seq(1))
    assert strict.go().starts == [long]


def test_nobody_passes_a_promise_that_waits_for_its_time(strict):
    strict.end(Seq(1))
    strict.submit("anne pes=4 wall=10:00")
    strict.go()
    strict.submit("ben pes=6 wall=5:00")
    strict.go()
    (narrow,) = strict.submit("cleo pes=1 wall=1:00")
    told = strict.go()
    assert told.starts == []
    assert told.reason(narrow).code is not None


def test_who_was_put_first_waits_for_the_room_of_a_promise_and_does_not_bar_it(strict):
    (long,) = strict.submit("ben pes=6 wall=5:00")
    strict.go()
    (urgent,) = strict.submit("cleo pes=6 wall=1:00")
    strict.schedule(urgent, "first")
    strict.go()
    strict.later(minutes=10)
    strict.end(Seq(1))
    assert strict.go().starts == [long]
    assert strict.why(urgent).code is ReasonCode.RESERVED


def test_whom_a_limit_of_his_own_keeps_back_beside_one_of_all_lets_others_pass(house):
    house.machine(pes=8).limit(user_limit=1)
    house.queue("night", order="fcfs", backfill="none", reserve=None, pe_limit=6)
    house.submit("anne pes=4 wall=10:00")
    house.go()
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
    house.set(path, value)
    (wide,) = house.submit(f"anne pes=12 wall=10:00{asked}", queue="night")
    behind = house.submit("ben pes=1 wall=1:00", queue="night" if value else "other")
    (other,) = house.submit("ben pes=1 wall=1:00", queue="other")
    assert set(house.go().starts) == {*behind, other}
    assert house.request(wide).reservation is None
    assert house.why(wide).code is (ReasonCode.NEVER if value else ReasonCode.LIMIT)
