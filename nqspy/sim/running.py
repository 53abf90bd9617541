"""A workload from its beginning to its end: every ended job goes to the metrics and to whatever else wants
it."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct, field

from nqspy.sim.batch import JobRun
from nqspy.sim.metrics import Metrics
from nqspy.sim.results import Results
from nqspy.sim.trail import Trail
from nqspy.sim.workloads.jobs import Workload

STEP = 100
"""Jobs between two reports of how far it is."""
_SELDOM = (20_000, 5, 400)


class Simulated(Struct, frozen=True):
    """What came of a workload; ``left``: jobs that were handed in and never ended; ``judged``: what else it
    is judged by (`JobRun.judged`); ``trail``: what pictures are drawn from, if it was wanted."""

    workload: str
    pes: int
    dropped: Mapping[str, int]
    metrics: Metrics
    left: int
    judged: Mapping[str, Any] = field(default_factory=dict)
    trail: Trail | None = None

    def data(self) -> dict[str, Any]:
        """As JSON has it."""
        head = {"workload": self.workload, "pes": self.pes, "jobs": self.metrics.jobs}
        return (
            head | {"dropped": dict(self.dropped), "left": self.left} | self.metrics.data() | {**self.judged}
        )


def simulate(
    workload: Workload,
    run: JobRun,
    results: Sequence[Results] = (),
    far: Callable[[int], None] = lambda jobs: None,
    pictured: bool = False,
) -> Simulated:
    """Runs it; ``far`` is told how many jobs have ended. Raises NotSimulated, BadWorkload."""
    metrics, trail = Metrics(workload.pes), Trail(run.pes, _first(workload)) if pictured else None
    try:
        with calm():
            for ended in run:
                metrics.add(ended)
                for each in results:
                    each.add(ended)
                if trail is not None:
                    trail.add(ended)
                if metrics.jobs % STEP == 0:
                    far(metrics.jobs)
        far(metrics.jobs)
    finally:
        for each in results:
            each.close()
    dropped = {reason: n for reason, n in workload.dropped.items() if n}
    return Simulated(workload.name, workload.pes, dropped, metrics, run.left, run.judged(), trail)


def _first(workload: Workload) -> int:
    """When its first job is submitted, ms since its beginning; 0 where jobs have no instants."""
    job = None if workload.at_once is not None else next(iter(workload.jobs()), None)
    return 0 if job is None else job.submit


@contextmanager
def calm() -> Iterator[None]:
    """Circles are looked for seldom: there are few, and looking takes a seventh of the time."""
    before = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
