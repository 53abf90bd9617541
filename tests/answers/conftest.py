"""Answers of a daemon: a process (``daemon/live.py``), or inside the test (``daemon/inner.py``)."""

import pytest
from daemon import inner as inside
from daemon import live as stage

make_live, live, office = stage.make_live, stage.live, stage.office
inner, fresh = inside.inner, inside.fresh
open_folder = stage.open_folder


@pytest.fixture
def hasty(fresh):
    """Return a daemon whose turns have time for one thing of each kind."""
    fresh.daemon.part = lambda: lambda: True
    return fresh
