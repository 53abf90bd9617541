"""Measures a running job's use, and finds the limit that it has passed and why it ended. Times here are real
seconds; orders and reports have ms of the site's clock: real time x speed."""

import os
import resource
import signal
from typing import Any

from nqspy.executors import proc
from nqspy.executors.cgroups import JobGroup
from nqspy.executors.wall_limit import IDLE, WallClock, seconds, size_text

_SLOWEST = 1.0
_QUICK = 0.25
_FASTEST = 0.02
_FIRST = 0.2
_NOTABLE = 0.2


class Meter:
    """Use and limits of one job. ``cpu``: CPU seconds; ``memory``: peak in bytes; ``reaped``: CPU seconds of
    processes that have ended; ``frozen``: its processes are stopped, so there is nothing to measure."""

    def __init__(self, cgroup: JobGroup, order: dict[str, Any], started: float) -> None:
        self.cgroup = cgroup
        self.reaped = 0.0
        self._largest = 0
        self.wall = WallClock(order, started)
        self.limits: dict[str, int | None] = order["limits"]
        self.speed: float = order["speed"]
        self.grace: float = order["grace"] / 1000
        self.cpu = 0.0
        self.memory = 0
        self.processes: int | None = order.get("processes")
        self.tasks = 0
        self.reported = 0.0
        self.sampled = started
        self.closing = self.frozen = False
        self.over: dict[int, float] = {}
        self.cpus = len(order["cpus"] or ()) or os.cpu_count() or 1

    def reap(self, usage: resource.struct_rusage) -> None:
        """Add the use of a process that was waited for, and of those that it had waited for."""
        self.reaped += usage.ru_utime + usage.ru_stime
        self._largest = max(self._largest, usage.ru_maxrss * 1024)

    def used(self, now: float) -> list[int]:
        """Return the job's CPU and wall time in ms of the site's clock, and its greatest memory in bytes."""
        return [self._clock(self.cpu), self._clock(self.wall.ran(now)), self.memory]

    def notable(self) -> bool:
        """True if the use is to be reported: CPU time grew by 0.2 s since this was last true."""
        if self.cpu - self.reported < _NOTABLE:
            return False
        self.reported = self.cpu
        return True

    def due(self, now: float) -> float:
        """Return the real seconds until the next sample: one, or less if a limit could be passed sooner."""
        if self.frozen:
            return max(0.0, self.wall.remaining(now))
        pace = _SLOWEST if self.speed <= 1 and self.limits["memory"] is None else _QUICK
        if self.closing:
            return max(0.0, self.sampled + pace - now)
        if self.sampled == self.wall.started:
            pace = _FIRST
        for limit in map(self.limits.get, ("cpu", "cpu_process", "cpu_warning")):
            remaining = limit / 1000 / self.speed - self.cpu if limit is not None else IDLE
            pace = min(pace, max(_FASTEST, remaining / self.cpus)) if remaining > 0 else min(pace, _QUICK)
        memory = self.limits["memory"]
        if memory is not None and self.memory > memory * 0.6:
            pace = min(pace, 0.05)
        return max(0.0, min(self.sampled + pace - now, self.wall.remaining(now)))

    def sample(self, now: float) -> None:
        """Measure the job's CPU time and memory now, and store the values."""
        self.sampled = now
        pids = self.cgroup.pids()
        found = {pid: reading for pid in pids if (reading := proc.stat(pid)) is not None}
        readings = found.values()
        self.tasks = sum(reading.threads for reading in readings)
        counted = self.cgroup.cpu()
        living = sum(reading.cpu + reading.reaped for reading in readings)
        self.cpu = max(self.cpu, living + self.reaped if counted is None else counted)
        memory = sum(reading.rss for reading in readings)
        if memory > self.memory:
            # Resident pages are those of files, too, and count for each process; asked only when it matters.
            memory = proc.together(found)
        self.memory = max(self.memory, memory)
        limit = self.limits["cpu_process"]
        if limit is None or self._clock(self.cpu) < limit:
            return
        # Each process's CPU limit, where rlimits do not hold it: SIGXCPU, SIGKILL after the grace time.
        for pid, reading in found.items():
            if self._clock(reading.cpu) >= limit:
                if pid not in self.over:
                    self.over[pid] = now
                    proc.send([pid], signal.SIGXCPU)
                elif now - self.over[pid] >= self.grace:
                    proc.send([pid], signal.SIGKILL)

    def passed(self, now: float) -> tuple[str, str] | None:
        """Return the limit that was passed, as end reason and sentence; None if none was."""
        cpu, memory = self.limits["cpu"], self.limits["memory"]
        if (over := self.wall.passed(now)) is not None:
            return over
        if cpu is not None and self._clock(self.cpu) >= cpu:
            return "cpu_limit", f"CPU limit of {seconds(cpu)} exceeded"
        if memory is not None and (self.memory > memory or self.cgroup.held.killed()):
            return self._memory_limit()
        return self._crowded()

    def outlived(self, now: float) -> tuple[str, str] | None:
        """Return the limit that processes remaining after the leader's end have passed (wall time or number
        of processes), as end reason and sentence; None if none was."""
        return self.wall.passed(now, " by processes that its script left running") or self._crowded()

    def remaining(self, now: float) -> float:
        """Return the real seconds until the next check of processes that remain after the leader's end."""
        limit = self.wall.remaining(now)
        return max(0.0, min(self.sampled + _QUICK - now, limit if limit > 0 else IDLE))

    def _crowded(self) -> tuple[str, str] | None:
        many = self.processes is not None and self.tasks > self.processes
        return self._process_limit() if many or self.cgroup.held.refused() else None

    def _process_limit(self) -> tuple[str, str]:
        text = f"process limit of {self.processes} exceeded (-l nproc=): threads count as well"
        return "process_limit", text

    def _memory_limit(self) -> tuple[str, str]:
        most = max(self.memory, self.cgroup.held.peak())
        return (
            "memory_limit",
            f"memory limit of {size_text(self.limits['memory'] or 0)} exceeded: {size_text(most)} in use",
        )

    def hurry(self) -> None:
        """Make the next sample due at once, because the kernel reports that the job's memory is full."""
        self.sampled = -IDLE

    def warning_due(self) -> bool:
        """True if the request's CPU warning is to be sent now; True only once."""
        limit = self.limits["cpu_warning"]
        if limit is None or self._clock(self.cpu) < limit:
            return False
        self.limits["cpu_warning"] = None
        return True

    def finish(self) -> None:
        """Set ``cpu`` and ``memory`` to their final values, when all processes have been reaped."""
        counted = self.cgroup.cpu()
        self.cpu = max(self.cpu, self.reaped, counted or 0.0)
        # A child starts with its parent's high-water mark: values up to that say nothing (techniques.md 1).
        if self._largest > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024:
            self.memory = max(self.memory, self._largest)
        self.memory = max(self.memory, self.cgroup.held.peak())

    def verdict(self, order: dict[str, Any], status: int | None, number: int | None) -> tuple[str, str]:
        """Return end reason and sentence for a job: its own exit, a kernel's limit, or a signal. ``status``,
        ``number``: exit status or signal of its first process."""
        if self.cgroup.held.killed():
            return self._memory_limit()
        died = number if number is not None else (status or 0) - 128
        soft, hard = order["rlimits"].get("CPU", (-1, -1))
        killed = died == signal.SIGKILL and 0 <= hard <= self.cpu + 0.1
        if killed or (died == signal.SIGXCPU and soft >= 0):
            return "cpu_limit", "CPU limit of a process exceeded"
        if died == signal.SIGXFSZ and "FSIZE" in order["rlimits"]:
            return "file_limit", f"file size limit of {size_text(order['rlimits']['FSIZE'][0])} exceeded"
        if self.cgroup.held.refused():
            return self._process_limit()
        return ("exit", "") if number is None else ("signal", "")

    def _clock(self, seconds: float) -> int:
        return int(seconds * 1000 * self.speed)


