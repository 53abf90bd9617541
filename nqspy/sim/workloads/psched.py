"""PSched's endless source of applications: 33 at a time, 8 to 128 PEs, 180 to 2,048 seconds."""

from collections.abc import Iterator
from itertools import islice
from random import Random

from nqspy.sim.workloads.jobs import NotSimulated, SimulatedJob, Wanted, Workload

PES, JOBS, AT_ONCE = 128, 2_000, 33

SIZES = {8: 240, 12: 200, 16: 160, 20: 120, 24: 80, 32: 60, 40: 40, 48: 30, 64: 20, 96: 6, 128: 4}
"""Weights of the sizes (PEs): the paper does not give them."""
SHORTEST, LONGEST = 180, 2_048
"""Bounds of the run times in s; their logarithms are uniform."""


def psched(wanted: Wanted) -> Workload:
    """Return a workload of the wanted number of applications that fit the machine. Raises NotSimulated."""
    pes, count = wanted.pes or PES, wanted.jobs or JOBS
    if pes < min(SIZES):
        raise NotSimulated(f"applications of psched need at least {min(SIZES)} PEs; give --pes {PES}")

    def jobs() -> Iterator[SimulatedJob]:
        every = applications(Random(wanted.seed))
        fitting = ((width, seconds * 1000) for width, seconds in every if width <= pes)
        for place, (width, ms) in enumerate(islice(fitting, count)):
            yield SimulatedJob(place, place + 1, 0, ms, ms, width)

    return Workload(f"psched-{wanted.seed}", pes, count, jobs, at_once=AT_ONCE)


def applications(rng: Random) -> Iterator[tuple[int, int]]:
    """Yield (PEs, run time in seconds) of random applications, without end."""
    sizes, weights = list(SIZES), list(SIZES.values())
    while True:
        size = rng.choices(sizes, weights)[0]
        yield size, int(SHORTEST * (LONGEST / SHORTEST) ** rng.random())
