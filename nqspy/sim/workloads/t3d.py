"""Work such as LLNL's T3D had (seed 000), by the recipe of the reference traces: 15 jobs an hour between 8
and 18 h, else 5, on the sixth and seventh day a quarter of that; by day 65 of 100 are interactive, by night
25; the others go to the seed's queues. What the recipe does not say is fitted to its trace of 2,000 jobs:
interactive run times are log-normal (median 94 s, sigma 1.68), batch jobs run a part of their limit (beta
0.6, 1.6), two in three are as wide as their queue lets them be. It has no interactive job of 64 PEs, of which
the seed tells: here one in ten is."""

from collections.abc import Iterator, Mapping
from itertools import islice, takewhile
from math import log
from random import Random

from msgspec import Struct

from nqspy.sim.workloads.jobs import NotSimulated, SimulatedJob, Wanted, Workload

PES = 256
WEEKS = 5
_HOUR = 3_600
_DAY = 24 * _HOUR
_MEDIAN, _SIGMA = 94.0, 1.68
_PART = 0.6, 1.6
_WIDEST = 2 / 3
_WIDTHS = {2: 18, 4: 18, 8: 18, 16: 18, 32: 18, 64: 10}
"""Weights of the widths of interactive jobs."""


class T3dQueue(Struct, frozen=True):
    """A batch queue of the machine: its weight among the arriving jobs, wall limit (s), PEs."""

    weight: int
    limit: int
    pes: int


QUEUES: Mapping[str, T3dQueue] = {
    "pe32": T3dQueue(30, 4 * _HOUR, 32),
    "pe64": T3dQueue(20, 4 * _HOUR, 64),
    "pe64_long": T3dQueue(8, 16 * _HOUR, 64),
    "pe128_short": T3dQueue(8, 900, 128),
    "pe128": T3dQueue(6, 4 * _HOUR, 128),
    "pe256_short": T3dQueue(3, 900, 256),
    "pe256": T3dQueue(2, 4 * _HOUR, 256),
}
INTERACTIVE = "interactive"
INTERACTIVE_LIMIT = 2 * _HOUR


def t3d(wanted: Wanted) -> Workload:
    """Return a workload of five weeks, or of the wanted number of jobs, none wider than the machine; a job's
    group names its queue. Raises NotSimulated for a machine too small for all jobs."""
    pes, seed = wanted.pes or PES, wanted.seed
    if pes < min(_WIDTHS):
        raise NotSimulated(f"jobs of t3d need at least {min(_WIDTHS)} PEs; give --pes {PES}")
    ms = WEEKS * 7 * _DAY * 1000
    count = wanted.jobs or sum(1 for _ in takewhile(lambda job: job.submit < ms, _jobs(Random(seed), pes)))
    return Workload(f"t3d-{seed}", pes, count, lambda: islice(_jobs(Random(seed), pes), count))


def _by_day(seconds: float) -> bool:
    return 8 <= seconds % _DAY / _HOUR < 18


def is_working(seconds: float) -> bool:
    """True if people work ``seconds`` after a week's begin: between 8 and 18 h, on days 1 to 5."""
    return _by_day(seconds) and seconds // _DAY % 7 < 5


def _jobs(rng: Random, pes: int) -> Iterator[SimulatedJob]:
    place, at = 0, 0.0
    while True:
        at += rng.expovariate(15 / _HOUR)
        per_hour = (15 if _by_day(at) else 5) * (1 if at // _DAY % 7 < 5 else 0.25)
        if rng.random() * 15 >= per_hour:
            continue
        if rng.random() < (0.65 if _by_day(at) else 0.25):
            queue, limit = INTERACTIVE, INTERACTIVE_LIMIT
            seconds = rng.lognormvariate(log(_MEDIAN), _SIGMA)
            width = rng.choices(list(_WIDTHS), list(_WIDTHS.values()))[0]
            run = max(1, min(limit, int(seconds)))
        else:
            queue = rng.choices(list(QUEUES), [each.weight for each in QUEUES.values()])[0]
            limit, most = QUEUES[queue].limit, QUEUES[queue].pes
            run = max(1, int(limit * rng.betavariate(*_PART)))
            narrower = [2**power for power in range(1, 8) if 2**power < most]
            width = most if rng.random() < _WIDEST else rng.choice(narrower)
        user = f"u{rng.randrange(1, 41)}"
        if width <= pes:
            yield SimulatedJob(
                place, place + 1, round(at * 1000), run * 1000, limit * 1000, width, None, user, queue
            )  # fmt: skip
            place += 1
