"""PEs that an operator has set offline: nobody is given them, whoever holds one keeps it."""

import pytest

from nqspy.core.domains import rows
from nqspy.core.domains import text as shown
from nqspy.model.events import Change, Suspended
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
