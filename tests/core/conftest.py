"""The house every story of the decision takes place in; its site is checked after each."""

from collections.abc import Iterator

import pytest
from core.harness import House

from nqspy.model.site_checks import check_site


@pytest.fixture
def house() -> Iterator[House]:
    """An empty site; its cross-links are checked when the story has ended."""
    place = House()
    yield place
    check_site(place.site)


DAYTIME = {
    "interactive": {"priority": 4, "wait": "0", "do_not_disturb": "10", "pe_limit": 256},
    "benchmark": {"priority": 3, "do_not_disturb": None, "pe_limit": 64, "preempted": False},
    "production": {"priority": 2, "wait": "30:00", "do_not_disturb": "10", "pe_limit": 256},
    "standby": {"priority": 1, "do_not_disturb": "3", "pe_limit": 256},
}
"""The seed's table: scheduling parameters during the daytime on weekdays."""


@pytest.fixture
def gang(house):
    """A machine of 8 PEs in a row, whose only queue goes by the seed's classes."""
    house.machine(pes=8).set("domain/application/placement", "contiguous")
    for name, settings in DAYTIME.items():
        house.job_class(name, **settings)
    return house.queue("apps", order="class")
