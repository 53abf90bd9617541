"""Jobs of a workload as moldable ones: on which numbers of PEs each could run, and how long on each.

No log has that, so it is invented, by the job's number only. Its speedup follows Downey's model
(`model.shapes`): the average parallelism lies between the width it asks for and four times that, evenly by
its logarithm, the variance between 0 and 2. It could run on a quarter, half, once, twice and four times its
width, if these are whole and the machine has them. Serial jobs stay serial. On its own width it takes the
time of the log, on others more or less by the speedups; its estimate likewise."""

from collections.abc import Callable
from functools import lru_cache
from math import ceil
from random import Random

from msgspec import Struct

from nqspy.model.shapes import Sizes, Speedup
from nqspy.sim.workloads.jobs import SimulatedJob

FACTORS = (0.25, 0.5, 1, 2, 4)
"""Factors of the width that give the sizes."""
SPREAD, MOST_SIGMA = 4.0, 2.0
"""Most times its width that its average parallelism may be; most variance."""

Molding = Callable[["MoldedJob"], Sizes]
"""Function that chooses sizes for a job to ask for."""


class MoldedJob(Struct, frozen=True):
    """A job that could run on any of ``sizes`` (PEs, ascending); ``speedup``: by the number of PEs."""

    job: SimulatedJob
    sizes: tuple[int, ...]
    speedup: Speedup

    def time_on(self, pes: int, time: int) -> int:
        """Return how long (ms) it takes on so many PEs if it takes ``time`` on its own width."""
        return ceil(time * self.speedup.on(self.job.width) / self.speedup.on(pes))

    def mold(self, sizes: tuple[int, ...]) -> Sizes:
        """Return some of its sizes to ask for, with its estimates (ms) on them as wall limits."""
        return Sizes(sizes, tuple(max(1, self.time_on(pes, self.job.estimate)) for pes in sizes))


@lru_cache(10_000)
def molded_job(job: SimulatedJob, pes: int) -> MoldedJob:
    """Return a job as a moldable one, on a machine of ``pes`` PEs; invented from the job's number only."""
    rng = Random(job.number)
    parallelism = job.width * SPREAD ** rng.random() if job.width > 1 else 1.0
    speedup = Speedup(parallelism, rng.uniform(0, MOST_SIGMA))
    wanted = [factor * job.width for factor in FACTORS] if job.width > 1 else [1]
    sizes = {int(size) for size in wanted if size == int(size) and 1 <= size <= pes}
    return MoldedJob(job, tuple(sorted(sizes | {job.width})), speedup)


def narrow(found: MoldedJob) -> Sizes:
    """Ask for its least size only."""
    return found.mold(found.sizes[:1])


def wide(found: MoldedJob) -> Sizes:
    """Ask for its greatest size only."""
    return found.mold(found.sizes[-1:])


def any_size(found: MoldedJob) -> Sizes:
    """Ask for all its sizes: the scheduler chooses."""
    return found.mold(found.sizes)
