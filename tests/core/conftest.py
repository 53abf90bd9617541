"""The house every story of the decision takes place in; its site is checked after each."""

from collections.abc import Iterator

import pytest
from core.harness import House


@pytest.fixture
def house() -> Iterator[House]:
    """An empty site; its cross-links are checked when the story has ended."""
    place = House()
    yield place
    place.site.check()
