"""A request that goes on on other CPUs than it had: all its processes and all their threads. Standard library
only.

It stands still meanwhile, so that nothing is forked behind our back; where it does not (somebody had it go
on) rounds are made until one finds nothing new.
"""

from __future__ import annotations

import os
from typing import Any

from nqspy.executors.cage import Cage
from nqspy.executors.control import move_cpus

_ROUNDS = 10


def follow(cage: Cage, order: dict[str, Any], cpus: list[int] | None) -> None:
    """It may go on on other CPUs than it had: all of it."""
    if cpus and cpus != order["cpus"]:
        move(cage, cpus)
        order["cpus"] = cpus


def move(cage: Cage, cpus: list[int]) -> None:
    """Binds the whole process tree to these CPUs: its cpuset where it has one, and each thread's affinity.
    What cannot be moved stays where it is."""
    move_cpus(cage.held, cpus, cage.pids())
    done: set[int] = set()
    for _ in range(_ROUNDS):
        new = [thread for pid in cage.pids() for thread in _threads(pid) if thread not in done]
        if not new:
            return
        for thread in new:
            try:
                os.sched_setaffinity(thread, cpus)
            except OSError:
                pass  # it has ended, it is another user's now, or such a CPU is no longer there
        done.update(new)


def _threads(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []
