"""A process that has ended stays for its tracer: whoever traces his own keeps no PE by that."""

import os
import signal
import subprocess
import sys

import pytest
from executors.conftest import BOTH
from msgspec.structs import replace

from nqspy.executors import proc
from nqspy.model.actions import Kill

TRACE = """
import ctypes, sys, time
seize = ctypes.CDLL(None, use_errno=True).ptrace(0x4206, int(sys.argv[1]), None, None)
print("seized" if seize == 0 else ctypes.get_errno(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def trace():
    """Traces a process from outside, and never waits for it."""
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


def leader(bench):
    return int(bench.text("leader"))


@BOTH
def test_a_limit_ends_it(bench, trace, ask):
    request = bench.running("echo $$ > leader; exec sleep 600", ask=replace(ask, wall=1_000))
    trace(leader(bench))
    assert bench.ending(request).reason == "wall_limit"


@BOTH
def test_it_can_be_deleted(bench, trace, ask):
    request = bench.running("echo $$ > leader; exec sleep 600", ask=ask)
    trace(leader(bench))
    bench.do(Kill(request.seq, 1, "deleted", 100))
    ending = bench.ending(request)
    assert (ending.reason, ending.signal) == ("deleted", signal.SIGKILL), (
        "a traced process stops at the first"
    )


@BOTH
def test_it_ends_by_itself_with_its_own_status(bench, trace, ask):
    # Not a shell: the end of a child is a signal, at which a traced process stops.
    wait = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)\nos._exit(7)"
    request = bench.running(f'echo $$ > leader; exec python3 -S -c "{wait}"', ask=ask)
    trace(leader(bench))
    bench.go()
    ending = bench.ending(request)
    assert (ending.reason, ending.status) == ("exit", 7)


@BOTH
def test_a_child_that_is_traced_keeps_it_no_longer_either(bench, trace, ask):
    script = "(setsid sleep 600 & echo $! > leader); until test -e go; do sleep 0.05; done; exit 3"
    request = bench.running(script, ask=ask)
    trace(pid := leader(bench))
    bench.go()
    ending = bench.ending(request)
    assert (ending.reason, ending.status) == ("exit", 3)
    assert (seen := proc.stat(pid)) is not None
    assert seen.dead


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
    assert not os.path.exists(f"/proc/{leader(bench)}")
