"""A job of a workload as the simulator submits it, and the interface of all workloads."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field

from nqspy.model.errors import NqspyError

LONGEST = 1000 * 365 * 24 * 3_600_000
"""Longest time of a job in ms: a thousand years. Dates end not far beyond."""
MOST_PES = 1_000_000
"""Most PEs of a machine, as `set machine pes` accepts them."""
MOST_JOBS = 10_000_000
"""Most jobs that are generated."""


class NotSimulated(NqspyError):
    """A run that cannot be made: a bad workload, refused settings, a job that no queue accepts."""


class SimulatedJob(Struct, frozen=True):
    """A job that the simulator submits. ``place``: place among the used jobs of its list, from 0; ``number``:
    its name in results; ``submit`` (since the workload's beginning), ``run`` (without limits), ``estimate``
    (wall limit) in ms; ``width``: PEs; ``memory``: bytes, None: unknown; ``user``, ``group``: names."""

    place: int
    number: int
    submit: int
    run: int
    estimate: int
    width: int
    memory: int | None = None
    user: str = "u1"
    group: str = "g1"


class Workload(Struct, frozen=True):
    """Jobs to simulate: each call of ``jobs`` yields ``count`` jobs in the order of submission, for a machine
    of ``pes`` PEs. ``dropped``: number of lines without a usable job, by reason; ``begin``: instant of time
    0, ms since the epoch (0: unknown); ``zone`` of the machine; ``at_once``: number of jobs present at all
    times: each end brings the next one, submit times are ignored; None: jobs come at their submit times."""

    name: str
    pes: int
    count: int
    jobs: Callable[[], Iterator[SimulatedJob]]
    dropped: Mapping[str, int] = field(default_factory=Counter)
    begin: int = 0
    zone: str = "UTC"
    at_once: int | None = None


class Wanted(Struct, frozen=True):
    """Wishes for a workload: PEs and memory (bytes), seed, number of jobs; None: as the workload has it."""

    pes: int | None = None
    memory: int | None = None
    seed: int = 1
    jobs: int | None = None
