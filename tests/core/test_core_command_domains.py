"""Command domains: requests hold no PEs there, and start at once within their limits."""

import pytest

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
