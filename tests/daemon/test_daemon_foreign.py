"""Processes that nqspy did not start, under real daemons: scans see those that a file names."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from daemon.live import ONE_QUEUE, alive, until
from stillness import stands_still

from nqspy.daemon.failpoints import VARIABLE
from nqspy.executors import proc

SCAN = ONE_QUEUE + "set machine foreign_scan=300ms\n"
WAIT = "echo $$ > pid.{0}; while [ ! -e go ]; do sleep 0.02; done; echo done > done.{0}"

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")


@pytest.fixture
def outside():
    """Return a function that starts a busy loop on a PE (0: the first CPU that may be used)."""
    begun = []

    def spin(pe):
        cpu = sorted(os.sched_getaffinity(0))[pe]
        words = ["taskset", "-c", str(cpu), sys.executable, "-I", "-S", "-c", "while True: pass"]
        begun.append(subprocess.Popen(words))
        return begun[-1]

    yield spin
    for each in begun:
        each.kill()
        each.wait()


def seen(live, *pids) -> Path:
    """Let the scans of a home see only these processes."""
    file = live.home.with_suffix(".seen")
    file.write_text(" ".join(map(str, pids)))
    live.environment[VARIABLE] = f"foreign={file}"
    return file


def foreign(live):
    """Return the foreign jobs that ``show domain`` names."""
    [row] = live.shown("show domain")
    return row["foreign"]


def taken(live, *pes):
    until(lambda: [pe for job in foreign(live) for pe in job["pes"]] == list(pes), f"PEs {pes} are taken")


def test_nothing_starts_on_the_pe_of_a_busy_loop_until_it_ends(make_live, outside):
    loop = outside(1)
    live = make_live().site(SCAN)
    seen(live, loop.pid)
    live.start()
    taken(live, 1)
    [job] = foreign(live)
    assert (job["class"], job["pid"]) == ("foreign", loop.pid)
    first, second = (live.submit(WAIT.format(n)) for n in range(2))
    live.running(first)
    live.waits(second, f"process {loop.pid}")
    why = live.why(second)["reason"]
    assert (why["code"], why["who"]) == ("NO_PES", "machine")
    [event] = live.events("started", first)
    assert event["pes"] == [0]
    assert str(loop.pid) in live.run("nqsd", "status").ok().out
    [node] = json.loads(live.run("pbsnodes", "-a", "-F", "json").ok().out)["nodes"].values()
    assert str(loop.pid) in node["comment"]
    loop.kill()
    loop.wait()
    live.running(second)
    [event] = live.events("started", second)
    assert (event["pes"], foreign(live)) == ([1], [])
    assert len(live.events("foreign")) == 2
    (live.work / "go").touch()
    assert {live.ended(id)["exit_status"] for id in (first, second)} == {0}


def test_it_starts_beside_what_runs_and_its_own_jobs_are_none_of_them(make_live, outside):
    """The first pass knows already what a scan finds, also after a restart."""
    loop = outside(0)
    live = make_live().site(SCAN)
    file = seen(live, loop.pid)
    live.start()
    taken(live, 0)
    busy = live.submit("echo $$ > pid; while [ ! -e go ]; do :; done")
    live.running(busy)
    file.write_text(f"{loop.pid} {live.pid} {int(live.text('pid'))}")
    waits = live.submit("exit 0")
    live.waits(waits, "foreign")
    live.kill()
    live.start()
    live.waits(waits, "foreign")
    assert {job["pid"] for job in foreign(live)} == {loop.pid}, "a request is not foreign"
    assert len(live.events("starting", waits)) == 0
    loop.kill()
    loop.wait()
    live.ended(waits)
    (live.work / "go").touch()
    assert live.ended(busy)["end_reason"] == "exit"


def test_scans_are_off_unless_asked_for_and_end_with_the_setting(make_live, outside):
    loop = outside(1)
    live = make_live().site()
    seen(live, loop.pid)
    live.start()
    assert "foreign" not in set(threads(live.pid))
    live.set("set machine foreign_scan=300ms")
    taken(live, 1)
    live.set("set machine foreign_scan=off")
    taken(live)
    until(lambda: len(live.events("foreign")) == 2, "the event of its end")


def threads(pid):
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            yield proc.text(f"/proc/{pid}/task/{thread}/comm")


def test_two_homes_see_each_others_jobs(make_live):
    one, other = (make_live(name).site(SCAN) for name in ("one", "other"))
    seen(one)
    file = seen(other)
    one.start()
    id = one.submit("echo $$ > pid; while [ ! -e go ]; do :; done")
    one.running(id)
    file.write_text(one.text("pid"))
    other.start()
    taken(other, 0)
    late = other.submit("exit 0")
    other.ended(late)
    [event] = other.events("started", late)
    assert event["pes"] == [1]
    assert foreign(one) == []
    (one.work / "go").touch()
    assert one.ended(id)["exit_status"] == 0
    taken(other)


# ---------------------------------------------------------------- without the former state
def test_forgotten_jobs_go_on_as_foreign_ones(make_live):
    live = make_live().site().start()
    runs, ended = live.submit(WAIT.format("one")), live.submit("exit 0")
    live.running(runs)
    live.ended(ended)
    held = live.submit("exit 0", held=True)
    pid = int(live.text("pid.one"))
    live.stop()
    live.start("--forget", "--yes")
    assert alive(pid)
    taken(live, 0)
    assert len(live.client.requests()) == 0
    aside = [path.name for path in live.home.glob("nqs.db.forgotten-*") if path.name[-1].isdigit()]
    assert len(aside) == 1
    wide = live.submit("exit 0", pes=2)
    assert int(wide.split(".")[0]) == int(held.split(".")[0]) + 1, "no number is given out again"
    live.waits(wide, "foreign")
    late = live.submit("exit 0")
    live.ended(late)
    live.kill()
    seen(live)  # no others
    live.start()  # it stays what it is
    assert alive(pid)
    live.waits(wide, "foreign")
    (live.work / "go").touch()
    assert live.text("done.one") == "done\n"
    until(lambda: not alive(pid), "its end")
    live.set("set machine foreign_scan=300ms")  # sooner than in a minute
    assert live.ended(wide)["exit_status"] == 0
    assert not live.events("alarm")


def test_a_forgotten_job_that_was_stopped_goes_on(make_live):
    live = make_live().site().start()
    id = live.submit(WAIT.format("one"))
    live.running(id)
    pid = int(live.text("pid.one"))
    live.set(f"suspend request {id}")
    until(lambda: stands_still(pid), "it is stopped")
    live.stop()
    live.start("--forget", "--yes")
    until(lambda: not stands_still(pid), "it goes on")
    (live.work / "go").touch()
    assert live.text("done.one") == "done\n"
    until(lambda: not alive(pid), "its end")


def test_without_a_yes_at_a_terminal_nothing_is_forgotten(make_live):
    live = make_live().site().start()
    live.submit("exit 0", held=True)
    live.run("nqsd", "start", "--forget", "--yes").refused("serves", "already")
    live.stop()
    leader, follower = os.openpty()
    words = [sys.executable, "-c", "from nqspy.daemon.command import main; main()", "start", "--forget"]
    run = subprocess.Popen(words, env=live.environment, stdin=follower, stderr=follower)
    os.write(leader, b"n\n")
    assert run.wait() != 0
    os.close(follower)
    assert b"[y/N]" in os.read(leader, 10_000)
    os.close(leader)
    assert not list(live.home.glob("nqs.db.forgotten-*"))
    live.start()
    assert len(live.client.requests()) == 1


def test_a_wrong_file_of_queues_d_keeps_it_from_forgetting(make_live):
    live = make_live().site().start()
    live.stop()
    (live.home / "queues.d" / "20-wrong.qmgr").write_text("set shed_factor\n")
    done = live.run("nqsd", "start", "--forget")
    assert (done.status, "queues.d: 20-wrong.qmgr, line 1" in done.err) == (1, True)
    assert not list(live.home.glob("nqs.db.forgotten-*"))


def test_each_start_begins_a_log(make_live):
    live = make_live().site().start()
    live.restart()
    folder = live.home / "log"
    assert (folder / "nqsd.log").read_text().count("nqsd serves") == 1
    until(lambda: (folder / "nqsd.log.1.gz").exists(), "the former log is compressed")
    assert live.log.count("nqsd serves") == 2
