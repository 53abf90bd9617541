"""Promised starts on real processes: who passes and who waits, over a kill -9 of the daemon."""

import pytest
from daemon.live import Live


@pytest.fixture
def full(live: Live) -> tuple[Live, str, str]:
    """Three of four PEs are held until there is a gate, for an hour at most; four are waited for."""
    live.set("set machine pes=4", "set queue batch order=fcfs reserve=1")
    gate = live.work / "gate"
    holder = live.qsub(f"while [ ! -e {gate} ]; do sleep 0.05; done\n", "-l", "ncpus=3,walltime=1:00:00")
    live.running(holder)
    wide = live.qsub("true\n", "-l", "ncpus=4,walltime=10:00")
    live.until(wide, lambda job: bool(live.why(wide)["reservation"]), "a promised start")
    return live, holder, wide


def test_short_ones_pass_a_promised_start_and_it_outlasts_the_daemon(full: tuple[Live, str, str]) -> None:
    live, holder, wide = full
    promised = live.why(wide)["reservation"]
    assert promised["by"] == [holder]
    long = live.qsub("true\n", "-l", "walltime=2:00:00")
    short = live.qsub("true\n", "-l", "walltime=1:00")
    live.ended(short)
    reason = live.why(long)["reason"]
    assert (reason["code"], reason["until"]) == ("RESERVED", promised["at"])
    live.kill()
    live.start()
    assert live.why(wide)["reservation"]["at"] == promised["at"]
    live.write("gate", "")
    first, second = live.ended(wide), live.ended(long)
    assert first["started"] < second["started"]
    told = [each["request"] for event in live.events("reserved") for each in event["starts"]]
    assert told.count(wide) == 1
