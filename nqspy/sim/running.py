"""A workload from its beginning to its end: every ended job goes to the metrics and to whatever else wants
it."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from nqspy.sim.batch import BatchRun, Texts
from nqspy.sim.metrics import Metrics
from nqspy.sim.results import Results
from nqspy.sim.workloads.jobs import Workload

STEP = 100
"""Jobs between two reports of how far it is."""
_SELDOM = (20_000, 5, 400)


@dataclass(frozen=True, slots=True)
class Simulated:
    """What came of a workload; ``left``: jobs that were handed in and never ended."""

    workload: Workload
    metrics: Metrics
    left: int

    def data(self) -> dict[str, Any]:
        """As JSON has it."""
        shown = {reason: n for reason, n in self.workload.dropped.items() if n}
        head = {"workload": self.workload.name, "pes": self.workload.pes, "jobs": self.metrics.jobs}
        return head | {"dropped": shown, "left": self.left} | self.metrics.data()


def simulate(
    workload: Workload,
    texts: Texts,
    memory: int | None = None,
    results: Sequence[Results] = (),
    far: Callable[[int], None] = lambda jobs: None,
    exact: bool = False,
) -> Simulated:
    """Runs it; ``far`` is told how many jobs have ended; ``exact`` as in `BatchRun`. Raises NotSimulated,
    BadWorkload."""
    metrics = Metrics(workload.pes)
    try:
        with calm():
            run = BatchRun(workload, texts, memory, exact)
            for ended in run:
                metrics.add(ended)
                for each in results:
                    each.add(ended)
                if metrics.jobs % STEP == 0:
                    far(metrics.jobs)
        far(metrics.jobs)
    finally:
        for each in results:
            each.close()
    return Simulated(workload, metrics, run.left)


@contextmanager
def calm() -> Iterator[None]:
    """Circles are looked for seldom: there are few, and looking takes a seventh of the time."""
    before = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
