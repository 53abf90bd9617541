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

import pytest
from daemon.live import until
from stillness import stands_still

from nqspy.daemon import memory
from nqspy.daemon.memory import parse_meminfo, parse_pressure, typed_since

MB = 1 << 20
BATCH = 300
"""MB that a request holds."""
STEP = 3.0
"""Per cent of the memory: room for what else the machine does meanwhile."""
TOTAL = memory.look().total
PEOPLE = int(TOTAL * (2 * STEP + 0.5) / 100) // MB
"""MB that people take: beyond the upper mark by as much as that is above what is in use before."""

needs_room = pytest.mark.skipif(
    memory.look().available < 3 * PEOPLE * MB or PEOPLE > 8000,
    reason="needs a fifth of the memory free, and a machine of less than 120 GB",
)


def hold(size: int, mark: str) -> str:
    """A program that holds so many MB until its standard input ends, or for ever."""
    code = f"held = bytearray(b'x') * ({size} << 20); open('{mark}', 'w').write('holds\\n'); import time; "
    return f'{sys.executable} -c "{code}time.sleep(600)"'


class People:
    """Somebody who takes memory for a while."""

    def __init__(self, live, size: int) -> None:
        self.mark = live.work / "people"
        self.child = subprocess.Popen(hold(size, str(self.mark)), shell=True, start_new_session=True)
        until(self.mark.exists, "the memory is taken")

    def go(self) -> None:
        os.killpg(self.child.pid, 9)
        self.child.wait()


@contextlib.contextmanager
def crowded(live, id):
    """People take memory until a request gives way: also what others on the machine give back meanwhile."""
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
    """Swap control with the upper mark a little above what is in use now."""
    used = memory.look().used
    high, low = used + STEP + 1, used + STEP
    return f"set swap_control on high={high:.1f} low={low:.1f} min_resident=1 interactive=off psi=100"


@pytest.fixture
def hog(live):
    """A running request that holds memory, and its process."""
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
        said = r"its memory \(\d+ Mw resident\) gives way: \d+ % in use; it comes back when there is room"
        assert re.fullmatch(said, why["reason"]["text"])
        assert re.search(said, live.run("qstat", "--why", id).ok().out)
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


@pytest.mark.slow
def test_with_nothing_to_do_nobody_looks_at_the_memory(live):
    def threads():
        return {task.name: task for task in Path(f"/proc/{live.pid}/task").iterdir()}

    live.ended(live.submit("true"))
    threading.Event().wait(1.0)  # what the first request left to do
    known = threads()
    live.set("set swap_control on high=99 low=98 psi=100")
    live.submit("true", held=True)
    live.hang_up()
    assert threads().keys() == known.keys(), "no thread before it is needed"
    live.ended(live.submit("true"))
    live.hang_up()
    [watch] = set(threads()) - set(known)

    def looks():
        status = (threads()[watch] / "status").read_text()
        return int(re.search(r"^voluntary_ctxt_switches:\t(\d+)", status, re.MULTILINE)[1])

    threading.Event().wait(6.0)  # a look that was under way has seen that nothing runs
    before = looks()
    threading.Event().wait(6.0)
    assert looks() == before


def test_the_doctor_says_what_giving_way_means_here(live):
    done = live.run("nqspy", "doctor", "--json").ok()
    [found] = [each for each in done.data if each["what"] == "memory"]
    assert ("no swap" in found["text"]) == (memory.look().swap == 0)


# ---------------------------------------------------------------- what the kernel says


def test_the_kernels_figures_are_read():
    found = parse_meminfo(
        "MemTotal:       24684096 kB\nMemAvailable:   20000000 kB\nHugePages_Total:       0\n"
    )
    assert found == {"MemTotal": 24684096 * 1024, "MemAvailable": 20000000 * 1024}
    text = "some avg10=12.34 avg60=1.00 avg300=0.10 total=9\nfull avg10=3.00 avg60=0.00 avg300=0.00 total=1\n"
    assert parse_pressure(text) == 12.34
    assert parse_pressure("") == 0.0
    now = memory.look()
    assert 0 < now.available < now.total
    assert 0 < now.used < 100


def test_people_work_where_somebody_typed_of_late():
    assert typed_since([100.0, 260.0], 300.0 - 120.0)
    assert not typed_since([100.0, 170.0], 300.0 - 120.0)
    assert not typed_since([], 0.0)


def test_input_at_a_terminal_is_seen_as_work():
    master, slave = os.openpty()
    try:
        os.write(master, b"ls\n")
        os.read(slave, 10)
        assert memory.people_at_work(120)
    finally:
        os.close(master)
        os.close(slave)
