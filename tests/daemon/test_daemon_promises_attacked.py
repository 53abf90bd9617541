"""Promised starts on a real daemon while the disk is full, and while managers grasp at them."""

from contextlib import suppress

import pytest
from daemon.live import Live, until
from daemon.test_daemon_failpoints import armed

from nqspy.model.errors import Refusal


@pytest.fixture
def live(shared):
    return shared


@pytest.mark.parametrize("rule", ["commit=ENOSPC@2x4", "commit=ENOSPC@3x6"])
def test_on_a_full_disk_a_promise_is_made_when_it_can_be_written_and_once(live: Live, rule: str) -> None:
    live.accepts_trouble = True
    live.set("set machine pes=4", "set queue batch order=fcfs reserve=1")
    holder = live.qsub("sleep 600\n", "-l", "ncpus=3,walltime=1:00:00")
    live.running(holder)
    live.kill()
    armed(live, rule).ok()
    wide = ""
    for _ in range(12):
        with suppress(Refusal):
            wide = wide or live.submit("exit 6", pes=4, wall="10:00")
    live.until(wide, lambda job: bool(live.why(wide)["reservation"]), "a promised start")
    told = live.why(wide)["reservation"]
    assert told["by"] == [holder]
    live.kill()
    live.start()
    assert live.why(wide)["reservation"]["at"] == told["at"]
    made = [each["request"] for event in live.events("reserved") for each in event["starts"]]
    assert made == [wide]
    long = live.submit("exit 0", wall="2:00:00")
    assert live.why(long)["reason"]["code"] == "RESERVED"
    live.run("qdel", "-k", holder).ok()
    assert live.ended(wide)["exit_status"] == 6


def test_who_can_never_have_what_was_promised_blocks_nobody(live: Live) -> None:
    live.set("set machine pes=4", "set queue batch order=fcfs reserve=1", "create batch_queue other")
    live.set("enable queue other", "start queue other")
    holder = live.qsub("sleep 600\n", "-l", "ncpus=2,walltime=1:00:00")
    live.running(holder)
    wide = live.qsub("exit 6\n", "-l", "ncpus=4,walltime=10:00")
    live.until(wide, lambda job: bool(live.why(wide)["reservation"]), "a promised start")
    long = live.qsub("exit 7\n", "-q", "other", "-l", "walltime=2:00:00")
    assert live.why(long)["reason"]["code"] == "RESERVED"
    live.set("set machine pes=3")
    assert live.ended(long)["exit_status"] == 7
    until(lambda: live.why(wide)["reservation"] is None, "the end of the promise")
    [causes] = [event["causes"] for event in live.events("reserved") if event.get("causes")]
    assert "as things are it can never start" in str(causes)
    live.set("set machine pes=4")
    live.until(wide, lambda job: bool(live.why(wide)["reservation"]), "another promise")
    live.set("stop queue batch")
    another = live.qsub("exit 8\n", "-q", "other", "-l", "walltime=2:00:00")
    assert live.ended(another)["exit_status"] == 8
    live.set("start queue batch")
    live.run("qdel", "-k", holder).ok()
    assert live.ended(wide)["exit_status"] == 6
