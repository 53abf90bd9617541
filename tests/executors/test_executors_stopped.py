"""A job stops its own shepherd, or the spawner: they continue, its end and limits are noticed, no PE is
lost."""

import os
import signal
import sys

import pytest
from executors.conftest import BOTH, gone, state
from msgspec.structs import replace

from nqspy.executors import scan, watch
from nqspy.model.actions import Adjust, Kill, Signal
from nqspy.model.observations import ObservedExiting, ObservedLost, ObservedRunning, ObservedUse
from nqspy.model.requests import Ask, Output

STOP = "kill -STOP $PPID\n"
TRACE = """
import ctypes, os, time
who = int(os.environ["WHO"])
libc = ctypes.CDLL(None)
if libc.ptrace(0x4206, who, 0, 0) or libc.ptrace(0x4207, who, 0, 0):
    os._exit(os.open("refused", os.O_CREAT))
os.waitpid(who, 0x40000000)
open("traced", "w").write(str(os.getpid()))
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Check the shepherds often."""
    monkeypatch.setattr(watch, "_PACE", 0.3)
    monkeypatch.setattr(watch, "_SOON", 0.05)


@BOTH
def test_its_end_is_seen_and_its_wall_limit_holds(bench, ask):
    assert bench.run(f"{STOP}exit 3", ask=ask).status == 3
    assert bench.run(f"{STOP}exec sleep 600", ask=replace(ask, wall=500)).reason == "wall_limit"


def test_it_is_killed_when_that_is_asked_for_and_at_once(bench, monkeypatch):
    monkeypatch.setattr(watch, "_PACE", 600.0)
    bench.ending(bench.start("true"))  # the first look has been
    request = bench.running("until test -e go; do sleep 0.01; done; kill -STOP $PPID; exec sleep 600")
    bench.until((bench.folder(request) / "control").exists, "its shepherd listens")
    bench.go()
    bench.until(lambda: state(bench.shepherd(request)) == "T", "it stands still")
    assert bench.kill(request, 0, number=signal.SIGKILL).reason == "deleted"


def test_who_stops_it_again_and_again_is_lost_and_nothing_of_him_is_left(bench, monkeypatch):
    monkeypatch.setattr(scan, "BRIEF", 3600.0)  # on a busy machine it takes minutes
    request = bench.start("echo $$ > pid; while kill -STOP $PPID; do :; done; exec sleep 600")
    lost = bench.expect(ObservedLost, request)
    assert lost.brief
    assert not lost.unsure
    bench.until(lambda: gone(bench.number("pid")), "its end")
    assert bench.run("true").status == 0


def test_one_that_is_traced_and_held_is_lost(bench):
    (bench.work / "trace.py").write_text(TRACE)
    request = bench.start(f"WHO=$PPID {sys.executable} -S trace.py; exec sleep 600")
    bench.until(lambda: (bench.work / "traced").exists() or (bench.work / "refused").exists(), "a tracer")
    if (bench.work / "refused").exists():
        bench.do(Kill(request.seq, 1, "deleted", 0, signal.SIGKILL))
        pytest.skip("nobody may trace here")
    bench.expect(ObservedLost, request)
    bench.until(lambda: gone(bench.number("traced")), "the tracer's end")


@pytest.mark.parametrize("ends", [True, False])
def test_one_that_was_stopped_while_no_daemon_was_there_goes_on_under_the_next(make_bench, ends):
    first = make_bench()
    after = "exit 4" if ends else "exec sleep 600"
    request = first.running(f"until test -e go; do sleep 0.01; done; {STOP}{after}", ask=Ask(wall=60_000))
    pid = first.shepherd(request)
    first.leave()
    first.go()
    first.until(lambda: state(pid) == "T", "it stands still")
    second = make_bench()
    [seen] = second.scan()
    assert isinstance(seen, (ObservedRunning, ObservedExiting))
    if ends:
        assert second.ending(request).status == 4
    else:
        assert second.kill(request, 0, number=signal.SIGKILL).reason == "deleted"


def test_a_job_that_a_person_stops_stays_stopped(bench, monkeypatch):
    monkeypatch.setattr(watch, "_PACE", 0.05)
    request = bench.running("echo $$ > pid; exec sleep 600")
    pid = bench.number("pid")
    bench.do(Signal(request.seq, 1, signal.SIGSTOP))
    bench.until(lambda: state(pid) == "T", "it is stopped")
    assert bench.run(f"{STOP}exit 5").status == 5, "shepherds were looked at meanwhile"
    assert state(pid) == "T"
    assert bench.kill(request, 0, number=signal.SIGKILL).reason == "deleted"


def test_what_is_said_before_its_end_is_seen_still_holds(bench):
    request = bench.running("echo $$ > pid; until test -e go; do sleep 0.02; done; echo out")
    pid, keeper = bench.number("pid"), bench.shepherd(request)
    os.kill(keeper, signal.SIGSTOP)
    bench.go()
    bench.until(lambda: state(pid) == "Z", "the job has ended")
    request.spec = replace(request.spec, output=Output(stdout=f"{bench.work}/later"))
    bench.do(Adjust(request.seq, 1), request)  # has the shepherd go on, too
    assert bench.ending(request).status == 0
    assert (bench.work / "later").read_text() == "out\n"


def test_a_spawner_that_is_stopped_goes_on(bench):
    spawner = bench.spawner
    request = bench.running(f"kill -STOP {spawner}; exec sleep 600")
    bench.until(lambda: state(spawner) != "T", "it goes on")
    bench.kill(request, 0, number=signal.SIGKILL)
    os.kill(spawner, signal.SIGSTOP)
    bench.until(lambda: state(spawner) == "T", "it stands still")
    assert bench.run("exit 6").status == 6
    assert not [seen for seen in bench.seen if not isinstance(seen, (ObservedRunning, ObservedUse))]
