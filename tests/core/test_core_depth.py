"""A PE with more than one slot takes more than one holder; how many, the site's check knows."""

import pytest

from nqspy.model.errors import BrokenSite
from nqspy.model.site_checks import check_site


def test_a_pe_with_two_slots_has_two_holders_and_no_third(house):
    house.machine(pes=1).queue("night").set("domain/application/depth", 2)
    first, second, third = house.run("anne", "ben", "cleo")
    assert [house.request(seq).pes for seq in (first, second, third)] == [(0,), (0,), ()]
    assert house.site.holders == {0: (first, second)}
    check_site(house.site)
    house.set("domain/application/depth", 1)
    with pytest.raises(BrokenSite, match="too often"):
        check_site(house.site)
    house.set("domain/application/depth", 2)


def test_a_slot_is_free_when_its_holder_has_ended(house):
    house.machine(pes=2).queue("night").set("domain/application/depth", 2)
    wide, narrow, more = house.run("anne pes=2", "ben", "cleo")
    assert house.site.holders == {0: (wide, narrow), 1: (wide, more)}
    check_site(house.end(wide).site)
    assert house.site.holders == {0: (narrow,), 1: (more,)}


def test_a_depth_that_is_set_again_holds_at_once(house):
    house.machine(pes=2).queue("batch").set("domain/application/placement", "lowest")
    first, second = house.set("domain/application/depth", 2).submit("anne pes=2", "ben pes=2")
    house.set("domain/application/depth", 1)
    assert house.go().starts == [first]
    house.set("domain/application/depth", 2)
    assert house.go().starts == [second]
