"""Commands while no daemon listens: after a stop they say so at once, over a restart they wait."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from daemon.live import ONE_QUEUE, command, of_a_file, until
from daemon.terminal import at_a_terminal

AT_ONCE = 15.0
"""Seconds within which a command of a loaded machine has given up: half of its patience."""


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Return a home whose daemon was stopped; tests that start none share it."""
    for live in of_a_file(tmp_path_factory):
        live.stop()
        yield live


@pytest.mark.parametrize("words", [("qsub",), ("qstat",), ("qmgr", "-c", "show all"), ("nqspy", "counters")])
def test_after_a_stop_that_is_said_at_once(stopped, words):
    began = time.monotonic()
    stopped.run(*words, stdin="true\n").refused("no nqsd answers", "nqsd start")
    assert time.monotonic() - began < AT_ONCE


def test_every_command_waits_for_a_daemon_that_has_the_home_and_loads(stopped):
    """Its lock stands for it here; when that goes without a daemon, the wait is over."""
    live = stopped
    pid_file = live.home / "nqsd.pid"
    holder = subprocess.Popen(["flock", pid_file, "sleep", "1000"], start_new_session=True)
    try:
        until(lambda: subprocess.run(["flock", "-n", pid_file, "true"]).returncode, "the lock")
        waiting = subprocess.Popen(
            [*command("qstat")], env=live.environment, cwd=live.work, stderr=subprocess.PIPE, text=True
        )
        until(lambda: "nanosleep" in Path(f"/proc/{waiting.pid}/wchan").read_text(), "it waits")
    finally:
        os.killpg(holder.pid, 9)
        holder.wait()
    message = waiting.communicate(timeout=30)[1]
    assert waiting.returncode == 1
    assert [line.startswith("qstat: no nqsd answers") for line in message.splitlines()] == [True]


def test_a_person_is_told_that_a_command_waits(shared):
    shared.kill()
    starter = subprocess.Popen(
        ["sh", "-c", "sleep 1; exec \"$@\"", "sh", *command("nqsd"), "start"],
        env=shared.environment, cwd=shared.work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    done = at_a_terminal(shared, "qsub", "-s", "/bin/sh", stdin="true\n")
    assert starter.wait(60) == 0
    assert done.status == 0
    assert f"qsub: the nqsd in {shared.home} does not answer; waiting for it" in done.err
    assert done.out.strip().endswith(shared.job(done.out.strip())["id"])


def test_a_submission_comes_through_a_stop_and_a_start(shared):
    """A restart by hand is a stop and a start: who hands in meanwhile waits for the short time between."""
    shared.stop()
    starter = shared.spawn("nqsd", "start")
    until(lambda: (shared.home / "nqsd.pid").stat().st_mtime > time.time() + 1 or starter.poll() is not None,
          "the start is announced")  # fmt: skip
    assert shared.run("qsub", "-s", "/bin/sh", stdin="true\n").ok().lines
    starter.communicate(timeout=60)


def test_a_start_that_fails_is_no_start(live):
    live.stop()
    (live.home / "nqs.db").write_bytes(b"no database at all\n" * 1000)
    live.run("nqsd", "start").refused()
    began = time.monotonic()
    live.run("qsub", stdin="true\n").refused("no nqsd answers")
    assert time.monotonic() - began < AT_ONCE


def test_who_waits_for_an_end_waits_over_a_restart(live):
    go = live.work / "go"
    live.site(ONE_QUEUE)
    waiting = subprocess.Popen(
        [*command("qsub"), "--wait", "-s", "/bin/sh"], env=live.environment, cwd=live.work, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert waiting.stdin is not None
    waiting.stdin.write(f"while [ ! -e {go} ]; do sleep 0.05; done; exit 9\n")
    waiting.stdin.close()
    until(lambda: [r for r in live.client.requests() if r.data["state"] == "running"], "it runs")
    live.restart()
    go.touch()
    assert waiting.wait(60) == 9
    waiting.stdout.close()
    waiting.stderr.close()