_RESERVE = 64 << 20
"""Bytes of the disk that output must leave free, or a quarter of a disk smaller than four times that."""
_LITTLE = 1 << 20


class SpoolMeter:
    """Measures one job's output on the spool's disk; the job is ended if that would soon fill the disk."""

    def __init__(self, streams: list[int]) -> None:
        self._streams = streams
        self._size = 0
        self._checked: float | None = None
        self._next = 0.0

    def due(self, now: float) -> float:
        """Return the real seconds until the next check of the output: fewer if it grows fast."""
        return IDLE if self._checked is None else max(0.0, self._next - now)

    def passed(self, now: float) -> tuple[str, str] | None:
        """Return end reason and sentence if this output has nearly filled the disk, else None."""
        files = [os.fstat(fd) for fd in self._streams]
        size = sum(max(file.st_size, file.st_blocks * 512) for file in files)
        if size < _LITTLE:
            self._size, self._checked, self._next = size, now, now + IDLE
            return None
        disk = os.fstatvfs(self._streams[0])
        free = disk.f_bavail * disk.f_frsize
        reserve = min(_RESERVE, disk.f_blocks * disk.f_frsize // 4)
        if size - sum(file.st_blocks * 512 for file in files) > free:
            room = f"only {size_text(free)} are free on the disk of the spool"
            return "file_limit", f"its output has {size_text(size)}, but {room}"
        if free < reserve and size > free:
            full = f"the disk of the spool is nearly full: {size_text(free)} are free"
            return "file_limit", f"{full}, its output has {size_text(size)}"
        speed = (size - self._size) / max(now - (self._checked or now), _FASTEST)
        self._next = now + (max(_FASTEST, (free - reserve) / speed / 2) if speed > 0 else IDLE)
        self._size, self._checked = size, now
        return None
