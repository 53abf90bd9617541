"""Runs of workloads, one or many over processes; a result depends on its task only."""

import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from signal import SIG_IGN, SIGINT, signal
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nqspy.model.errors import NqspyError
from nqspy.sim.batch import BatchRun, Texts
from nqspy.sim.metrics import Metrics
from nqspy.sim.night_site import NAME as NIGHT
from nqspy.sim.night_site import NightRun, shipped_run
from nqspy.sim.policies import BATCH_POLICIES, SITE, BatchPolicy, Variant
from nqspy.sim.results import Results
from nqspy.sim.trail import Trail
from nqspy.sim.workloads.jobs import NotSimulated, Wanted, Workload
from nqspy.sim.workloads.known import GENERATORS, open_workload, resampled

STEP = 100
"""Jobs between two reports of progress."""
_SELDOM = (20_000, 5, 400)


class SimulatedRun(Struct, frozen=True):
    """Result of a task: its ``label`` and ``seed``, its workload's name and dropped lines; ``unended``: jobs
    that were submitted and never ended; ``judged``: other measures (`BatchRun.judged`); ``trail``: data for
    pictures, if wanted."""

    label: str
    seed: int
    workload: str
    pes: int
    dropped: Mapping[str, int]
    metrics: Metrics
    unended: int
    judged: Mapping[str, Any]
    trail: Trail | None

    def data(self) -> dict[str, Any]:
        """Return the result for JSON."""
        head = {"workload": self.workload, "pes": self.pes, "jobs": self.metrics.jobs}
        return head | {"dropped": self.dropped, "left": self.unended} | self.metrics.data() | {**self.judged}


@contextmanager
def calm() -> Iterator[None]:
    """Collect garbage rarely in the block: cycles are few, and a collection takes a seventh of the time."""
    before = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


DEFAULT = "firstfit"


class RunTask(Struct, frozen=True):
    """A run to be made: a workload (`open_workload`) under a variant. ``config``: settings in place of the
    plain site, as (name, text); ``drawn``: True if weeks of a recorded workload are to be drawn by the seed;
    ``pictured``: True if data for pictures are to be collected."""

    workload: str
    wanted: Wanted
    variant: Variant
    config: tuple[str, str] | None = None
    drawn: bool = False
    pictured: bool = False

    @property
    def policy(self) -> str | None:
        """Return the name of the policy to run under; None: ``config`` alone says it."""
        if self.variant.policy is not None:
            return self.variant.policy
        if self.workload == NIGHT:
            return NIGHT
        return DEFAULT if self.config is None else None

    @property
    def label(self) -> str:
        """Return the name of its variant in tables: its policy (else the file's name), and its changes."""
        other = self.policy or (self.config[0] if self.config is not None else DEFAULT)
        return self.variant.label(other)


def run_task(
    task: RunTask, results: Sequence[Results] = (), report: Callable[[int], None] = lambda jobs: None
) -> SimulatedRun:
    """Make a run, and write each ended job to ``results``, which are closed at the end; ``report`` gets the
    number of jobs ended so far. Raises NotSimulated."""
    done = False
    try:
        workload, run = _begun(task)
        metrics, trail = Metrics(workload.pes), None
        if task.pictured:
            # Times count from the first submission, which jobs without submit times do not have.
            first = None if workload.at_once is not None else next(iter(workload.jobs()), None)
            trail = Trail(run.pes, 0 if first is None else first.submit)
        with calm():
            for ended in run:
                metrics.add(ended)
                for each in results:
                    each.add(ended)
                if trail is not None:
                    trail.add(ended)
                if metrics.jobs % STEP == 0:
                    report(metrics.jobs)
        report(metrics.jobs)
        done = True
    except NqspyError as error:
        raise NotSimulated(str(error)) from None
    finally:
        for each in results:
            each.close(done)
    dropped = {reason: n for reason, n in workload.dropped.items() if n}
    return SimulatedRun(
        task.label, task.wanted.seed, workload.name, workload.pes, dropped, metrics, run.unended,
        run.judged(),
        trail,
    )  # fmt: skip


