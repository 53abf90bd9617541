"""Command domains: requests hold no PEs there, and start at once within their limits."""

import pytest
from core.harness import promised

from nqspy.core.timeline.profile import Profile
from nqspy.core.timeline.spans import Spans
from nqspy.model.events import Change
from nqspy.model.ids import Instant


@pytest.fixture
def front(house):
    """A machine of 4 PEs, and a queue whose requests hold none of them."""
    house.machine(pes=4).change(Change("create", "domain/front", {"kind": "command"}))
    return house.queue("front", domain="front", order="fcfs")


def test_requests_hold_no_pes_and_take_none_from_others(front):
    wide, more = front.submit("anne pes=4", "ben pes=3")
    assert front.go().starts == [wide, more]
    assert front.request(wide).pes == front.request(more).pes == ()
    other = front.queue("batch").submit("cleo pes=4")[0]
    assert front.go().pes(other) == (0, 1, 2, 3)


def test_there_are_so_many_at_a_time(front):
    first, second, third = front.set("domain/front/requests", 2).submit("anne", "anne", "anne")
    assert front.go().starts == [first, second]
    front.end(first)
    assert front.go().starts == [third]


def test_who_stands_behind_one_that_lets_nobody_pass_is_told_so_and_of_no_pes(front):
    front.queue("line", domain="front", order="fcfs", backfill="none", pe_limit=4).run("anne pes=3")
    first, behind = front.submit("ben pes=4", "cleo pes=1")
    assert front.go().starts == []
    assert "PE limit 4 of queue line" in front.why(first).text
    assert f"{front.site.id_of(first)} waits for room" in front.why(behind).text


def test_a_start_that_is_promised_elsewhere_keeps_none_of_them_back(front):
    front.queue("batch", reserve=1)
    _, waits = front.run("anne pes=4 wall=1:00:00", "ben pes=4 wall=1:00:00")
    assert promised(front, waits) == 60
    [script] = front.submit("cleo pes=4 wall=2:00:00 queue=front")
    assert front.go().starts == [script]


def test_who_waits_for_memory_there_is_promised_a_start(front):
    front.queue("line", domain="front", order="fcfs", reserve=1, memory_limit="100mb")
    first, waits = front.submit("anne pes=4 wall=1:00:00 mem=70mb", "ben pes=4 wall=1:00:00 mem=80mb")
    assert front.go().starts == [first]
    assert promised(front, waits) == 60
    [small] = front.submit("cleo pes=4 wall=2:00:00 mem=30mb")
    assert front.go().starts == [], "it would have 30 of the 80 mb that are kept in an hour"
    assert "what is kept for" in front.why(small).text


def test_no_pes_are_spare_for_one_that_passes_a_start_without_a_time():
    profile = Profile(Instant(0))
    profile.provide("units", 3)
    assert Spans(profile).spare({("pes", "front"): 0, "units": 2}) == {("spare", "units"): 2}


def test_units_are_given_to_requests_of_a_command_domain_too(house):
    house.machine(pes=2).change(Change("create", "domain/talk", {"kind": "command", "requests": 2}))
    house.change(Change("create", "consumable/gpu", {"units": ("g0",)}))
    first = house.queue("talk", domain="talk").submit("anne pes=1 gpu=1", "ben pes=1 gpu=1")[0]
    assert house.go().starts == [first]
    assert house.site.units == {"gpu": {"g0": first}}
