"""A real night gone through again is the same to the event."""

import pytest
from daemon.eventful import EventfulNight
from daemon.live import Live


@pytest.fixture
def night(make_live) -> Live:
    return EventfulNight(make_live()).live_through().live


@pytest.mark.timeout(900)
def test_it(night: Live) -> None:
    night.stop()
    import shutil

    shutil.rmtree("/tmp/rp/home2", ignore_errors=True)
    shutil.copytree(night.home, "/tmp/rp/home2", ignore=shutil.ignore_patterns("*.sock", "spool"))
