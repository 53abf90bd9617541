"""Suspending stops every process of a job, one that is being forked as well."""

import os
import signal
import subprocess
import sys
import time
from itertools import chain, repeat

import pytest
from executors.conftest import wait_until

from nqspy.executors import cage, proc

FORKS = """
import os, time
memory = b"x" * (48 << 20)  # so that a fork takes a while
os.write(1, b"now")
os.fork()
time.sleep(60)
"""
SPAWNS = """
import os, sys
os.posix_spawn("/bin/cat", ["cat"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)])
"""


def begun(script, *more):
    words = [sys.executable, "-IS", "-c", script, *more]
    return subprocess.Popen(words, stdout=subprocess.PIPE, bufsize=0)


def end(pids):
    proc.send(pids, signal.SIGKILL)


@pytest.fixture
def waits(tmp_path):
    """A process that waits for its child to exec, which a FIFO keeps from it; and that child."""
    os.mkfifo(tmp_path / "fifo")
    with begun(SPAWNS, str(tmp_path / "fifo")) as parent:
        try:
            [child] = wait_until(lambda: proc.children(parent.pid), "the child is there")
            yield parent.pid, child
        finally:
            end([parent.pid, *proc.descendants(parent.pid)])


def frozen(lists):
    """Freeze a job whose processes are listed so; return how long that took."""
    job, since = cage.Cage(), time.monotonic()
    job.pids = lists
    job.freeze()
    return time.monotonic() - since


def test_a_child_that_comes_from_a_fork_after_the_signal_is_stopped(waits):
    """As a parent in the middle of a fork, one that waits in state D does not stop at once."""
    parent, _ = waits
    with begun("import time; time.sleep(60)") as late:
        lists = chain([[parent]] * 6, repeat([parent, late.pid]))
        frozen(lambda: next(lists))
        try:
            assert proc.stopped([late.pid]) == {late.pid}
        finally:
            end([late.pid])


def test_a_child_of_a_large_process_is_stopped_while_it_is_forked():
    for _ in range(3):
        with begun(FORKS) as parent:
            assert parent.stdout.read(3) == b"now"
            pids = lambda: [parent.pid, *proc.descendants(parent.pid)]  # noqa: E731
            frozen(pids)
            wait_until(lambda: proc.stopped([parent.pid]), "the fork is over")
            try:
                assert proc.stopped(pids()) == set(pids())
            finally:
                end(pids())


def test_a_parent_that_waits_for_its_child_to_exec_counts_as_stopped(waits):
    assert frozen(lambda: [*waits]) < cage.STOPPING
    assert proc.stopped([*waits]) == set(waits)


def test_a_process_that_runs_is_not_stopped():
    with begun(FORKS) as parent:
        try:
            assert proc.stopped([parent.pid]) == set()
        finally:
            end([parent.pid])
