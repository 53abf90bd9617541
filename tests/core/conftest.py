"""Fixtures of the core tests: an empty site (`core.harness.House`), and one with the seed's job classes."""

from collections.abc import Iterator

import pytest
from core.harness import House

from nqspy.model.site_checks import check_site


@pytest.fixture
def house() -> Iterator[House]:
    """Yield an empty site; after the test its cross-references are checked."""
    place = House()
    yield place
    check_site(place.site)


DAYTIME = {
    "interactive": {"priority": 4, "wait": "0", "do_not_disturb": "10", "pe_limit": 256},
    "benchmark": {"priority": 3, "do_not_disturb": None, "pe_limit": 64, "preempted": False},
    "production": {"priority": 2, "wait": "30:00", "do_not_disturb": "10", "pe_limit": 256},
    "standby": {"priority": 1, "do_not_disturb": "3", "pe_limit": 256},
}
"""Scheduling parameters of the seed's table for the daytime on weekdays."""


@pytest.fixture
def gang(house):
    """Return a site with 8 PEs in a row and one queue that orders by the seed's job classes."""
    house.machine(pes=8).set("domain/application/placement", "contiguous")
    for name, settings in DAYTIME.items():
        house.job_class(name, **settings)
    return house.queue("apps", order="class")
