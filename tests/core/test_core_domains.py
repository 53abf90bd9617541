"""Domains in a pass: each queue's requests get PEs of its domain; limits span all of them."""

import pytest

from nqspy.model.events import Change, Suspended
from nqspy.model.reasons import ReasonCode
from nqspy.model.site_checks import check_site


@pytest.fixture
def two(house):
    """Eight PEs, of which 5 to 7 are the domain ``wide``'s; queue night has application's, day has wide's."""
    house.machine(pes=8).change(Change("create", "domain/wide", {"pes": ("5-7",)}))
    house.queue("day", domain="wide", priority=2).queue("night", priority=1)
    return house


def test_each_queue_gets_pes_of_its_own_domain(two):
    a, b = two.submit("anne pes=2", "ben pes=2", queue="night")
    c, d = two.run("cleo", "dora pes=2", queue="day")
    assert [two.request(seq).pes for seq in (a, b, c, d)] == [(0, 1), (2, 3), (5,), (6, 7)]
    check_site(two.site)


def test_a_full_domain_keeps_nobody_back_in_another_and_says_its_own_figures(two):
    two.submit("anne pes=3", queue="day")
    waits, fits = *two.submit("ben", queue="day"), *two.submit("cleo pes=5", queue="night")
    more = two.submit("dora", queue="night")[0]
    told = two.run_pass()
    assert fits in told.starts
    assert told.reason(waits).matches(kind="no_pe_free", values=(1, 3, "wide", None))
    assert told.reason(waits).who == "domain wide"
    assert told.reason(more).matches(kind="no_pe_free", values=(1, 5, "application", None))
    assert told.short_of_pes


def test_more_pes_than_its_domain_has_never_start_and_both_numbers_are_said(two):
    (seq,) = two.submit("anne pes=4", queue="day")
    told = two.run_pass()
    assert (told.reason(seq).code, told.reason(seq).who) == (ReasonCode.NEVER, "domain wide")
    assert told.reason(seq).matches(kind="above_domain", who="domain wide", values=(4, 3))
    assert not told.starts


def test_limits_span_domains(two):
    two.complex("both", "day", "night", user_limit=2).limit(run_limit=3)
    first = two.submit("anne", "anne", "anne", queue="night")
    second = two.submit("anne", "ben", "cleo", queue="day")
    started = two.run_pass().starts
    assert started == [second[0], second[1], second[2]], "day comes first, and has three of global's three"
    two.limit(run_limit=6)
    assert two.run_pass().starts == [*second, first[0]], "anne has two in both queues"


def test_without_a_second_domain_nobody_hears_of_domains(house):
    house.machine(pes=2).queue("night").submit("anne pes=2", "ben")
    told = house.run_pass()
    assert told.reason(2).matches(kind="no_pe_free", values=(1, 2, None, None))
    assert told.reason(2).who == "machine"


def test_a_block_without_a_gap_is_waited_for(house):
    house.machine(pes=6).queue("night").set("domain/application/placement", "contiguous")
    a, b, c = house.run("anne pes=2", "ben pes=2", "cleo pes=2")
    (wide, small) = house.end(a).end(c).submit("dora pes=3", "emma pes=2")
    told = house.go()
    assert house.request(b).pes == (2, 3)
    assert house.request(small).pes == (0, 1)
    assert told.reason(wide).text.startswith("it asks for 3 PEs, 2 of 6 PEs are free")
    assert told.reason(wide).code is ReasonCode.NO_PES


def test_a_block_is_named_where_free_pes_would_suffice_without(house):
    house.machine(pes=5).queue("night").set("domain/application/placement", "contiguous")
    a, b, c = house.run("anne pes=2", "ben", "cleo pes=2")
    (wide,) = house.end(a).end(c).submit("dora pes=3")
    assert house.request(b).pes == (2,)
    told = house.run_pass()
    text = "it asks for 3 PEs, 4 of 5 PEs are free, 2 of them in one block"
    assert told.reason(wide).text == text
    assert not told.starts


def test_what_is_parked_comes_back_in_its_own_domain(two):
    (seq,) = two.run("anne pes=2", queue="day")
    two._event(Suspended(seq, 1, "probe nfs", True, "nfs is away"))
    two.change(Change("set", "domain/wide/pes", ("4", "6-7"))).site.check()
    two.run("ben pes=4", queue="night")
    two.site.check()
    assert two.request(seq).pes == (6, 4) or two.request(seq).pes == (4, 6)
