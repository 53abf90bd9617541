"""The site as a fixture of pytest."""

import pytest

from nqspy.sim.testing.files import under_test
from nqspy.sim.testing.site import Site


@pytest.fixture(name="site")
def site_of_test(request: pytest.FixtureRequest) -> Site:
    """A site with the exit that the file of tests is about (`files.under_test`), and one open queue
    ``batch``."""
    return Site(exits=under_test(request.path))
