"""A start that came too late for its promise: room is kept for it beside what others were promised."""

import pytest
from core.harness import promised

from nqspy.model import events as ev
from nqspy.model.ids import member


def test_one_whose_start_an_operator_made_late_makes_no_other_start_late(house):
    house.change(ev.Change("create", "consumable/gpu", {"units": ("0",)}))
    house.machine(pes=6).queue("night", order="fcfs", reserve=None)
    short, drawing = house.run("anne pes=3 wall=5:00", "anne gpu=1 wall=16:00")
    late, sure = house.run("ben pes=5 wall=11:00", "cleo pes=5 gpu=1 wall=11:00")
    assert (promised(house, late), promised(house, sure)) == (5, 16)
    (forced,) = house.later(minutes=1).submit("dora wall=17:00")
    house.schedule(forced, "now")
    assert house.go().starts == [forced]
    house.later(minutes=4).end(short)
    assert house.go().starts == []
    assert house.request(late).reservation.late
    house.later(minutes=11).end(drawing)
    assert house.go().starts == [sure], "as it was promised beside what was kept for the other one"
    house.later(minutes=11).end(sure)
    assert house.go().starts == [late]


@pytest.mark.parametrize("wall", ["wall=5:00", ""])
def test_the_moments_that_starting_takes_put_nobody_behind_those_promised_a_start_after_him(house, wall):
    house.machine(pes=1).queue("night", order="fcfs", reserve=None)
    line = house.run(*["anne wall=5:00"] * 3, f"anne {wall}")
    running, *line = line
    assert [promised(house, each) for each in line] == [5, 10, 15]
    for first in line:  # each runs to its limit, and that counts from a moment after its start
        house.later(50, minutes=5)
        assert house.go().starts == []
        assert not house.request(first).reservation.late, "that is no delay"
        house.end(running)
        assert house.go().starts == [first]
        running = first


@pytest.mark.parametrize(("late", "first"), [(9_000, 2), (12_000, 3)])
def test_one_that_takes_its_grace_time_to_end_delays_who_waits_for_it_by_no_more(house, late, first):
    house.machine(pes=1).queue("night", order="fcfs", reserve=None)
    running, *_ = house.run(*["anne wall=5:00"] * 3)
    house.later(late, minutes=5).end(running)
    assert house.go().starts == [first]


def test_one_that_goes_on_beyond_its_limit_is_told_as_the_cause_as_soon_as_the_moment_is_over(house):
    house.machine(pes=1).queue("night", order="fcfs", reserve=1)
    _, waiting = house.run(*["anne wall=5:00"] * 2)
    house.later(minutes=5).go()
    assert not house.request(waiting).reservation.late
    assert house.plan.wake_at == house.now + 1_001
    house.later(1_001).go()
    assert house.request(waiting).reservation.late == "1.ymp still running beyond what was planned"
    assert house.plan.wake_at is None


def test_whoever_is_late_because_of_those_before_him_is_told_who_they_are(house):
    house.machine(pes=1).queue("night", order="fcfs", reserve=None)
    running, *_ = house.run(*["anne wall=5:00"] * 4)
    house.later(2_000, minutes=5).end(running)
    assert house.go().starts == [2]
    assert house.request(3).reservation.late == "what it needs is held by 2.ymp"
    assert house.request(4).reservation.late == "what it needs is kept for 3.ymp by then"


def test_a_hole_a_moment_too_short_before_ones_time_is_no_room_at_that_time(house):
    house.machine(pes=6).queue("wide", order="fcfs", reserve=0, priority=5)
    house.queue("night", order="fcfs", reserve=None, pe_limit=4, priority=1)
    house.run("anne pes=4 wall=3:23 queue=night", "cleo pes=6 wall=9:13 queue=wide")
    house.later(minutes=5).run("ben sizes=1,4 walls=5:00,1:00 queue=night")
    house.later(minutes=3).run("anne sizes=1,4 walls=11:00,6:00 queue=night")
    (unlimited,) = house.later(minutes=1).run("anne p=5 queue=night")
    house.later(seconds=13).end(2).go()
    house.later(seconds=107).run("anne sizes=2,4 walls=7:00,1:00 queue=night")
    told = promised(house, unlimited)
    house.later(seconds=96).end(1).go()
    house.later(seconds=1).end(3)
    assert house.go().starts == [4]
    house.later(seconds=287).end(4).go()
    kept = house.request(unlimited).reservation
    assert kept is None or (promised(house, unlimited) <= told and not kept.late)


def test_the_next_index_of_an_array_is_not_late_by_the_reservation_of_the_index_that_started(house):
    """Otherwise it would have a start reserved that overlaps another reservation by a moment."""
    house.change(ev.Change("create", "consumable/gpu", {"units": ("0",)}))
    house.machine(pes=3).queue("night", order="fcfs", reserve=None)
    house.submit("anne wall=60:00", "anne wall=10:00")
    array = house.array("ben gpu=1 wall=5:00", 3)
    (wide,) = house.run("cleo pes=2 wall=5:00")
    house.go()
    assert promised(house, wide) == 10
    house.at(10).end(member(array, 1))
    assert house.go().starts == [member(array, 2)]
    house.go()
    assert promised(house, array) == 15, "it would overlap the wide one from 310 s on"


