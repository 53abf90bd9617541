"""The house every story of the decision takes place in; its site is checked after each."""

from collections.abc import Iterator

import pytest
from core.harness import DAYTIME, House


@pytest.fixture
def house() -> Iterator[House]:
    """An empty site; its cross-links are checked when the story has ended."""
    place = House()
    yield place
    place.site.check()


@pytest.fixture
def gang(house):
    """A machine of 8 PEs in a row, whose only queue goes by the seed's classes."""
    house.machine(pes=8).set("domain/application/placement", "contiguous")
    for name, settings in DAYTIME.items():
        house.job_class(name, **settings)
    return house.queue("apps", order="class")
