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


def test_one_with_a_contract_fills_the_hole_and_is_ended_where_that_ends(live: Live) -> None:
    live.set("set machine pes=4", "set queue batch order=fcfs reserve=1 backfill=contract shortest_hole=1")
    holder = live.qsub("sleep 60\n", "-l", "ncpus=3,walltime=5")
    live.running(holder)
    wide = live.qsub("true\n", "-l", "ncpus=4,walltime=10:00")
    live.until(wide, lambda job: bool(live.why(wide)["reservation"]), "a promised start")
    promised = live.why(wide)["reservation"]["at"]
    plain = live.qsub("sleep 60\n", "-l", "walltime=10:00")
    filling = live.qsub("sleep 60\n", "-l", "walltime=10:00", "--contract")
    live.running(filling)
    until = live.why(filling)["contract"]["until"]
    assert until == promised
    assert (
        f"it fills a hole and is ended today {until[11:16]}" in live.run("qstat", "--why", filling).ok().out
    )
    assert live.why(plain)["state"] == "queued"
    ended, started = live.ended(filling), live.ended(wide)["started"]
    assert (ended["end_reason"], ended["contract"]["until"]) == ("contract", until)
    assert ended["ended"] >= until
    assert "that it was started in is over" in live.run("qstat", "--why", filling).ok().out
    assert started < live.running(plain)["started"]
    [begun] = [each for each in live.events("starting", filling) if "until" in each]
    assert begun["until"] == until


def test_what_was_learnt_of_lifetimes_outlasts_the_daemon_and_lets_one_pass(live: Live) -> None:
    live.set("set machine pes=4", "set queue batch order=fcfs reserve=1 backfill=probable probability=50")
    live.ended(live.qsub("true\n", "-l", "walltime=2:00:00", "-N", "brief"))
    gate = live.work / "gate"
    holder = live.qsub(f"while [ ! -e {gate} ]; do sleep 0.05; done\n", "-l", "ncpus=3,walltime=1:00:00")
    live.running(holder)
    wide = live.qsub("true\n", "-l", "ncpus=4,walltime=10:00")
    live.until(wide, lambda job: bool(live.why(wide)["reservation"]), "a start told")
    live.kill()
    live.start()
    unknown = live.qsub("true\n", "-l", "walltime=2:00:00", "-N", "unknown")
    brief = live.qsub("true\n", "-l", "walltime=2:00:00", "-N", "brief")
    live.ended(brief)
    told = live.why(wide)["reservation"]
    assert (told["promised"], told["late"]) == (False, None)
    assert live.why(unknown)["reason"]["code"] == "RESERVED"
    live.write("gate", "")
    live.ended(wide)
    live.ended(unknown)
