"""Tests of a site's exits: ``Site``, the daemon's engine under a virtual clock, and the fixture ``site``.

A file of tests with ``pytest_plugins = "nqspy.userexit.testing"`` has the fixture. This module only finds the
names (`testing.pyi`) when they are used, because their code is far above this room; pytest is loaded for the
fixture only. PYTEST_DONT_REWRITE
"""

from importlib import import_module

_BEHIND = {
    "BadExit": ("record", "BadExit"),
    "BadStory": ("record", "BadStory"),
    "ExitFailed": ("record", "ExitFailed"),
    "Job": ("stage", "StoryJob"),
    "Refusal": ("record", "Refusal"),
    "Site": ("site", "StorySite"),
    "site": ("fixture", "site_of_test"),
}
__all__ = list(_BEHIND)


def __getattr__(name: str) -> object:
    if name not in _BEHIND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, found = _BEHIND[name]
    return getattr(import_module(f"nqspy.sim.testing.{module}"), found)


def __dir__() -> list[str]:
    """Return the names in which pytest searches for fixtures."""
    return __all__