def workload_of(task: RunTask) -> Workload:
    """Open the task's workload; draw its weeks if that is asked for and it is a file. Raises NotSimulated."""
    found = open_workload(task.workload, task.wanted)
    return resampled(found, task.wanted.seed) if task.drawn and task.workload not in GENERATORS else found


def begun(tasks: Sequence[RunTask]) -> Workload:
    """Return the first task's workload; before that, begin a run of each variant, to check its settings.
    Raises NqspyError."""
    first = {task.label: task for task in reversed(tasks)}.values()
    return [_begun(task)[0] for task in first][-1]


def _begun(task: RunTask) -> tuple[Workload, BatchRun]:
    own, varied = [] if task.config is None else [task.config], task.variant.texts
    if own and task.wanted.pes is not None:
        own.append(("--pes", f"set machine pes={task.wanted.pes}\n"))
    if task.policy == NIGHT and task.workload == NIGHT:
        if task.wanted != replace(task.wanted, pes=None, memory=None, jobs=None):
            raise NotSimulated(
                "policy night has its own machine and jobs: "
                "leave out --pes, --memory and --jobs, or choose another --policy"
            )
        night = NightRun(task.wanted.seed, own, varied)
        return night.workload, night
    workload, memory = workload_of(task), task.wanted.memory
    if task.policy == NIGHT:
        return workload, shipped_run(workload, memory, own, varied)
    site: Texts = own or [("the plain site", SITE)]
    policy = BatchPolicy("") if task.policy is None else BATCH_POLICIES[task.policy]
    texts = [*site, (f"policy {policy.name}", policy.commands)]
    return workload, BatchRun(workload, texts, memory, fixed=varied, ask=policy.ask, molding=policy.molding)


GLANCE = 0.5
"""Seconds between two checks of all runs' progress."""


class _Counter:
    """Number of ended jobs in this process' runs, added to a number that all processes share."""

    shared: Any = None

    @classmethod
    def begin(cls, shared: Any) -> None:
        """Begin a process, which Ctrl-C does not stop: its parent does."""
        signal(SIGINT, SIG_IGN)
        cls.shared = shared

    def __init__(self) -> None:
        self._reported = 0

    def report(self, jobs: int) -> None:
        """Add the jobs that ended since the last report to the shared number; ``jobs``: ended by now."""
        if self.shared is not None:
            with self.shared.get_lock():
                self.shared.value += jobs - self._reported
        self._reported = jobs


def run_all(
    tasks: Sequence[RunTask], processes: int | None = None, report: Callable[[int], None] = lambda jobs: None
) -> list[SimulatedRun]:
    """Make runs in ``processes`` (None: one for each CPU); return results in the tasks' order. ``report``
    gets the number of jobs ended in all runs. A failure ends all: raises NotSimulated."""
    several = min(len(tasks), processes or len(os.sched_getaffinity(0)))
    if several == 1:
        found = list[SimulatedRun]()
        for task in tasks:
            before = sum(each.metrics.jobs for each in found)
            found.append(run_task(task, report=lambda jobs, before=before: report(before + jobs)))  # type: ignore[misc]
        return found
    context = get_context("forkserver")
    ended = context.Value("q", 0)
    with ProcessPoolExecutor(several, context, _Counter.begin, (ended,)) as pool:
        try:
            futures = [pool.submit(run_task, task, report=_Counter().report) for task in tasks]
            pending = set(futures)
            while pending:
                done, pending = wait(pending, GLANCE, FIRST_EXCEPTION)
                report(ended.value)
                for future in done:
                    future.result()  # raises the run's error
            return [future.result() for future in futures]
        except BrokenProcessPool:
            raise NotSimulated(
                "a process of the simulation was killed; was there too little memory?"
            ) from None
        except BaseException:
            for child in active_children():
                child.terminate()
            raise
