"""User exits in a replay have more time than a daemon gives them, so that a busy machine changes nothing."""

import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from nqspy.model.ids import Instant
from nqspy.model.site import Site
from nqspy.report.time_text import zone_of
from nqspy.sim.replay import texts
from nqspy.sim.replay.command import read_commands, time_asked
from nqspy.sim.replay.exits import PATIENCE, ExitVersions, RecordedExits, files_in
from nqspy.sim.replay.isolated import NotReplayed, isolated
from nqspy.sim.trying import command as trial_texts
from nqspy.userexit.call_stats import RETRY

SLOW = """\
from time import thread_time

from nqspy.userexit import userexit


@userexit
def jobselect(request):
    end = thread_time() + request.seconds
    while thread_time() < end:
        pass
"""


def asked(exits: RecordedExits, seq: int, seconds: float, now: int) -> tuple[bool, float]:
    """Return True if the exit failed on that request, and the CPU seconds that took."""
    exits.begin(Site())
    request = SimpleNamespace(seq=seq, owner="anne", seconds=seconds, array=None)
    began = time.thread_time()
    exits.jobselect(request, SimpleNamespace(now=now))
    return bool(exits.failures()), time.thread_time() - began


def test_what_an_exit_loops_over_costs_its_patience_once(tmp_path: Path) -> None:
    folder = tmp_path / "exits"
    folder.mkdir(mode=0o755)
    (folder / "slow.py").write_text(SLOW)
    (folder / "slow.py").chmod(0o644)
    versions = ExitVersions(folder, {}, files_in(folder), [(None, None)])
    exits = RecordedExits(versions)
    exits.load(None, Site())
    assert exits.problems == []
    budget = 0.05
    assert not asked(exits, 1, 4 * budget, RETRY)[0], "it did so in time then"
    failed, took = asked(exits, 2, 60, 2 * RETRY)
    assert failed
    assert took > 0.9 * PATIENCE * budget
    failed, again = asked(exits, 2, 60, 4 * RETRY)
    assert failed
    assert again < took / 4
    assert not asked(exits, 3, 4 * budget, 6 * RETRY)[0], "others have it still"
    stranger = RecordedExits(replace(versions, now=()), lambda files: versions.now)
    stranger.load(None, Site())
    assert asked(stranger, 1, 4 * budget, RETRY)[0], "who was not there then has what a daemon gives"


def test_nobody_waits_for_ever_for_an_exit_that_stops_its_process() -> None:
    assert isolated(lambda done: done(3) or 5, 7) == 5
    with pytest.raises(NotReplayed, match="signal 9"):
        isolated(lambda done: signal.raise_signal(signal.SIGSTOP))


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("/nowhere/at/all", "cannot be read: No such file"),
        ("/dev/zero", "is longer than"),
        ("/", "cannot be"),
    ],
)
def test_a_file_of_commands_that_is_none_is_refused_in_a_line(file: str, message: str) -> None:
    with pytest.raises(NotReplayed, match=message):
        read_commands(Path(file))


AT = "2026-03-02T21:00:00.000+01:00"
NO_PES = "none of 1 PEs is free"
DIFFERENT = {
    "since": AT, "until": AT, "events": 9, "as_it_was": 0, "differences": 2, "left": AT,
    "exits": {"unknown_until": None, "missing": []},
    "starts": dict.fromkeys(("earlier", "later", "same", "never", "new"), 0), "guessed": [], "refused": {},
    "busy": {"was": 0.5, "would": 0.5}, "deviation": {"was": 0.0, "would": 0.0},
    "little_use": {"was": False, "would": False}, "groups": {}, "users": {},
    "moved": [],
}  # fmt: skip
ONLY_NOW = {
    "id": "6.vm", "name": "model", "group": "d1", "was": None, "would": AT, "later_s": None,
    "reason": {"text": NO_PES}, "lets_pass": [],
}  # fmt: skip


def test_whoever_is_started_only_now_is_told_why_it_waited_then() -> None:
    assert f"without the change: {NO_PES}" in texts.text_of(DIFFERENT | {"moved": [ONLY_NOW]}, "two PEs")
    row = {
        "id": "6.vm", "name": "model", "owner": "anne", "queue": "batch", "was": "waits", "would": "starts",
    }  # fmt: skip
    tried = {
        "exit": "quiet", "replaces": False, "off": False, "since": AT, "until": AT, "requests": 1,
        "as_it_was": 0, "exits": {"unknown_until": None, "missing": []},
        "counts": {"new": 1}, "changed": [row | {"kind": "new", "reason": NO_PES}],
        "hooks": {}, "failures": [], "long": [],
    }  # fmt: skip
    assert f"  why:   without the exit: {NO_PES}\n" in trial_texts.text(tried, every=False)


def test_where_only_passes_saw_something_else_nobody_reads_of_0_other_events() -> None:
    told = texts.text_of(DIFFERENT | {"differences": 0}, "the exits of here")
    assert "the exits of here: no difference" in told
    assert "differ," not in told


@pytest.mark.parametrize(
    ("span", "since", "until"), [("1s..1h", None, None), (None, "1h", "2h"), (None, "7d", "30d")]
)
def test_a_time_that_ends_before_it_begins_is_told(span, since, until):
    past = SimpleNamespace(zone=zone_of("UTC"), last=Instant(40 * 86_400_000))
    with pytest.raises(NotReplayed, match=r"the time from \w+ to \w+ is empty"):
        time_asked(past, span, since, until)


def test_a_clock_time_before_the_beginning_is_that_of_the_next_day():
    past = SimpleNamespace(zone=zone_of("UTC"), last=Instant(40 * 86_400_000))
    begin, end = time_asked(past, "21:00..06:00", None, None)
    assert end - begin == 9 * 3_600_000
