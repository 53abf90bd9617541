"""Swap control on the living machine: the marks are set around what is in use now, and real memory crosses
them."""

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from daemon.live import until
from stillness import stands_still

from nqspy.core import swap
from nqspy.daemon import memory
from nqspy.model.site import Site

MB = 1 << 20
BATCH = 300
"""MB that a request holds."""
STEP = 3.0
"""Per cent of the memory: room for what else the machine does meanwhile."""
TOTAL = memory.read().total
PEOPLE = int(TOTAL * (2 * STEP + 0.5) / 100) // MB
"""MB that people take: beyond the upper mark by as much as that is above what is in use before."""

needs_room = pytest.mark.skipif(
    memory.read().available < 3 * PEOPLE * MB or PEOPLE > 8000,
    reason="needs a fifth of the memory free, and a machine of less than 120 GB",
)


def hold(size: int, mark: str) -> str:
    """Return a program that holds so many MB until its standard input ends, or for ever."""
    code = f"held = bytearray(b'x') * ({size} << 20); open('{mark}', 'w').write('holds\\n'); import time; "
    return f'{sys.executable} -c "{code}time.sleep(600)"'


class People:
    """Takes memory for some time."""

    def __init__(self, live, size: int) -> None:
        self.mark = live.work / "people"
        self.child = subprocess.Popen(hold(size, str(self.mark)), shell=True, start_new_session=True)
        until(self.mark.exists, "the memory is taken")

    def go(self) -> None:
        os.killpg(self.child.pid, 9)
        self.child.wait()


@contextlib.contextmanager
def crowded(live, id):
    """Take memory until a request gives way: also what other processes release meanwhile."""
    there = [People(live, PEOPLE)]
    try:
        while not _comes(lambda: live.job(id)["state"] == "suspended", 15):
            assert len(there) < 6, f"{id} should give way"
            there.append(People(live, int(TOTAL * STEP / 100) // MB))
        yield
    finally:
        for each in there:
            each.go()


def _comes(condition, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def marks() -> str:
    """Return settings of swap control with the upper mark slightly above the present use."""
    used = memory.read().used
    high, low = used + STEP + 1, used + STEP
    return f"set swap_control on high={high:.1f} low={low:.1f} min_resident=1 interactive=off psi=100"


@pytest.fixture
def hog(live):
    """Start a request that holds memory; return it with its process."""
    id = live.submit(f"exec {hold(BATCH, 'batch')}")
    live.running(id)
    live.text("batch")
    mine = str(live.work).encode()
    [pid] = [
        int(entry) for entry in os.listdir("/proc") if entry.isdigit() and _is_hog(entry, mine)
    ]  # fmt: skip
    yield id, pid
    live.run("qdel", "-k", id)


def _is_hog(pid: str, folder: bytes) -> bool:
    try:
        there = os.readlink(f"/proc/{pid}/cwd").encode() == folder
        return there and b"bytearray" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@needs_room
def test_a_request_gives_way_to_people_and_comes_back_when_they_have_gone(live, hog):
    id, pid = hog
    live.set(marks())
    assert not stands_still(pid)
    with crowded(live, id):
        until(lambda: stands_still(pid), "its process is stopped")
        why = live.why(id)
        assert why["reason"]["code"] == "MEMORY"
        message = r"\d+ Mw in memory.* \d+ % in use"
        assert re.search(message, why["reason"]["text"])
        assert re.search(message, live.run("qstat", "--why", id).ok().out)
        shown = live.run("qmgr", "-c", "show swap_control").ok().out
        assert re.search(rf"{id} +gave way once \(\d+ Mw\), is away", shown), shown
        late = live.submit("true")
        live.restart()
        assert (live.job(id)["state"], live.job(late)["state"]) == ("suspended", "queued")
        assert stands_still(pid)
    live.until(id, lambda job: job["state"] == "running", "come back")
    until(lambda: not stands_still(pid), "its process goes on")
    live.ended(late)
    levels = [event["level"] for event in live.events("pressure")]
    assert levels[0] == "high"
    assert levels[-1] == "calm"
    [away] = live.events("suspended", id)
    assert away["by"] == "swap"


def test_with_nothing_to_do_nobody_looks_at_the_memory(monkeypatch):
    looks = []
    monkeypatch.setattr(memory, "read", lambda: looks.append(1) or memory.MachineMemory(100, 90, 0, 0.0))
    monkeypatch.setattr(memory, "SELDOM", 0.01)
    site = Site()
    swap.CONTROL.one(site.settings).enabled = True
    watch = memory.PressureWatch(lambda observation: None, lambda attempts: {})
    watch.follow(site)
    assert watch._thread is None, "no thread before it is needed"
    site.started[1] = SimpleNamespace(seq=1, attempts=1, pause=None)
    watch.follow(site)
    until(lambda: len(looks) > 2, "it looks")
    site.started.clear()
    watch.follow(site)
    seen = len(looks) + 1  # a look may be under way
    threading.Event().wait(0.2)
    assert len(looks) <= seen
    watch.close()


# ---------------------------------------------------------------- what the kernel says
def test_the_kernels_figures_are_read(monkeypatch):
    now = memory.read()
    assert 0 < now.available < now.total
    assert 0 < now.used < 100
    for text, stalled in (("some avg10=12.34 avg60=1.00\nfull avg10=3.00", 12.34), ("", 0.0)):
        monkeypatch.setattr(memory.proc, "text", lambda path, text=text: text)
        assert memory.read().stalled == stalled


def test_people_work_where_somebody_typed_of_late(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_TERMINALS", tmp_path)
    for name, ago in (("0", 170), ("ptmx", 0), ("7", 40)):
        assert not memory.people_at_work(120)
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - ago,) * 2)
    assert memory.people_at_work(120)


def test_input_at_a_terminal_is_seen_as_work():
    master, slave = os.openpty()
    try:
        os.write(master, b"ls\n")
        os.read(slave, 10)
        assert memory.people_at_work(120)
    finally:
        os.close(master)
        os.close(slave)
