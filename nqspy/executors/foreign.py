"""Foreign jobs: processes of this machine that nqspy did not start and that use a tenth of a PE or more. They
are found by their CPU time between two scans of /proc; one scan of 1,000 processes takes about 30 ms.

A process counts with its children that have ended, so that a *make* counts whose commands are short. A child
that still lives counts by itself. The CPUs of a process are those on which it ran last, as many as its use
fills; it keeps them from scan to scan, since the kernel moves a process that is bound to none."""

import contextlib
import os
import pwd
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from math import ceil

from nqspy.executors import proc
from nqspy.model.machine import ForeignJob

LEAST, LESS = 0.1, 0.05
"""Parts of a PE: a process that uses more than `LEAST` of one more PE gets it, and it loses a PE of which it
used less than `LESS` in `CALM` scans in a row."""
CALM = 3


@dataclass(slots=True)
class _Process:
    """Last reading of a process. ``used``: CPU seconds with those of ended children; ``dead``: it has ended,
    its parent has not noticed; ``cpus``: those that it holds as a foreign job; ``calm``: scans in a row in
    which it used less."""

    start: int
    parent: int
    used: float
    dead: bool = False
    cpus: tuple[int, ...] = ()
    calm: int = 0


class ForeignScan:
    """Finds foreign jobs. ``pids``: returns the pids of all processes to examine; ``clock``: monotonic
    seconds."""

    def __init__(
        self, pids: Callable[[], Iterable[int]] = proc.all_pids, clock: Callable[[], float] = proc.now
    ) -> None:
        self._pids, self._clock = pids, clock
        self._former: dict[int, _Process] = {}
        self._at: float | None = None

    def check(
        self, own: Collection[int], known: Iterable[ForeignJob] = ()
    ) -> tuple[ForeignJob, ...] | None:  # fmt: skip
        """Return the foreign jobs by pid, with the numbers of their CPUs as ``pes``; None at the first scan,
        which has nothing to compare with. ``own``: processes that are nqspy's with all below them; ``known``:
        foreign jobs that a former daemon found, for the first scan."""
        at, before, last = self._clock(), self._former, self._at
        if last is None:
            before = {job.pid: _Process(job.start, 0, 0.0, cpus=job.pes) for job in known}
        self._former, self._at = self._read(own, before), at
        if last is None or at <= last:
            return None
        ended: dict[int, float] = {}  # CPU time of children that ended, by parent: it is no new use of that
        for pid, process in before.items():
            if pid not in self._former:
                ended[process.parent] = ended.get(process.parent, 0.0) + process.used
        for pid, process in self._former.items():
            former = before.get(pid)
            used = process.used - (former.used + ended.get(pid, 0.0) if former else 0.0)
            if process.dead:
                process.cpus = ()
            else:
                _judge(pid, process, used / (at - last))
        found = (_job(pid, process) for pid, process in sorted(self._former.items()) if process.cpus)
        return tuple(job for job in found if job is not None)

    def forget(self) -> None:
        """Forget all readings, because no scan follows soon."""
        self._former, self._at = {}, None

    def _read(self, own: Collection[int], before: dict[int, _Process]) -> dict[int, _Process]:
        """Return a reading of each process that is neither nqspy's nor the kernel's."""
        found = {pid: reading for pid in self._pids() if (reading := proc.stat(pid)) is not None}
        ours, parents = {*own}, {pid: reading.parent for pid, reading in found.items()}
        made = {}
        for pid, one in found.items():
            if one.kernel or _is_below(pid, ours, parents):
                continue
            process = _Process(one.start, one.parent, one.cpu + one.reaped, one.dead)
            former = before.get(pid)
            if former is not None and former.start == one.start:
                process.cpus, process.calm = former.cpus, former.calm
            else:
                before.pop(pid, None)  # the number of a process that has ended
            made[pid] = process
        return made


def _is_below(pid: int, roots: set[int], parents: dict[int, int]) -> bool:
    """True if a process is one of the roots, or comes from one of them."""
    for _ in range(len(parents)):  # parents that were read at different times might form a circle
        if pid in roots:
            return True
        if pid not in parents:
            return False
        pid = parents[pid]
    return False


def _judge(pid: int, process: _Process, use: float) -> None:
    """Give a process the CPUs that belong to its ``use`` (in PEs): more at once, fewer after some scans."""
    count, most = len(process.cpus), ceil(use - LEAST)
    if most <= count:
        process.calm = process.calm + 1 if ceil(use - LESS) < count else 0
        most = count if process.calm < CALM else max(0, ceil(use - LESS))
    if most != count:
        process.calm = 0
    if most <= 0:
        process.cpus = ()
        return
    try:
        allowed = os.sched_getaffinity(pid)
    except OSError:  # it has just ended
        process.cpus = ()
        return
    places = dict.fromkeys((*process.cpus, *_last_on(pid), *sorted(allowed)))
    process.cpus = tuple(sorted([cpu for cpu in places if cpu in allowed][:most]))


def _last_on(pid: int) -> list[int]:
    """Return the CPUs on which a process's threads ran last, those of running threads first."""
    found: list[tuple[bool, int]] = []
    for thread in proc.threads(pid):
        with contextlib.suppress(OSError):
            reading = proc.Stat(pid, f"task/{thread}/")
            found.append((reading.state != "R", reading.processor))
    return [cpu for _, cpu in sorted(found, key=lambda each: each[0])]


def _job(pid: int, process: _Process) -> ForeignJob | None:
    """Return a foreign job; None if the process has ended."""
    try:
        user = os.stat(f"/proc/{pid}").st_uid
        command = proc.contents(f"/proc/{pid}/comm").decode("utf-8", "replace").rstrip("\n")
    except OSError:
        return None
    return ForeignJob(pid, process.start, _user(user), _shown(command), process.cpus)


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _shown(text: str) -> str:
    """Return a name that a process gave itself, without control characters."""
    return "".join(c if c.isprintable() else "?" for c in text) or "?"


def left_alone(shepherds: Iterable[int], machine: Collection[int]) -> list[ForeignJob]:
    """Return forgotten attempts (`nqsd start --forget`) by their living ``shepherds`` as foreign jobs: on the
    CPUs that their processes may use, as long as the shepherd lives. ``machine``: all CPUs."""
    found = []
    for pid in shepherds:
        cpus: set[int] = set()
        job = pid
        for each in proc.descendants(pid):
            with contextlib.suppress(OSError):
                cpus |= os.sched_getaffinity(each)
                job = each if job == pid else job  # the first: the script's shell
        start = proc.stat(pid)
        if start is None:
            continue
        named = _job(job, _Process(start.start, 0, 0.0, cpus=tuple(sorted(cpus.intersection(machine)))))
        if named is not None and named.pes:
            found.append(ForeignJob(pid, start.start, named.user, named.command, named.pes))
    return found
