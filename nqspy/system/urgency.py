"""Urgency for CPUs when jobs fill them all: first the daemon, and what starts and watches jobs. A start
passes through five processes; each that waits its turn behind a job's time slice costs some ms of an idle PE.
Only root can put itself before others; elsewhere nothing changes. Standard library only."""

import contextlib
import os

URGENT = -10
"""Nice value of the daemon, its decider, the spawner and the shepherds; never of what they run for others."""


def hurry() -> None:
    """Put this thread and its children before jobs; as root only, unless its nice value was chosen."""
    if os.geteuid() == 0 and os.getpriority(os.PRIO_PROCESS, 0) == 0:
        with contextlib.suppress(OSError):  # root of a container: without CAP_SYS_NICE
            os.setpriority(os.PRIO_PROCESS, 0, URGENT)


def ordinary() -> None:
    """Make this thread no more urgent than any job."""
    if os.getpriority(os.PRIO_PROCESS, 0) < 0:
        os.setpriority(os.PRIO_PROCESS, 0, 0)


def ordinary_children() -> None:
    """Make new processes of this thread no more urgent than any job, whatever itself is."""
    if os.getpriority(os.PRIO_PROCESS, 0) < 0:
        os.sched_setscheduler(0, os.sched_getscheduler(0) | os.SCHED_RESET_ON_FORK, os.sched_getparam(0))
