"""A real night gone through again is the same to the event; and what it tells of nights that never were."""

import json
import os
import shutil
import socket
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from daemon.eventful import EventfulNight
from daemon.live import Live
from typer.testing import CliRunner

from nqspy.model.events import Decided, Recorded
from nqspy.sim.replay.command import app
from nqspy.sim.replay.home_journal import HomeJournal
from nqspy.sim.replay.what_if import read_input, replayed
from nqspy.store.reader import Reader

HOST = socket.gethostname().split(".")[0]
EVERYTHING = {
    "alarm", "daemon_started", "decided", "deleted", "deleting", "dependency_failed", "dependency_met",
    "eligible", "ended", "held", "modified", "moved", "probe", "ranked", "redated", "released", "requeued",
    "reserved", "resumed", "routed", "settings_changed", "shift_changed", "started", "starting", "submitted",
    "suspended", "usage_corrected",
}  # fmt: skip
"""Kinds of events that such a night has."""


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Yield a site after a whole night; its daemon has been stopped."""
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
    found = replayed(read_input(HomeJournal(night.home)))
    assert not [(each.was[:2], each.would[:2]) for each in found.was.differences]
    data = night.run("nqspy", "replay", "--json").ok().data
    assert (data["differences"], data["events"]) == (0, len(journal(night)))
    assert data["starts"] == {"earlier": 0, "later": 0, "same": data["starts"]["same"], "never": 0, "new": 0}


def test_what_exits_failed_at_before_a_time_counts_from_when_they_were_asked(night: Live) -> None:
    events = journal(night)
    failed = [
        (each.event.asked or each.at, failure.seq)
        for each in events
        if isinstance(each.event, Decided)
        for failure in each.event.failures
    ]
    assert any(each.event.asked for each in events if isinstance(each.event, Decided) and each.event.failures)
    found = HomeJournal(night.home).failures(events[-1].n, events[0].at)
    assert {*failed} <= {(at, failure.seq) for at, failure in found}


# ---------------------------------------------------------------- nights that never were
def replayed_with(night: Live, *words: str) -> dict[str, Any]:
    """Return the data of a replay that must succeed."""
    done = CliRunner().invoke(app, ["--home", str(night.home), *words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_setting_and_exits_that_were_so_make_no_difference(night: Live) -> None:
    exits = str(night.home / "exits")
    data = night.run("nqspy", "replay", "-c", "set machine pes=3", "--exits", exits, "--json").ok().data
    assert (data["differences"], data["moved"]) == (0, [])


def test_on_a_smaller_machine_the_wide_ones_never_start_and_the_reason_is_told_and_both_nights_are_drawn(
    night: Live, tmp_path: Path
) -> None:
    data = replayed_with(night, "-c", "set machine pes=2", "--picture", str(tmp_path / "two.svg"))
    assert "<svg" in (tmp_path / "two.svg").read_text()
    wide = asked_for(night, 3)
    never = {each["id"]: each["reason"] for each in data["moved"] if each["would"] is None}
    assert wide <= set(never)
    assert all(never[each]["code"] == "NEVER" for each in wide)
    counts = Counter[str]()
    for row in data["groups"].values():
        counts.update({kind: row[kind] for kind in data["starts"]})
    assert counts == Counter(data["starts"]), "each start is of one group"
    assert data["starts"]["earlier"] > 0
    for each in data["moved"]:
        if each["later_s"] is not None:
            assert abs(each["later_s"]) >= 1
            assert each["reason"] is not None or each["later_s"] < 0


def asked_for(night: Live, pes: int) -> set[str]:
    """Return the requests that were started and had asked for so many PEs."""
    events = [each.event for each in journal(night)]
    started = {event.seq for event in events if event.kind == "starting"}
    return {
        f"{event.seq}.{HOST}"
        for event in events
        if event.kind == "submitted" and event.spec.ask.pes == pes and event.seq in started
    }


def test_without_a_rule_those_it_kept_back_start_earlier(night: Live, tmp_path: Path) -> None:
    (tmp_path / "table.py").write_text((night.home / "exits" / "table.py").read_text())
    data = replayed_with(night, "--exits", str(tmp_path))
    names = {each["name"]: each for each in data["moved"]}
    assert names["poison"]["was"] is names["endless"]["was"] is None
    assert names["poison"]["would"] is not None
    assert names["poison"]["reason"]["text"], "that of the last pass which looked at it in the real night"


def test_with_other_queues_the_same_people_land_elsewhere(night: Live, tmp_path: Path) -> None:
    text = (night.home / "queues.d" / "10-site.qmgr").read_text()
    assert replayed_with(night, "--queues", str(night.home / "queues.d"))["moved"] == []
    (tmp_path / "10-site.qmgr").write_text(text.replace("cpu_limit=600 express", "cpu_limit=60 express"))
    data = replayed_with(night, "--queues", str(tmp_path))
    assert data["differences"] > 0, "the one for five minutes is not routed to express"


def test_each_pass_is_told(night: Live) -> None:
    steps = night.run("nqspy", "replay", "2026-03-02T21:00..2026-03-02T22:00", "--steps", "--json").ok().lines
    passes = [json.loads(line) for line in steps]
    decided = [
        each for each in journal(night)
        if each.event.kind == "decided" and at_there(each.at) == "2026-03-02T21"
    ]  # fmt: skip
    assert [each["n"] for each in passes] == [each.n for each in decided]
    assert any(each["started"] for each in passes)
    assert any(row["code"] == "NO_PES" for each in passes for row in each["waits"])


def at_there(at: int) -> str:
    """Return the time in Paris."""
    return datetime.fromtimestamp(at / 1000, ZoneInfo("Europe/Paris")).isoformat()[:13]


def test_what_cannot_be_gone_through_again_is_one_line(night: Live, tmp_path: Path) -> None:
    def refused(*words: str, message: str) -> None:
        done = CliRunner().invoke(app, ["--home", str(night.home), *words])
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert message in done.stderr

    refused("-c", "hold request 3", message="'hold request'")
    refused("-c", "set machine pess=3", message="'pess'")
    refused("-c", "set queue nowhere run_limit=3", message="nowhere")
    refused("--exits", str(tmp_path / "none"), message="none")
    refused("--queues", str(tmp_path), message=".qmgr")
    os.mkfifo(tmp_path / "10.qmgr")
    refused("--queues", str(tmp_path), message="10.qmgr")
    refused("--file", "nowhere.qmgr", message="nowhere.qmgr")
    refused("--since", "whenever", message="'whenever'")
    refused("--steps", message="--steps")
    refused("--picture", "night.txt", message="night.txt")
    refused("--home", str(tmp_path), message="there is nothing to replay")


def test_a_journal_that_lacks_events_is_not_gone_through_again(night: Live, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for file in night.home.glob("nqs.db*"):
        shutil.copy(file, home)
    with sqlite3.connect(home / "nqs.db") as database:
        database.execute("DELETE FROM events WHERE n BETWEEN 50 AND 52")
    database.close()
    done = CliRunner().invoke(app, ["--home", str(home)])
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "between 49 and 53" in done.stderr
