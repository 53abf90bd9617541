"""Many runs over processes. What comes of each depends on its task alone, never on who ran it or when."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from signal import SIG_IGN, SIGINT, signal
from typing import Any

from nqspy.sim.batch import NotSimulated
from nqspy.sim.runs import RunTask, SimulatedRun, run_task

GLANCE = 0.5
"""Seconds between two looks at how far all are."""


class _Counter:
    """Jobs that have ended in this process' runs, added to a number that all processes share."""

    shared: Any = None

    @classmethod
    def begin(cls, shared: Any) -> None:
        """A process begins: who is at the keyboard stops the one that began it."""
        signal(SIGINT, SIG_IGN)
        cls.shared = shared

    def __init__(self) -> None:
        self._told = 0

    def tell(self, jobs: int) -> None:
        """So many of a run have ended by now."""
        if self.shared is not None:
            with self.shared.get_lock():
                self.shared.value += jobs - self._told
        self._told = jobs


def _run(task: RunTask) -> SimulatedRun:
    return run_task(task, far=_Counter().tell)


def run_all(
    tasks: Sequence[RunTask],
    processes: int | None = None,
    far: Callable[[int], None] = lambda jobs: None,
) -> list[SimulatedRun]:
    """What came of each task, in their order, run in so many processes (None: as many as there are CPUs);
    ``far`` is told how many jobs have ended in all. The first failure ends all. Raises BadWorkload,
    NotSimulated."""
    several = min(len(tasks), processes or len(os.sched_getaffinity(0)))
    if several == 1:
        return _one_by_one(tasks, far)
    context = get_context("forkserver")
    ended = context.Value("q", 0)
    with ProcessPoolExecutor(several, context, _Counter.begin, (ended,)) as pool:
        try:
            futures = [pool.submit(_run, task) for task in tasks]
            _wait_for(futures, lambda: far(ended.value))
            return [future.result() for future in futures]
        except BrokenProcessPool:
            raise NotSimulated("a process that simulated was ended from outside; was memory short?") from None
        except BaseException:
            for child in active_children():
                child.terminate()
            raise


def _one_by_one(tasks: Sequence[RunTask], far: Callable[[int], None]) -> list[SimulatedRun]:
    found, before = [], 0
    for task in tasks:
        done = run_task(task, far=lambda jobs, so_far=before: far(so_far + jobs))  # type: ignore[misc]
        before += done.found.metrics.jobs
        found.append(done)
    return found


def _wait_for(futures: Sequence[Future[SimulatedRun]], far: Callable[[], None]) -> None:
    """Until all are done, or one has failed; raises what that one raised."""
    pending = set(futures)
    while pending:
        done, pending = wait(pending, GLANCE, FIRST_EXCEPTION)
        far()
        for future in done:
            future.result()
