"""Memory of the machine, and people at terminals, as the kernel shows them; watched while swap control is on
and could act: a thread reads the kernel's figures and puts observations into the inbox. It checks every 2 s
while memory is or may become scarce, else every 5 s. The thread starts when it is first needed."""

import contextlib
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from nqspy.core import swap
from nqspy.daemon.log import LOG
from nqspy.executors import proc
from nqspy.model.health import Level
from nqspy.model.ids import Seq
from nqspy.model.observations import ObservedPressure
from nqspy.model.site import Site

_TERMINALS = Path("/dev/pts")


class MachineMemory(Struct, frozen=True):
    """Memory of the machine in bytes: all, available, swap space. ``stalled``: per cent of the last 10 s in
    which a process waited for memory."""

    total: int
    available: int
    swap: int
    stalled: float

    @property
    def used(self) -> float:
        """Return the per cent of memory in use."""
        return 100 * (self.total - self.available) / self.total if self.total else 0.0


def read() -> MachineMemory:
    """Return the memory now. Raises OSError."""
    text = proc.contents("/proc/meminfo").decode("ascii")
    names = ("MemTotal:", "MemAvailable:", "SwapTotal:")
    total, available, size = (proc.field(text, name) * 1024 for name in names)
    # There is no such file where the kernel has no CONFIG_PSI, or it is switched off.
    stalled = re.match(r"some avg10=([\d.]+)", proc.text("/proc/pressure/memory"))
    return MachineMemory(total, available, size, float(stalled[1]) if stalled else 0.0)


def people_at_work(idle: float) -> bool:
    """True if a terminal had input in the last ``idle`` real seconds, by its access time (like w(1))."""
    since = time.time() - idle
    for entry in _TERMINALS.iterdir() if _TERMINALS.is_dir() else ():
        with contextlib.suppress(OSError):  # closed meanwhile
            if entry.name.isdigit() and entry.stat().st_atime > since:
                return True
    return False


OFTEN = 2.0
"""Real seconds between two checks while memory is or may become scarce."""
SELDOM = 5.0
"""Real seconds between two checks while memory is plentiful."""

Residents = Callable[[Mapping[Seq, int]], Mapping[Seq, int]]


class _Task(Struct, frozen=True):
    """Settings and state that a check needs: ``attempts`` by request; ``level``: the last one; ``away``: True
    while swap control has suspended requests."""

    control: swap.SwapControl
    attempts: dict[Seq, int]
    level: Level
    away: bool


class PressureWatch:
    """Watches memory on its own thread; calls ``put`` with observations. ``residents``: returns the bytes in
    memory of running requests."""

    def __init__(self, put: Callable[[ObservedPressure], None], residents: Residents) -> None:
        self._put = put
        self._residents = residents
        self._task: _Task | None = None
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def follow(self, site: Site) -> None:
        """Start, continue or pause the checks by the site's state; called after each turn."""
        control, level = swap.CONTROL.one(site.settings), site.pressure.level
        task = None
        if control.enabled and (site.started or level != "calm"):
            attempts = {request.seq: request.attempts for request in site.started.values()}
            task = _Task(replace(control), attempts, level, any(True for _ in swap.suspended(site)))
        before, self._task = self._task, task
        if task is None:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="memory", daemon=True)
            self._thread.start()
        if before is None or before.control != task.control:
            self._wake.set()

    def close(self) -> None:
        """Stop the thread that checks the memory."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping:
            task, pause = self._task, None
            if task is not None:
                try:
                    pause = self._check(task)
                except Exception:
                    LOG.exception("the use of memory could not be measured")
                    pause = SELDOM
            self._wake.wait(pause)
            self._wake.clear()

    def _check(self, task: _Task) -> float:
        """Check memory once; return the real seconds until the next check."""
        now = read()
        people = task.control.interactive and people_at_work(task.control.idle / 1000)
        reading = swap.Reading(now.used, now.stalled, people)
        level, text = swap.judge(task.control, reading, task.level)
        if level != "calm" or task.level != "calm" or task.away:
            resident = tuple(sorted(self._residents(task.attempts).items()))
            self._put(ObservedPressure(level, round(now.used, 1), text, resident, now.total, people))
            return OFTEN
        return OFTEN if swap.near(task.control, reading) else SELDOM
