"""Jobs of a workload as moldable ones: on which numbers of PEs each could run, and how long on each.

No log says that, so it is invented, by the job's number alone: its speedup follows Downey's model
(`model.shapes`), its average parallelism lies from the width it asks for to four times that, evenly by its
logarithm, its variance between 0 and 2. It could run on a quarter and a half of its width, on its width, on
twice and four times that, as far as these are whole and the machine has them. Serial jobs stay serial. On its
own width it takes what the log says, on another as much more or less as the speedups say, its estimate too.
"""

from collections.abc import Callable
from functools import lru_cache
from math import ceil
from random import Random

from msgspec import Struct

from nqspy.model.shapes import Sizes, Speedup
from nqspy.sim.workloads.jobs import SimulatedJob

FACTORS = (0.25, 0.5, 1, 2, 4)
"""Sizes, by the width that is asked for."""
SPREAD, MOST_SIGMA = 4.0, 2.0
"""How much above its width its average parallelism may be; its variance at most."""

Molding = Callable[["MoldedJob"], Sizes]
"""Choice of sizes that a job asks for."""


class MoldedJob(Struct, frozen=True):
    """A job's ``sizes`` and the ``speedup`` it has on them."""

    job: SimulatedJob
    sizes: tuple[int, ...]
    speedup: Speedup

    def time_on(self, pes: int, time: int) -> int:
        """Return how long (ms) it takes on so many PEs if it takes ``time`` on the width that it asks for."""
        return ceil(time * self.speedup.on(self.job.width) / self.speedup.on(pes))

    def mold(self, sizes: tuple[int, ...]) -> Sizes:
        """Some of its sizes, with its estimates on them for wall limits."""
        return Sizes(sizes, tuple(max(1, self.time_on(pes, self.job.estimate)) for pes in sizes))


@lru_cache(10_000)
def molded_job(job: SimulatedJob, pes: int) -> MoldedJob:
    """A job on a machine of so many PEs."""
    rng = Random(job.number)
    parallelism = job.width * SPREAD ** rng.random() if job.width > 1 else 1.0
    speedup = Speedup(parallelism, rng.uniform(0, MOST_SIGMA))
    wanted = [factor * job.width for factor in FACTORS] if job.width > 1 else [1]
    sizes = {int(size) for size in wanted if size == int(size) and 1 <= size <= pes}
    return MoldedJob(job, tuple(sorted(sizes | {job.width})), speedup)


def narrow(found: MoldedJob) -> Sizes:
    """Ask for its least size alone."""
    return found.mold(found.sizes[:1])


def wide(found: MoldedJob) -> Sizes:
    """Ask for its greatest size alone."""
    return found.mold(found.sizes[-1:])


def any_size(found: MoldedJob) -> Sizes:
    """All of them: the scheduler chooses."""
    return found.mold(found.sizes)
