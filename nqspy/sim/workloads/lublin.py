"""The workload model of Lublin and Feitelson ("The workload on parallel supercomputers: modeling the
characteristics of rigid jobs", J. Parallel Distrib. Comput. 63, 2003), with its parameters for jobs of all
types.

Widths: serial with a fixed probability, else 2 to the power of a number that is uniform in two stages,
rounded for most. Run times: the exponential of a hyper-gamma variable; its mixture depends on the width.
Arrivals: the time between two, at the rate of the busiest hours, is the exponential of a gamma variable; it
is stretched by a cycle of a day in 48 buckets. The model gives no estimates: they are the run times."""

from collections.abc import Iterator
from itertools import islice, pairwise
from math import exp, lgamma, log, log2
from random import Random

from nqspy.sim.workloads.jobs import SimulatedJob, Wanted, Workload

PES, JOBS = 128, 1_000
"""PEs of the machine and number of jobs, unless others are asked for."""

SERIAL, POWER_OF_2 = 0.244, 0.576
"""Fraction of the jobs that are serial, and fraction whose width is a power of 2."""
LOW, BELOW_HIGH, FIRST_STAGE = 0.8, 2.5, 0.86
"""log2 of parallel widths: the least; how far the middle is below the greatest; fraction below the middle."""

SHORT, LONG = (4.2, 0.94), (312.0, 0.03)
MIX = (-0.0054, 0.78)
"""Gammas (shape, scale) of log run times (s); weight of the first one: MIX[0] * width + MIX[1]."""
LONGEST = 12.0
"""Greatest logarithm of a run time in s: a greater one is drawn again."""

BETWEEN = (10.2303 * 1.0225, 0.4871)
"""Gamma of the log of the time (s) between jobs at the busiest hours; the factor scales it to all hours."""
MOST_BETWEEN = 13.0
CYCLE = (8.1737, 3.9631)
"""Gamma (shape, scale) over the buckets: its probability in a bucket is the bucket's part of the jobs."""
BUCKETS, FIRST_BUCKET, BUCKET = 48, 11, 1_800.0
"""Buckets of the day; where the cycle begins; seconds of each."""
STEPS = 32
"""Parts of a bucket in which the cycle is integrated."""


def lublin(wanted: Wanted) -> Workload:
    """Return the model's workload of the wanted jobs, PEs and seed; its times count from a midnight."""
    pes, count = wanted.pes or PES, wanted.jobs or JOBS

    def jobs() -> Iterator[SimulatedJob]:
        rng = Random(wanted.seed)
        for place, at in enumerate(islice(_arrivals(rng), count)):
            submit, width = int(at) * 1000, width_of(rng, pes)
            run = run_of(rng, width) * 1000
            yield SimulatedJob(place, place + 1, submit, run, max(run, 1000), width)

    return Workload(f"lublin-{wanted.seed}", pes, count, jobs)


def width_of(rng: Random, pes: int) -> int:
    """Draw the number of PEs of the next job."""
    kind, high = rng.random(), log2(pes)
    if kind <= SERIAL or pes == 1:
        return 1
    low, middle = min(LOW, high), max(LOW, high - BELOW_HIGH)
    power = rng.uniform(low, middle) if rng.random() <= FIRST_STAGE else rng.uniform(middle, high)
    width = 2.0 ** (int(power + 0.5) if kind <= SERIAL + POWER_OF_2 else power)
    return min(pes, int(width + 0.5))


def run_of(rng: Random, width: int) -> int:
    """Draw the run time (s) of a job of ``width`` PEs."""
    part = min(1.0, max(0.0, MIX[0] * width + MIX[1]))
    while True:
        found = rng.gammavariate(*(SHORT if rng.random() <= part else LONG))
        if found <= LONGEST:
            return int(exp(found))


def _arrivals(rng: Random) -> Iterator[float]:
    """Yield submit times (s after midnight) without end, as often in each bucket as the `cycle` says."""
    parts = cycle()
    bucket, start, points = 0, 0.0, 0.0
    while True:
        between = MOST_BETWEEN + 1
        while between > MOST_BETWEEN:
            between = rng.gammavariate(*BETWEEN)
        points += exp(between) / BUCKET
        while points > parts[bucket]:
            points -= parts[bucket]
            bucket, start = (bucket + 1) % BUCKETS, start + BUCKET
        yield start + BUCKET * points / parts[bucket]


def cycle() -> list[float]:
    """Return the arrival rates in the buckets of a day, from midnight on, relative to their mean."""
    edges = [FIRST_BUCKET + n - 0.5 for n in range(BUCKETS + 1)]
    (shape, scale), found = CYCLE, [0.0] * BUCKETS
    weights = [1, *([4, 2] * STEPS)[: STEPS - 1], 1]
    for n, (begin, end) in enumerate(pairwise(edges)):
        # The probability of the interval under the cycle's gamma, by Simpson's rule.
        step = (end - begin) / STEPS
        places = [begin + n * step for n in range(STEPS + 1)]
        logs = ((shape - 1) * log(at) - at / scale - lgamma(shape) - shape * log(scale) for at in places)
        whole = sum(w * exp(each) for w, each in zip(weights, logs, strict=True)) * step / 3
        found[(FIRST_BUCKET + n - 1) % BUCKETS] = whole
    mean = sum(found) / BUCKETS
    return [each / mean for each in found]
