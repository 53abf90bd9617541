"""A traced process that has ended keeps no PE; suspending stops every process, one just forked as well."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from itertools import chain, repeat

import pytest
from executors.conftest import BOTH, wait_until
from msgspec.structs import replace

from nqspy.executors import cgroups, proc

TRACE = """
import ctypes, sys, time
seize = ctypes.CDLL(None, use_errno=True).ptrace(0x4206, int(sys.argv[1]), None, None)
print("seized" if seize == 0 else ctypes.get_errno(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def trace():
    """Trace a process from outside, and never wait for it."""
    tracers = []

    def begin(pid):
        tracer = subprocess.Popen([sys.executable, "-c", TRACE, str(pid)], stdout=subprocess.PIPE, text=True)
        tracers.append(tracer)
        assert tracer.stdout is not None
        if tracer.stdout.readline() != "seized\n":
            pytest.skip("nobody may trace here")

    yield begin
    for each in tracers:
        each.kill()
        each.communicate()


SLEEP = "echo $$ > leader; exec sleep 600"
# Not a shell: the end of a child is a signal, at which a traced process stops.
WAITS = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)\nos._exit(7)"
CHILD = "(setsid sleep 600 & echo $! > leader); until test -e go; do sleep 0.05; done; exit 3"


@BOTH
@pytest.mark.parametrize(
    ("script", "wall", "end"),
    [
        (SLEEP, 1_000, ("wall_limit", None, signal.SIGKILL)),
        (f'echo $$ > leader; exec python3 -S -c "{WAITS}"', None, ("exit", 7, None)),
        (CHILD, None, ("exit", 3, None)),
    ],
    ids=["limit", "by itself", "child"],
)
def test_it_ends_by_a_limit_or_by_itself_with_its_own_status(bench, trace, ask, script, wall, end):
    request = bench.running(script, ask=replace(ask, wall=wall or ask.wall))
    trace(pid := bench.number("leader"))
    bench.go()
    ending = bench.ending(request)
    assert (ending.reason, ending.status, ending.signal) == end
    if script == CHILD:
        assert (seen := proc.stat(pid)) is not None
        assert seen.dead


@BOTH
def test_it_can_be_deleted(bench, trace, ask):
    request = bench.running(SLEEP, ask=ask)
    trace(bench.number("leader"))
    ending = bench.kill(request, 100)
    assert (ending.reason, ending.signal) == ("deleted", signal.SIGKILL), "it stops at the first signal"


def test_threads_that_outlive_their_first_are_no_dead_process(bench):
    code = (
        "import ctypes, threading, time\n"
        "def later():\n"
        "    time.sleep(1.2)\n"
        "    open('end', 'w').write('x')\n"
        "threading.Thread(target=later).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    (bench.work / "threads.py").write_text(code)
    bench.run("echo $$ > leader; exec python3 -S threads.py")
    assert (bench.work / "end").exists(), "nobody ended it before"
    assert not os.path.exists(f"/proc/{bench.number('leader')}")


# ---------------------------------------------------------------- suspending stops every process
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


@contextlib.contextmanager
def running(script, *more):
    """Start a process; end it with all its children after the test."""
    words = [sys.executable, "-IS", "-c", script, *more]
    with subprocess.Popen(words, stdout=subprocess.PIPE, bufsize=0) as parent:
        try:
            yield parent
        finally:
            proc.send([parent.pid, *proc.descendants(parent.pid)], signal.SIGKILL)


@pytest.fixture
def waits(tmp_path):
    """Return a process that waits for its child to exec, which a FIFO prevents; and that child."""
    os.mkfifo(tmp_path / "fifo")
    with running(SPAWNS, str(tmp_path / "fifo")) as parent:
        [child] = wait_until(lambda: proc.children(parent.pid), "the child is there")
        yield parent.pid, child


def frozen(lists):
    """Freeze a job whose processes are listed so; return how long that took."""
    job, since = cgroups.JobGroup(), time.monotonic()
    job.pids = lists
    job.freeze()
    return time.monotonic() - since


def test_a_child_that_comes_from_a_fork_after_the_signal_is_stopped(waits):
    """Like a parent in the middle of a fork, a process that waits in state D does not stop at once."""
    parent, _ = waits
    with running("import time; time.sleep(60)") as late:
        lists = chain([[parent]] * 6, repeat([parent, late.pid]))
        frozen(lambda: next(lists))
        assert proc.stopped([late.pid]) == {late.pid}


def test_a_child_of_a_large_process_is_stopped_while_it_is_forked():
    for _ in range(3):
        with running(FORKS) as parent:
            assert proc.stopped([parent.pid]) == set()  # it runs
            assert parent.stdout.read(3) == b"now"
            pids = lambda: [parent.pid, *proc.descendants(parent.pid)]  # noqa: E731
            frozen(pids)
            wait_until(lambda: proc.stopped([parent.pid]), "the fork is over")
            assert proc.stopped(pids()) == set(pids())


def test_a_parent_that_waits_for_its_child_to_exec_counts_as_stopped(waits):
    assert frozen(lambda: [*waits]) < cgroups.STOPPING
    assert proc.stopped([*waits]) == set(waits)
