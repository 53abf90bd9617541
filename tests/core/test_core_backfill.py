"""Reservations: stories that need more than the words of `core.story`."""

import pytest
from core.harness import promised, refuse
from msgspec.structs import replace

from nqspy.model import events as ev
from nqspy.model.reasons import ReasonCode
from nqspy.model.site_checks import check_site

MINUTE = 60_000


@pytest.fixture
def easy(house):
    """Eight PEs, six of which are held for ten minutes; queue night reserves one start."""
    house.machine(pes=8).queue("night", order="fcfs", reserve=1).run("anne pes=6 wall=10:00")
    return house


@pytest.mark.parametrize("act", ["hold", "move", "delete", "modify"])
def test_the_reservation_is_over_when_the_request_waits_no_more_as_it_did(easy, act):
    easy.queue("other", reserve=0)
    wide, long = easy.submit("ben pes=8 wall=5:00", "cleo pes=2 wall=11:00", queue="night")
    assert easy.go().starts == []
    request = easy.request(wide)
    if act == "hold":
        easy.hold(wide)
    elif act == "move":
        easy._event(ev.Moved((wide,), "other", "op"))
    elif act == "delete":
        easy._event(ev.Deleted(wide, "ben"))
    else:
        spec = replace(request.spec, ask=replace(request.spec.ask, pes=2, wall=12 * MINUTE))
        easy._event(ev.Modified(wide, spec, "ben"))
    assert not easy.site.reserved
    check_site(easy.site)
    assert easy.go().starts in ([long], [wide])


def test_one_that_an_exit_refuses_when_its_time_has_come_keeps_no_room(easy):
    (wide,) = easy.run("ben pes=8 wall=5:00")
    easy.exits(jobselect=lambda request, view: refuse("no licence") if request.owner == "ben" else None)
    (long,) = easy.submit("cleo pes=8 wall=20:00")
    told = easy.later(minutes=10).end(1).go()
    assert told.starts == [long]
    assert easy.request(wide).reservation is None
    (event,) = [each for each in told.actions if each.kind == "reserve"]
    assert event.causes == {wide: "exits/test: no licence"}


def test_a_request_for_more_than_a_smaller_machine_has_loses_its_reservation_and_blocks_none(easy):
    easy.queue("other")
    easy.run("ben pes=8 wall=5:00", queue="night")
    (long,) = easy.machine(pes=7).submit("cleo pes=1 wall=11:00", queue="other")
    assert easy.go().starts == [long]
    assert promised(easy, 2) is None
    [told] = [each.event.causes for each in easy.events if getattr(each.event, "causes", None)]
    assert told == {2: "as things are it can never start"}
    assert easy.why(2).code is ReasonCode.NEVER


@pytest.mark.parametrize(
    ("path", "value", "asked"),
    [
        ("queue/night/pe_limit", 6, ""), ("global/pe_limit", 6, ""),
        ("queue/night/memory_limit", 1 << 20, " mem=20mb"), ("queue/night/run_limit", 0, ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("settings", [{"reserve": 1}, {"reserve": None}, {"backfill": "none", "reserve": 1}])
def test_a_request_that_can_never_start_blocks_none(house, path, value, asked, settings):
    house.machine(pes=12).queue("night", order="fcfs", **settings).queue("other", priority=5)
    (wide,) = house.set(path, value).submit(f"anne pes=12 wall=10:00{asked}", queue="night")
    behind = house.submit("ben pes=1 wall=1:00", queue="night" if value else "other")
    (other,) = house.submit("ben pes=1 wall=1:00", queue="other")
    assert set(house.go().starts) == {*behind, other}
    assert house.request(wide).reservation is None
    assert house.why(wide).code is (ReasonCode.NEVER if value else ReasonCode.LIMIT)


@pytest.mark.parametrize("wall", ["wall=5:00", ""])
def test_the_moments_that_starting_takes_change_no_order(house, wall):
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
