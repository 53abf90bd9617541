"""What is found to be other than the books say: another boot, an older database, CPUs that went."""

import contextlib
import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from daemon.live import ONE_QUEUE, alive, until

from nqspy.daemon import memory

WAIT = "echo $$ > pid.{0}; while [ ! -e go ]; do sleep 0.02; done"


def reboot(live) -> None:
    """Make the spool say that all running requests were begun in another boot, and end their shepherds."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    live.kill()
    for pid in live.leftovers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
    for claim in (live.home / "spool").glob("*.*/claim"):
        claim.write_text(claim.read_text().replace(boot, "0" * len(boot)))


@pytest.mark.parametrize("policy", ["rerun", "fail"])
def test_what_ran_when_the_machine_was_restarted_is_lost_at_once(make_live, policy):
    live = make_live().site(ONE_QUEUE + f"set lost_request={policy}\n").start()
    ids = [live.submit(WAIT.format(n), rerunnable=n == 0) for n in range(2)]
    for id in ids:
        live.running(id)
    for n in range(2):
        live.text(f"pid.{n}")
    reboot(live)
    live.start()
    once = live.ended(ids[1])
    assert (once["end_reason"], once["attempt"]) == ("lost", 1)
    alarms = [event["text"] for event in live.events("alarm")]
    assert [text for text in alarms if all(id in text for id in ids)], alarms
    (live.work / "go").touch()
    again = live.ended(ids[0])
    expected = ("exit", 2) if policy == "rerun" else ("lost", 1)
    assert (again["end_reason"], again["attempt"]) == expected
    reasons = [event["text"] for event in live.events("requeued", ids[0])]
    assert reasons == (["the machine was restarted while it ran"] if policy == "rerun" else [])


def test_a_request_that_an_older_database_does_not_know_is_ended_and_told(make_live):
    live = make_live().site().start()
    live.submit("exit 0")
    live.stop()
    older = live.home / "older.db"
    shutil.copyfile(live.home / "nqs.db", older)
    live.start()
    stranger = live.submit(WAIT.format("stranger"))
    live.running(stranger)
    pid = int(live.text("pid.stranger"))
    live.kill()
    for name in ("nqs.db", "nqs.db-wal", "nqs.db-shm"):
        (live.home / name).unlink(missing_ok=True)
    older.rename(live.home / "nqs.db")
    live.start()
    until(lambda: not alive(pid), "the stray is ended")
    alarms = [event["text"] for event in live.events("alarm")]
    assert [text for text in alarms if stranger in text], alarms
    other = live.submit("exit 7")
    assert other != stranger, "its number is not given out again"
    assert live.ended(other)["exit_status"] == 7


def test_cpus_that_go_and_come_are_noticed_and_told(make_live):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs: one is taken away")
    live = make_live().site(ONE_QUEUE.replace("set machine pes=2\n", "")).start()
    cpus = sorted(os.sched_getaffinity(live.pid))
    busy = [live.submit(WAIT.format(n)) for n in range(len(cpus))]
    for id in busy:
        live.running(id)
    os.sched_setaffinity(live.pid, cpus[1:])
    _ring(live)
    until(lambda: len(live.events("machine_found")) == 2, "the loss is seen")
    (event,) = live.events("machine_found")[1:]
    assert (event["cpus"], event["offline"]) == (cpus, [0])
    assert [a for a in live.events("alarm") if f"CPU {cpus[0]} removed" in a["text"]]
    assert live.job(busy[0])["state"] == "running"
    late = live.submit("exit 0")
    (live.work / "go").touch()
    for id in busy:
        assert live.ended(id)["end_reason"] == "exit"
    live.ended(late)
    (started,) = live.events("started", late)
    assert 0 not in started["pes"]
    os.sched_setaffinity(live.pid, cpus)
    _ring(live)
    until(lambda: len(live.events("machine_found")) == 3, "the return is seen")
    assert not live.events("machine_found")[2]["offline"]


def _ring(live) -> None:
    """Make something due soon, so that the daemon checks: it would within a minute anyhow."""
    date = (datetime.now() + timedelta(seconds=2)).strftime("%Y-%m-%dT%H:%M:%S")
    live.qsub("exit 0\n", "-a", date)


def test_doctor_says_what_keeps_each_limit_and_what_giving_way_means_here(live):
    told = [(each["what"], each["text"]) for each in live.run("nqspy", "doctor", "--json").ok().data]
    for what in ("memory of a job: ", "PEs of a job: ", "CPU time: ", "all processes of a job: "):
        assert [text for _, text in told if text.startswith(what)], told
    assert ("no swap" in dict(told)["memory"]) == (memory.read().swap == 0)
