"""Starts that cannot be: one line says why, and a home that was none is none again."""

import os
import signal
import sys

import pytest
from daemon.live import until


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("command", ["start", "run"])
def test_a_first_start_that_fails_leaves_the_home_as_it_was(make_live, tmp_path, command, there):
    live = make_live()
    if there:
        live.home.mkdir()
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "a.qmgr").write_text("create batch_queue batch\nset queue nowhere run_limit=3\n")
    done = live.run("nqsd", command, "--queues", str(rules))
    assert done.status == 1
    assert "a.qmgr, line 2" in done.err
    assert live.home.exists() == there
    assert not there or not list(live.home.iterdir())
    until(lambda: not live.leftovers(), "its processes have ended")


@pytest.mark.parametrize(
    "words",
    [
        *((f"nqsd {name}", "--home", "rel") for name in ("init", "start", "run", "status", "stop")),
        ("nqsd start", "--queues", "rel"),
        ("nqspy doctor", "--home", "rel"),
        ("nqspy counters", "--home", "rel"),
        ("qstat", "--home", "rel"),
    ],
)
def test_in_a_folder_that_is_gone_it_says_so_in_one_line(make_live, words):
    live = make_live()
    (live.work / "gone").mkdir()
    program, *rest = words[0].split()
    before = ["sh", "-c", 'cd gone && rmdir ../gone && exec "$@"', "sh"]
    done = live.run(program, *rest, *words[1:], before=before)
    assert done.status == 1
    assert len(done.err.splitlines()) == 1, done.err
    assert "rel" in done.err


def test_no_process_to_be_had_is_one_line_and_leaves_nothing(make_live):
    live = make_live()
    done = live.run("nqsd", "start", "--site", "plain", before=["prlimit", "--nofile=6", "--"])
    assert done.status == 1
    assert len(done.err.splitlines()) == 1, done.err
    assert "no daemon can be started" in done.err
    assert not live.home.exists()


def test_closed_standard_descriptors_are_no_pipes_of_ours(make_live):
    live = make_live().site()
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
    assert live.run("nqsd", "start", before=closed).status == 0
    live.run("nqsd", "status").ok()
    assert live.run("nqsd", "start", before=closed).status == 1


def test_signals_that_the_caller_ignores_or_blocks_are_the_daemons_own(make_live):
    live = make_live().site()
    deaf = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
        "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()); "
        "os.execvp(sys.argv[1], sys.argv[1:])"
    )
    live.run("nqsd", "start", before=[sys.executable, "-c", deaf]).ok()
    live.ended(live.submit("true"))
    os.kill(live.pid, signal.SIGTERM)
    until(lambda: "INFO stopped" in live.log, "SIGTERM has ended it")


def test_a_home_whose_name_is_no_text_is_served_and_told(make_live, tmp_path):
    live = make_live()
    live.home = tmp_path / os.fsdecode(b"b\xff")
    live.environment["NQSPY_HOME"] = str(live.home)
    live.site().start()
    assert "nqsd serves" in live.run("nqsd", "status").ok().out
    assert r"b\xff: 0 requests" in live.run("nqsd", "status").ok().out
