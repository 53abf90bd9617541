"""Promised starts beside a shift that suspends: it gives back PEs, and neither memory nor units, which the
suspended keep until nobody knows when."""

import pytest
from core.harness import START, House, promised

from nqspy.model import events as ev
from nqspy.model.ids import Instant
from nqspy.model.reasons import ReasonCode
from nqspy.model.shifts import UpcomingStop

MINUTE = 60_000
STOP = Instant(START + 4 * MINUTE)


@pytest.fixture
def house() -> House:
    """In four minutes the shift suspends what runs in queue night; memory for 100 MB."""
    house = House().machine(pes=8).limit(memory_limit="100mb")
    house.queue("night", order="fcfs", reserve=1).queue("day", order="fcfs", reserve=None)
    house.site.closings["night"] = STOP
    house.site.upcoming_stops["night"] = UpcomingStop(STOP, "day", "suspend", "08:00")
    return house


def test_memory_of_one_that_will_be_suspended_is_promised_to_nobody(house):
    house.run("anne pes=8 mem=50mb wall=10:00", queue="night")
    little, much = house.run("ben pes=8 mem=50mb wall=5:00", "cleo mem=60mb wall=5:00", queue="day")
    assert promised(house, little) == 4, "she gives her PEs back then"
    assert house.request(much).reservation.at is None


def test_one_whose_run_ends_before_the_shift_gives_back_its_memory_then(house):
    house.run("anne mem=50mb wall=4:00", queue="night")
    (much,) = house.run("cleo mem=60mb wall=5:00", queue="day")
    assert promised(house, much) == 4


def test_memory_of_one_that_was_promised_a_start_and_will_be_suspended_is_promised_to_nobody(house):
    house.run("dora pes=8 wall=2:00 mem=1mb", queue="day")
    (night,) = house.run("anne pes=8 mem=50mb wall=10:00", queue="night")
    assert promised(house, night) == 2
    (much,) = house.run("cleo mem=60mb wall=5:00", queue="day")
    assert house.request(much).reservation.at is None


def test_units_and_memory_of_one_that_is_suspended_are_promised_to_nobody_while_its_queue_is_stopped(house):
    house.change(ev.Change("create", "consumable/gpu", {"units": ("0",)}))
    (night,) = house.run("anne gpu=1 mem=50mb wall=10:00", queue="night")
    house.at(seconds=240).site.upcoming_stops.clear()
    house.site.closings.clear()
    house.set("queue/night/started", False)
    house._event(ev.Suspended(night, 1, "shift day", True, "the night is over"))
    unit, much, rest = house.submit("ben gpu=1 mem=1mb wall=1:00", "cleo mem=60mb wall=1:00",
                                    "dora pes=6 mem=1mb wall=1:00", queue="day")  # fmt: skip
    assert house.go().starts == [rest], "on her PEs, beside what the others need"
    assert [house.request(seq).reservation.at for seq in (unit, much)] == [None, None]
    assert house.request(much).reservation.by == (night,)


def test_nobody_starts_who_will_be_suspended_with_memory_that_is_promised_for_after_that(house):
    house.run("dora pes=7 wall=6:00 mem=10mb", queue="day")
    (wide,) = house.run("ben pes=8 mem=60mb wall=5:00", queue="day")
    assert promised(house, wide) == 6
    long, short = house.submit("anne mem=50mb wall=5:00", "anne mem=50mb wall=4:00", queue="night")
    assert house.go().starts == [short], "she ends before the shift, and so before his start"
    assert house.why(long).code is ReasonCode.LIMIT, "the short one has what was left"


def test_a_contract_fills_no_hole_in_which_a_shift_would_suspend_it_with_what_others_are_to_have(house):
    house.set("queue/night/backfill", "contract").set("queue/night/shortest_hole", MINUTE)
    house.run("dora pes=7 wall=6:00 mem=10mb", queue="day")
    (wide,) = house.run("ben pes=8 mem=60mb wall=5:00", queue="day")
    _, small = house.submit("anne mem=50mb wall=9:00 contract=1", "anne mem=1mb wall=9:00 contract=1",
                                queue="night")  # fmt: skip
    assert house.go().starts == [small]
    assert house.request(wide).reservation.at == START + 6 * MINUTE