def test_a_reservation_that_is_known_to_be_late_wakes_no_pass(house):
    house.machine(pes=3).queue("night", order="fcfs", reserve=1)
    running, wide = house.run("anne pes=2 wall=10:00", "ben pes=3 wall=5:00")
    (forced,) = house.submit("cleo wall=unlimited")
    house.schedule(forced, "now").go()
    house.later(ms=100, minutes=10).end(running).go()
    assert house.request(wide).reservation.late
    house.set("queue/night/reserve", 2).later(ms=500).go()
    assert house.plan.wake_at is None


@pytest.mark.parametrize("takes", [100, 999, 1_000, 5_000])
def test_a_start_that_takes_a_moment_leaves_no_pe_idle_beside_a_reservation(house, takes):
    """The end that is expected moves by that moment: what is reserved for it does not keep others away."""
    house.machine(pes=8).queue("night", order="fcfs", reserve=1)
    house.takes = takes
    _, wide = house.run("anne pes=4 wall=20:00", "ben pes=6 wall=10:00")
    assert promised(house, wide) == 20
    (spare,) = house.later(minutes=1).submit("cleo pes=2 wall=30:00")
    assert house.go().starts == [spare]
    assert bool(house.request(wide).reservation.late) is (takes > 1_000)


def test_each_reserved_start_is_kept_beside_the_moments_that_starting_takes(house):
    house.machine(pes=8).queue("night", order="fcfs", reserve=None)
    house.takes = 90
    line = house.run("anne pes=8 wall=3:00")
    line += house.submit(
        "ben pes=4 wall=20:00", "cleo pes=4 wall=8:00", "dora pes=2 wall=30:00", "eve pes=6 wall=10:00"
    )
    house.go()
    house.later(minutes=3).end(line[0])
    assert house.go().starts == line[1:3]
    house.later(minutes=8).end(line[2])
    assert house.go().starts == [line[3]], "as it was promised"
    assert not house.request(line[4]).reservation.late


def test_a_forced_start_that_takes_reserved_pes_tells_so_at_once(house):
    house.machine(pes=8).queue("night", order="fcfs", reserve=None)
    _, wide = house.run("anne pes=6 wall=20:00", "ben pes=8 wall=10:00")
    (forced,) = house.later(minutes=1).submit("cleo pes=2 wall=40:00")
    house.schedule(forced, "now")
    assert house.go().starts == [forced]
    assert house.plan.wake_at == house.now + 1
    house.later(1).go()
    assert house.request(wide).reservation.late
    assert house.plan.wake_at is None or house.plan.wake_at > house.now + 1


def test_a_suspended_request_that_a_start_keeps_from_going_on_returns_before_what_is_reserved_then(house):
    house.machine(pes=3).probe("nfs", "ok", running="suspend")
    house.queue("front", order="fcfs", priority=1).queue("night", order="fcfs", reserve=None)
    house.run("anne pes=2 wall=10:00 needs=nfs", "anne wall=60:00")
    house.submit("dora pes=3 wall=1:00")
    house.probe("nfs", "broken").go()
    (first,) = house.submit("ben wall=20:00", queue="front")
    (behind,) = house.submit("cleo pes=2 wall=5:00")
    assert (house.go().starts, promised(house, behind)) == ([first], 30)
    house.probe("nfs", "ok").later(minutes=10).go()
    assert not house.request(behind).reservation.late


def test_a_forced_start_does_not_put_the_first_late_request_behind_the_next(house):
    house.machine(pes=6).queue("night", order="fcfs", reserve=None)
    (running,) = house.run("anne pes=6 wall=5:00")
    first, _ = house.run("ben pes=2 wall=20:00", "ben pes=3 wall=20:00")
    house.later(seconds=2, minutes=5).go()
    (forced,) = house.later(minutes=2).end(running).submit("cleo pes=2 wall=60:00")
    house.schedule(forced, "now")
    assert house.go().starts == [forced, first]


def test_reservations_that_stay_when_a_queue_makes_no_more_are_told_as_late(house):
    house.machine(pes=2).queue("night", order="fcfs", reserve=1)
    first, wide = house.run("anne wall=10:00", "ben pes=2 wall=10:00")
    (forced,) = house.set("queue/night/reserve", 0).later(minutes=1).submit("cleo wall=15:00")
    house.schedule(forced, "now")
    assert house.go().starts == [forced]
    house.later(1).go()
    assert house.request(wide).reservation.late
    house.later(minutes=9).end(first).later(minutes=6).end(forced)
    assert house.go().starts == [wide]


def test_one_that_is_late_for_a_block_that_is_cleared_has_that_as_the_cause(gang):
    gang.queue("night", order="fcfs", reserve=1, priority=9)
    gang.run("anne class=production pes=4 wall=7200 queue=apps")
    (first,) = gang.run("ben pes=4 wall=10:00")
    (waiting,) = gang.run("cleo pes=4 wall=10:00")
    assert gang.request(waiting).reservation.at == gang.now + 600_000
    (bumper,) = gang.later(minutes=9).run("dora class=interactive pes=8 wall=60:00 queue=apps")
    gang.end(first).later(minutes=2).go()
    late = gang.request(waiting).reservation.late
    assert late == f"PEs are kept free for {bumper}.ymp"
