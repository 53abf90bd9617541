"""Promised starts on real processes: who passes and who waits, over a kill -9 of the daemon."""

from daemon.live import Live

HOLDS = "while [ ! -e gate ]; do sleep 0.05; done\n"


def promised(live: Live, settings: str = "", wall: str = "1:00:00") -> tuple[str, str]:
    """Have one request hold three of four PEs until there is a gate, and reserve a start for one on all
    four."""
    live.set("set machine pes=4", f"set queue batch order=fcfs reserve=1 {settings}")
    if "probable" in settings:
        live.ended(live.qsub("true\n", "-l", "walltime=2:00:00", "-N", "brief"))
    holder = live.qsub(HOLDS, "-l", f"ncpus=3,walltime={wall}")
    live.running(holder)
    wide = live.qsub("true\n", "-l", "ncpus=4,walltime=10:00")
    live.until(wide, lambda job: bool(live.why(wide)["reservation"]), "a promised start")
    return holder, wide


def test_short_ones_pass_a_promised_start_and_it_outlasts_the_daemon(live: Live) -> None:
    holder, wide = promised(live)
    told = live.why(wide)["reservation"]
    assert told["by"] == [holder]
    long = live.qsub("true\n", "-l", "walltime=2:00:00")
    live.ended(live.qsub("true\n", "-l", "walltime=1:00"))
    reason = live.why(long)["reason"]
    assert (reason["code"], reason["until"]) == ("RESERVED", told["at"])
    live.kill()
    live.start()
    live.set("stop queue batch")
    assert live.why(wide)["reservation"] is None, "nothing is kept for a stopped queue"
    live.set("start queue batch")
    assert live.why(wide)["reservation"]["at"] == told["at"]
    live.write("gate", "")
    assert live.ended(wide)["started"] < live.ended(long)["started"]
    starts = [each["request"] for event in live.events("reserved") for each in event["starts"]]
    assert starts.count(wide) == 1


def test_one_with_a_contract_fills_the_hole_and_is_ended_where_that_ends(live: Live) -> None:
    _, wide = promised(live, "backfill=contract shortest_hole=1", "5")
    filling = live.qsub("sleep 60\n", "-l", "walltime=10:00", "--contract")
    live.running(filling)
    until = live.why(filling)["contract"]["until"]
    assert until == live.why(wide)["reservation"]["at"]
    assert f"is ended today {until[11:16]}" in live.run("qstat", "--why", filling).ok().out
    assert live.ended(filling)["end_reason"] == "contract"
    assert live.ended(wide)["started"] >= until


def test_what_was_learnt_of_lifetimes_outlasts_the_daemon_and_lets_one_pass(live: Live) -> None:
    _, wide = promised(live, "backfill=probable probability=50")
    live.kill()
    live.start()
    unknown = live.qsub("true\n", "-l", "walltime=2:00:00", "-N", "unknown")
    live.ended(live.qsub("true\n", "-l", "walltime=2:00:00", "-N", "brief"))
    told = live.why(wide)["reservation"]
    assert (told["promised"], told["late"]) == (False, None)
    assert live.why(unknown)["reason"]["code"] == "RESERVED"
    live.write("gate", "")
    live.ended(wide)
    live.ended(unknown)
