"""Measures what a running job uses and says which limit it has passed.

Real seconds inside; what is asked and told is in ms of the site's clock: real time x speed.
"""

from __future__ import annotations

import os
import resource
import signal
from typing import Any

from nqspy.executors import proc
from nqspy.executors.cage import Cage

_SLOWEST = 1.0
_QUICK = 0.25
_FASTEST = 0.02
_FIRST = 0.2
_IDLE = 60.0
_NOTABLE = 0.2


class Reaped:
    """What the processes of one job that have been waited for had used: CPU seconds, and the memory of the
    largest in bytes."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self.memory = 0

    def add(self, usage: resource.struct_rusage) -> None:
        """One more, with those that it had waited for itself."""
        self.cpu += usage.ru_utime + usage.ru_stime
        self.memory = max(self.memory, usage.ru_maxrss * 1024)


class Meter:
    """Use and limits of one job. ``memory``: greatest seen so far, in bytes; ``closing``: it is being
    ended, limits matter no more."""

    def __init__(self, cage: Cage, order: dict[str, Any], started: float, reaped: Reaped) -> None:
        self.cage = cage
        self.reaped = reaped
        self.limits: dict[str, int | None] = order["limits"]
        self.speed: float = order["speed"]
        self.grace: float = order["grace"] / 1000
        self.started = started
        self.stopped: float | None = None
        self.paused = 0.0
        self.cpu = 0.0
        self.memory = 0
        self.processes: int | None = order.get("processes")
        self.tasks = 0
        self.told = 0.0
        self.sampled = started
        self.warned = False
        self.closing = False
        self.over: dict[int, float] = {}
        self.cpus = len(order["cpus"] or ()) or os.cpu_count() or 1

    def stop(self, now: float) -> None:
        """The job is suspended: its wall time stands still."""
        if self.stopped is None:
            self.stopped = now

    def go(self, now: float) -> None:
        """The job goes on."""
        if self.stopped is not None:
            self.paused += now - self.stopped
            self.stopped = None

    def wall(self, now: float) -> float:
        """Real seconds it has run, without those it was suspended."""
        return (self.stopped if self.stopped is not None else now) - self.started - self.paused

    def used(self, now: float) -> list[int]:
        """CPU and wall time in ms of the clock, greatest memory in bytes."""
        return [self._clock(self.cpu), self._clock(self.wall(now)), self.memory]

    def notable(self) -> bool:
        """Whether CPU use has grown enough since this was last True to be told."""
        if self.cpu - self.told < _NOTABLE:
            return False
        self.told = self.cpu
        return True

    def _hole_left(self, now: float) -> float:
        """Real seconds until the hole ends that it was started in: suspended it goes by as well."""
        hole = self.limits.get("hole")
        return _IDLE if hole is None else self._real(hole) - (now - self.started)

    def due(self, now: float) -> float:
        """Real seconds until the next sample: one, fewer where a limit could be passed sooner."""
        if self.stopped is not None:
            return max(0.0, min(_IDLE, self._hole_left(now)))
        pace = _SLOWEST if self.speed <= 1 and self.limits["memory"] is None else _QUICK
        if self.closing:
            return max(0.0, self.sampled + pace - now)
        if self.sampled == self.started:
            pace = _FIRST
        for limit in (self.limits["cpu"], self.limits["cpu_process"], self._open_warning()):
            left = self._real(limit) - self.cpu if limit is not None else _IDLE
            pace = min(pace, max(_FASTEST, left / self.cpus)) if left > 0 else min(pace, _QUICK)
        if self._near_memory():
            pace = min(pace, 0.05)
        wait = self.sampled + pace - now
        if self.limits["wall"] is not None:
            wait = min(wait, self._real(self.limits["wall"]) - self.wall(now))
        return max(0.0, min(wait, self._hole_left(now)))

    def sample(self, now: float) -> None:
        """Measures now."""
        self.sampled = now
        pids = self.cage.pids()
        found = {pid: reading for pid in pids if (reading := proc.stat(pid)) is not None}
        seen = found.values()
        self.tasks = sum(reading.threads for reading in seen)
        caged = self.cage.cpu()
        living = sum(reading.cpu + reading.reaped for reading in seen)
        self.cpu = max(self.cpu, living + self.reaped.cpu if caged is None else caged)
        memory = sum(reading.rss for reading in seen)
        if memory > self.memory:
            # Resident pages are those of files, too, and count for each process; asked only when it matters.
            memory = proc.together(found)
        self.memory = max(self.memory, memory)
        self._each_process(now, pids)

    def passed(self, now: float) -> tuple[str, str] | None:
        """The limit that was passed, as end reason and as a sentence; None while all is well."""
        cpu, wall, memory = self.limits["cpu"], self.limits["wall"], self.limits["memory"]
        if wall is not None and self._clock(self.wall(now)) >= wall:
            return "wall_limit", f"wall-clock limit of {_seconds(wall)} exceeded"
        if self._hole_left(now) <= 0:
            return "contract", self.contract_text()
        if cpu is not None and self._clock(self.cpu) >= cpu:
            return "cpu_limit", f"CPU limit of {_seconds(cpu)} exceeded"
        if memory is not None and (self.memory > memory or self.cage.held.killed()):
            return "memory_limit", self.memory_text()
        return self._crowded()

    def outlived(self, now: float) -> tuple[str, str] | None:
        """The same once its leader has ended: what it left behind has no use but its number and its time."""
        wall = self.limits["wall"]
        if wall is not None and self._clock(self.wall(now)) >= wall:
            return (
                "wall_limit",
                f"wall-clock limit of {_seconds(wall)} exceeded by what its leader left behind",
            )
        if self._hole_left(now) <= 0:
            return "contract", self.contract_text()
        return self._crowded()

    def remaining(self, now: float) -> float:
        """Real seconds until what its leader left behind must be looked at."""
        wall = self.limits["wall"]
        left = self._real(wall) - self.wall(now) if wall is not None else _IDLE
        left = min(left, self._hole_left(now))
        return max(0.0, min(self.sampled + _QUICK - now, left if left > 0 else _IDLE))

    def _crowded(self) -> tuple[str, str] | None:
        many = self.processes is not None and self.tasks > self.processes
        return ("process_limit", self.process_text()) if many or self.cage.held.refused() else None

    def contract_text(self) -> str:
        """What is said of a request that was still there when its hole ended."""
        return f"the hole of {_seconds(self.limits.get('hole') or 0)} that it was started in is over"

    def process_text(self) -> str:
        """What is said of a request that had, or wanted, too many processes."""
        return f"process limit of {self.processes} exceeded (-l nproc=): threads count as well"

    def memory_text(self) -> str:
        """What is said of a request that had too much memory."""
        most = max(self.memory, self.cage.held.peak())
        return f"memory limit of {self.limits['memory']} bytes exceeded: {most} in use"

    def hurry(self) -> None:
        """Something has happened: the next sample is due at once."""
        self.sampled = -_IDLE

    def warning_due(self) -> bool:
        """Whether the request's CPU warning is to be sent now; True once."""
        limit = self._open_warning()
        if limit is None or self._clock(self.cpu) < limit:
            return False
        self.warned = True
        return True

    def finish(self) -> None:
        """The last reading, when all processes have been waited for."""
        caged = self.cage.cpu()
        self.cpu = max(self.cpu, self.reaped.cpu, caged or 0.0)
        # A child starts with its parent's high-water mark: values up to that say nothing (techniques.md 1).
        if self.reaped.memory > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024:
            self.memory = max(self.memory, self.reaped.memory)
        self.memory = max(self.memory, self.cage.held.peak())

    def _each_process(self, now: float, pids: list[int]) -> None:
        """The limit of each process, where rlimits are too coarse: SIGXCPU at the limit, KILL after the
        grace."""
        limit = self.limits["cpu_process"]
        if limit is None or self._clock(self.cpu) < limit:
            return
        for pid in pids:
            reading = proc.stat(pid)
            if reading is None or self._clock(reading.cpu) < limit:
                continue
            if pid not in self.over:
                self.over[pid] = now
                proc.send([pid], signal.SIGXCPU)
            elif now - self.over[pid] >= self.grace:
                proc.send([pid], signal.SIGKILL)

    def _near_memory(self) -> bool:
        limit = self.limits["memory"]
        return limit is not None and self.memory > limit * 0.6

    def _open_warning(self) -> int | None:
        return None if self.warned else self.limits["cpu_warning"]

    def _clock(self, seconds: float) -> int:
        return int(seconds * 1000 * self.speed)

    def _real(self, ms: int) -> float:
        return ms / 1000 / self.speed


def _seconds(ms: int) -> str:
    """Seconds as people write them: 600 s, 1.5 s."""
    return f"{ms / 1000:g} s" if ms % 1000 else f"{ms // 1000} s"
