"""What a process hands on to those that it begins. Who may change that of a shepherd, from within his
request, changes it for the next one too, unless somebody looks. Standard library only.
"""

from __future__ import annotations

import os
import resource

_LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
Traits = tuple[object, ...]


def of_this_process() -> Traits:
    """Its urgency, its limits, and how much the kernel likes to kill it. Raises OSError when that cannot be
    read."""
    fd = os.open("/proc/self/oom_score_adj", os.O_RDONLY)
    try:
        liked = os.read(fd, 16)
    finally:
        os.close(fd)
    urgency = (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0))
    return (*urgency, liked, *map(resource.getrlimit, _LIMITS))


def unchanged(before: Traits) -> bool:
    """Whether they still are as they were."""
    try:
        return of_this_process() == before
    except OSError:
        return False
