"""A real night gone through again is the same to the event; and what it tells of nights that never were."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon.eventful import EventfulNight
from daemon.live import Live

from nqspy.model.event import Recorded
from nqspy.sim.replay.past import RecordedPast
from nqspy.sim.replay.what_if import gathered, replayed
from nqspy.store.reader import Reader

EVERYTHING = {
    "alarm", "daemon_started", "decided", "deleted", "deleting", "dependency_failed", "dependency_met",
    "eligible", "ended", "held", "modified", "moved", "probe", "ranked", "redated", "released", "requeued",
    "reserved", "resumed", "routed", "settings_changed", "shift_changed", "started", "starting", "submitted",
    "suspended", "usage_corrected",
}  # fmt: skip
"""Kinds of events that such a night has."""


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One that has been lived through; its daemon has been stopped."""
    place = tmp_path_factory.mktemp("night")
    live = Live(place / "home", place / "work")
    with tempfile.TemporaryDirectory(prefix="nqspy-open-") as folder:
        os.chmod(folder, 0o755)
        EventfulNight(live, Path(folder)).live_through()
        live.stop()
        yield live
    live.close()


def journal(live: Live) -> list[Recorded]:
    return list(Reader(live.home / "nqs.db").events())


def test_everything_happens_in_such_a_night(night: Live) -> None:
    events = journal(night)
    assert {each.event.kind for each in events} >= EVERYTHING
    failed = {each.exit for every in events for each in getattr(every.event, "failures", ())}
    assert failed == {"moody", "table"}


def test_a_night_with_everything_in_it_happens_again_to_the_event(night: Live) -> None:
    found = replayed(gathered(RecordedPast(night.home), courses=1))
    assert not [(each.was[:2], each.would[:2]) for each in found.was.differences]
    done = night.run("nqspy", "replay", "--json").ok()
    assert (done.data["differences"], done.data["events"]) == (0, len(journal(night)))
    assert "the same to the event" in night.run("nqspy", "replay").ok().out
