"""The site as a fixture of pytest."""

import pytest

from nqspy.sim.testing.files import under_test
from nqspy.sim.testing.site import StorySite


@pytest.fixture(name="site")
def site_of_test(request: pytest.FixtureRequest) -> StorySite:
    """Return a site with the exit that the file of tests is about, and one open queue ``batch``."""
    return StorySite(exits=under_test(request.path))
