"""CPU priority when jobs fill all CPUs: the daemon, and the processes that start and watch jobs, come first.
A start passes through five processes; each that waits for the end of a job's time slice costs some ms of an
idle PE. Only root can raise its priority; other users change nothing. Standard library only."""

import contextlib
import os

URGENT = -10
"""Nice value of the daemon, its decider, the spawner and the shepherds; never of what they run for others."""


def hurry() -> None:
    """Give this thread and its children priority over jobs: only as root, and if its nice value is 0."""
    if os.geteuid() == 0 and os.getpriority(os.PRIO_PROCESS, 0) == 0:
        with contextlib.suppress(OSError):  # root of a container: without CAP_SYS_NICE
            os.setpriority(os.PRIO_PROCESS, 0, URGENT)


def ordinary() -> None:
    """Give this thread the priority of a job."""
    if os.getpriority(os.PRIO_PROCESS, 0) < 0:
        os.setpriority(os.PRIO_PROCESS, 0, 0)


def ordinary_children() -> None:
    """Give new processes of this thread the priority of a job; the thread keeps its own."""
    if os.getpriority(os.PRIO_PROCESS, 0) < 0:
        os.sched_setscheduler(0, os.sched_getscheduler(0) | os.SCHED_RESET_ON_FORK, os.sched_getparam(0))
