"""For tests of a site's exits: ``Site``, the daemon's engine under a virtual clock, and the fixture ``site``.

A file of tests that says ``pytest_plugins = "nqspy.userexit.testing"`` has the fixture. Nothing of it is
loaded where it is not asked for, pytest neither where only ``Site`` is. PYTEST_DONT_REWRITE
"""

from typing import TYPE_CHECKING

from nqspy.model.errors import Refusal
from nqspy.sim.testing.errors import BadExit, BadStory, ExitFailed
from nqspy.sim.testing.job import Job
from nqspy.sim.testing.site import Site

if TYPE_CHECKING:
    from nqspy.sim.testing.fixture import site_of_test as site

__all__ = ["BadExit", "BadStory", "ExitFailed", "Job", "Refusal", "Site", "site"]


def __getattr__(name: str) -> object:
    if name != "site":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nqspy.sim.testing import fixture

    return fixture.site_of_test


def __dir__() -> list[str]:
    """Where pytest looks for fixtures."""
    return __all__
