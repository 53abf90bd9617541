"""Requests outlive their daemon: adopted while they run, told exactly when they ended meanwhile."""

import os
import signal
import time

import pytest
from daemon.live import alive, until


@pytest.fixture
def live(shared):
    shared.set("set queue batch run_limit=unlimited")
    return shared


def gated(live, name, then="exit 5"):
    """Submit a request that runs until its gate is opened; NAME.pid has its first process's number."""
    gate = live.work / f"{name}.gate"
    script = (
        f"echo $$ > {name}.pid; echo run >> {name}.ran; while [ ! -e {gate} ]; do sleep 0.02; done; {then}"
    )
    id = live.submit(script, name=name)
    live.running(id)
    return id, gate, int(live.text(f"{name}.pid"))


@pytest.mark.parametrize("way", ["stop", "kill", "SIGTERM"])
def test_a_running_request_is_adopted_with_its_process_and_its_exit_status(live, way):
    id, gate, pid = gated(live, "long", "echo done; exit 5")
    since = time.monotonic()
    if way == "SIGTERM":
        daemon = live.pid
        os.kill(daemon, signal.SIGTERM)
        until(lambda: not alive(daemon), "its end")
        live.hang_up()
        assert live.log.splitlines()[-1].endswith("stopped")
        assert not (live.home / "nqsd.sock").exists()
        assert not (live.home / "nqs.db-wal").exists(), "closed properly"
    else:
        getattr(live, way)()
    assert alive(pid)
    live.start()
    away = time.monotonic() - since
    assert live.job(id)["state"] == "running"
    assert alive(pid)
    gate.touch()
    ended = live.ended(id)
    assert (ended["exit_status"], ended["end_reason"], ended["attempt"]) == (5, "exit", 1)
    assert live.text("long.ran") == "run\n"
    assert live.text(f"long.o{ended['seq']}") == "done\n"
    assert ended["used"]["wall_s"] > away, "the time without a daemon counts"


@pytest.mark.parametrize(("then", "told"), [("exit 7", (7, None)), ("kill -11 $$", (None, signal.SIGSEGV))])
def test_one_that_ended_while_the_daemon_was_down_is_told_exactly(live, then, told):
    id, gate, pid = gated(live, "short", then)
    live.kill()
    gate.touch()
    until(lambda: not alive(pid), "its end")
    until(lambda: list((live.home / "spool").glob("*/done")), "its record")
    live.start()
    ended = live.ended(id)
    assert (ended["exit_status"], ended["exit_signal"]) == told
    assert live.text("short.ran") == "run\n"
    assert len(live.events("ended", id)) == 1


def test_a_deletion_that_was_promised_is_kept_over_a_kill(live):
    live.set("set grace 1")
    id = live.submit("trap '' TERM; echo up > deaf.up; while :; do sleep 0.02; done")
    live.text("deaf.up")
    live.run("qdel", id).ok()
    live.kill()
    live.start()
    assert live.ended(id)["end_reason"] == "deleted"


def test_drain_waits_for_what_runs_and_starts_nothing_more(live):
    id, gate, _ = gated(live, "last")
    live.set("set queue batch run_limit=1")
    waiting = live.submit("true")
    stopping = live.spawn("nqsd", "stop", "--drain")
    until(lambda: "stopping (drain)" in live.log, "the wish to be heard")
    assert live.job(id)["state"] == "running"
    gate.touch()
    out, err = stopping.communicate(timeout=120)
    assert stopping.returncode == 0, out + err
    live.hang_up()
    live.start()
    assert live.ended(id)["exit_status"] == 5
    end = live.events("ended", id)[0]["n"]
    assert not [each for each in live.events("starting", waiting) if each["n"] < end]
    assert live.ended(waiting)["exit_status"] == 0


def test_requeue_has_them_run_again_but_not_those_that_must_not(live):
    again, _, pid = gated(live, "again")
    once = live.submit(
        f"echo run >> once.ran; while [ ! -e {live.work}/once.gate ]; do sleep 0.02; done", rerunnable=False
    )
    live.running(once)
    live.run("nqsd", "stop", "--requeue").ok()
    live.hang_up()
    assert not alive(pid)
    (live.work / "again.gate").touch()
    live.start()
    job = live.ended(again)
    assert (job["exit_status"], job["attempt"]) == (5, 2)
    assert live.text("again.ran") == "run\nrun\n"
    assert live.job(once)["state"] == "running"
    (live.work / "once.gate").touch()
    assert live.ended(once)["exit_status"] == 0
    assert live.text("once.ran") == "run\n"


def test_events_that_nobody_waits_for_are_told_to_a_follower_all_the_same(live):
    follower = live.spawn("nqspy", "events", "--follow", "--json")
    id = live.submit("true")
    for line in follower.stdout:
        if '"ended"' in line and id in line:
            break
    follower.kill()
    follower.communicate()
