"""Running requests pushed together on real processes: all their processes are bound to other CPUs, and a
kill -9 of the daemon around the move loses nothing."""

import contextlib
import os
from pathlib import Path

import pytest
from daemon.live import ROOT, Live, until

from nqspy.daemon.failpoints import VARIABLE
from nqspy.daemon.home import Home, running_pid

SITE = """\
set machine pes=4
set domain application placement=first_block balance_heartbeat=1
create batch_queue batch priority=10 workdir=submit
enable queue batch
start queue batch
set default batch_request queue batch
"""
FEW_CPUS = """\
import sys
if any("daemon" in word or "nqsd" in word for word in sys.orig_argv):
    from nqspy.executors.local import LocalExecutor
    from nqspy.model.machine import Found

    LocalExecutor.found = lambda self: Found({cpus}, 1 << 30)
"""
"""PEs 0 and 1 are on one CPU, 2 and 3 on the other: two CPUs are enough for a hole on both sides."""
TREE = "(setsid sleep 600) &\n(while :; do sleep 0.02; done) &\necho go\nwait\n"
pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")


@pytest.fixture
def live(tmp_path):
    one, other = sorted(os.sched_getaffinity(0))[:2]
    (tmp_path / "patch").mkdir()
    (tmp_path / "patch" / "sitecustomize.py").write_text(FEW_CPUS.format(cpus=(one, one, other, other)))
    live = Live(tmp_path / "home", tmp_path / "work").site(SITE)
    live.environment["PYTHONPATH"] = f"{tmp_path / 'patch'}:{ROOT}"
    yield live
    live.close()


def bound(live, id):
    """Return the CPUs of all processes of a request, as a set of tuples."""
    mark, found = f"QSUB_REQID={id}".encode(), set()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            environment = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
            if mark in environment and f"NQSPY_HOME={live.home}".encode() in environment:
                found.add(tuple(os.sched_getaffinity(int(entry))))
    return found


def begin(live):
    """Run a request on PE 2 with a hole on both sides; return it, and the number of the CPUs of the PEs."""
    fillers = [live.submit("sleep 600"), live.submit("sleep 600")]
    mover, last = live.submit(TREE, pes=1), live.submit("sleep 600", pes=1)
    for each in (*fillers, mover, last):
        live.running(each)
    assert live.job(mover)["pes"] == [2]
    cpus = sorted(os.sched_getaffinity(0))[:2]
    until(lambda: bound(live, mover) == {(cpus[1],)}, "it is bound to its PE")
    live.client.delete(fillers[1], last, kill=True)
    live.ended(fillers[1])
    live.ended(last)
    return mover, cpus


def test_all_processes_of_a_moved_request_are_bound_to_its_new_pes(live):
    live.start()
    mover, cpus = begin(live)
    wide = live.submit("true", pes=2)
    assert live.ended(wide)["exit_status"] == 0
    assert live.job(mover)["pes"] == [1]
    until(lambda: bound(live, mover) == {(cpus[0],)}, "all of it has moved, and what it forks")
    [event] = live.events("migrated")
    assert event["pes"] == [1]
    assert live.job(mover)["state"] == "running"
    live.client.delete(mover, kill=True)
    live.ended(mover)
    live.stop()
    assert live.run("nqspy", "replay", "--json").ok().data["differences"] == 0, (
        "it happens again to the event"
    )


@pytest.mark.parametrize("point", ["hand", "handed"])
def test_a_kill_around_the_move_loses_nothing(live, point):
    live.start()
    mover, cpus = begin(live)
    live.set("set domain application balance_heartbeat=none")
    wide = live.submit("true", pes=2)
    live.waits(wide, "at most 1 in one block")
    live.stop()
    live.environment[VARIABLE] = f"{point}=kill@1"
    live.start()
    live.environment[VARIABLE] = ""
    with contextlib.suppress(Exception):  # it may die before it answers
        live.set("set domain application balance_heartbeat=1")
    until(lambda: running_pid(Home(live.home)) is None, "its death")
    live.hang_up()
    assert point == "handed" or bound(live, mover) == {(cpus[1],)}, "the message was sent"
    live.start()
    assert live.ended(wide)["exit_status"] == 0
    assert len(live.events("migrated")) == 1
    assert live.job(mover)["pes"] == [1]
    assert live.job(mover)["attempt"] == 1
    until(lambda: bound(live, mover) == {(cpus[0],)}, "the next daemon has it moved")
