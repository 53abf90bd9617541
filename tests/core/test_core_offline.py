"""PEs that an operator has set offline: nobody is given them, whoever holds one keeps it."""

import pytest
from core.test_core_bumper import suspended

from nqspy.core.domains import rows
from nqspy.core.domains import text as shown
from nqspy.model.events import Change, Suspended
from nqspy.model.promises import made
from nqspy.model.site_checks import check_site


@pytest.fixture
def two(house):
    """Ten PEs, of which 5 to 9 are the domain ``wide``'s, which gives blocks; queue day has it, night not."""
    house.machine(pes=10)
    house.change(Change("create", "domain/wide", {"pes": ("5-9",), "placement": "contiguous"}))
    house.queue("day", domain="wide", priority=2)
    return house.queue("night", priority=1)


def test_who_holds_one_keeps_it_and_nobody_else_is_given_it(two):
    (first,) = two.run("anne pes=2", queue="night")
    two.set("machine/offline", ("0", "2-3"))
    assert two.site.offline() == (0, 2, 3)
    (next_, waits) = two.submit("ben", "cleo", queue="night")
    told = two.go()
    assert (two.request(first).pes, two.request(next_).pes) == ((0, 1), (4,))
    assert told.reason(waits).text.endswith("none of 5 PEs of domain application is free; 3 are offline")
    two.end(first).go()
    assert two.request(waits).pes == (1,)
    (more,) = two.set("machine/offline", ()).run("dora pes=3", queue="night")
    assert two.request(more).pes == (0, 2, 3)
    check_site(two.site)


def test_a_block_does_not_reach_over_one_and_each_domain_counts_its_own(two):
    (wide,) = two.set("machine/offline", ("0", "7")).submit("anne pes=3", queue="day")
    told = two.go()
    text = "it asks for 3 PEs, 4 of 5 PEs of domain wide are free, 2 of them in one block; 1 is offline"
    assert told.reason(wide).text == text
    two.submit("dora pes=4", queue="night")
    row = {row["name"]: (row["free"], row["held"], row["offline"]) for row in rows(two.site)}
    assert row == {"application": (4, 0, 1), "wide": (4, 0, 1)}
    assert "PEs 5-9: 5, 4 free, 0 held, 1 offline (7)" in shown(two.site, ("wide",))
    two.set("machine/offline", ("0",)).go()
    assert two.request(wide).pes == (5, 6, 7)


@pytest.mark.parametrize(("pes", "needed"), [(5, "set machine offline=()"), (3, "must become free")])
def test_what_helps_one_for_whom_too_few_are_left_is_that_pes_come_back(two, pes, needed):
    two.run("anne pes=2", queue="night")
    (wide,) = two.set("machine/offline", ("4",)).submit(f"ben pes={pes}", queue="night")
    told = two.go()
    assert told.reason(wide).text.startswith(
        f"it asks for {pes} PEs, 2 of 5 PEs of domain application are free"
    )
    assert needed in told.reason(wide).needed


def test_what_gave_its_pes_away_does_not_come_back_on_one(two):
    (seq,) = two.run("anne pes=5", queue="night")
    two._event(Suspended(seq, 1, "probe nfs", True, "nfs is away"))
    two.set("machine/offline", ("3",)).go()
    assert two.request(seq).pes_released, "four of five are there, and somebody set the fifth offline"
    two.set("machine/offline", ()).go()
    assert not two.request(seq).pes_released
    assert two.request(seq).pes == (0, 1, 2, 3, 4)


def test_nobody_is_bumped_for_a_block_with_one(gang):
    gang.set("machine/offline", ("1",))
    large, small = gang.run("anne class=standby pes=4", "ben class=standby pes=2")
    assert (gang.request(large).pes, gang.request(small).pes) == ((2, 3, 4, 5), (6, 7))
    (bumper,) = gang.later(seconds=20).submit("cleo class=interactive pes=4")
    assert suspended(gang.go()) == [large]
    assert made(gang.site, "bumper")["application"] == {"seq": bumper, "pes": ["2-5"]}
    gang.moved_out(large).go()
    assert gang.request(bumper).pes == (2, 3, 4, 5)


def test_a_block_of_which_one_goes_offline_is_reserved_no_more(gang):
    gang.run("anne class=standby pes=4", "ben class=standby pes=4")
    (bumper,) = gang.run("cleo class=interactive pes=4")
    assert made(gang.site, "bumper")["application"] == {"seq": bumper, "pes": ["0-3"]}
    gang.set("machine/offline", ("2",)).go()
    assert made(gang.site, "bumper")["application"] == {"seq": bumper, "pes": ["4-7"]}


def test_a_held_pe_that_is_set_offline_is_not_missing_twice_later(house):
    house.machine(pes=3).queue("night", order="fcfs", reserve=1)
    anne = house.run("anne pes=2 wall=20:00")[0]
    wide = house.set("machine/offline", ("0",)).run("ben pes=2 wall=10:00")[0]
    short = house.submit("cleo pes=1 wall=1:00")[0]
    assert house.go().starts == [short]
    assert house.request(wide).reservation.at == house.request(anne).started + 1_200_000


def test_a_held_unit_that_is_set_offline_is_not_missing_twice_later(house):
    house.machine(pes=3).queue("night", order="fcfs", reserve=1)
    house.change(Change("create", "consumable/gpu", {"units": ("g0", "g1")}))
    house.run("anne pes=1 wall=20:00 gpu=1")
    house.set("consumable/gpu/offline", ("g0",)).run("ben pes=3 wall=10:00")
    short = house.submit("cleo pes=1 wall=1:00 gpu=1")[0]
    assert house.go().starts == [short]
