"""What a process hands on to those that it begins. Who may change that of a shepherd, from within his
request, changes it for the next one too, unless somebody looks. Standard library only.
"""

from __future__ import annotations

import os
import resource

from nqspy.executors import forks

_LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
_FILES = ("oom_score_adj", "coredump_filter", "cgroup")
Traits = tuple[object, ...]


def of_this_process() -> Traits:
    """Its urgency for CPUs and disks, how exact its timers are, its limits and cgroups, how much the kernel
    likes to kill it and what of it comes into a core file. Raises OSError when that cannot be read."""
    urgency = (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), forks.io_urgency())
    return (*urgency, forks.timer_slack(), *map(_read, _FILES), *map(resource.getrlimit, _LIMITS))


def _read(name: str) -> bytes:
    try:
        fd = os.open(f"/proc/self/{name}", os.O_RDONLY)
    except FileNotFoundError:
        return b""  # this kernel has none
    try:
        return os.read(fd, 1 << 16)
    finally:
        os.close(fd)


def unchanged(before: Traits) -> bool:
    """Whether they still are as they were."""
    try:
        return of_this_process() == before
    except OSError:
        return False
