"""Waits, bounded slowdowns and utilisation of a simulated workload; by group, user and size class."""

from array import array
from collections import defaultdict
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import asdict

from nqspy.sim.batch import EndedJob

TAU = 10_000
"""Run time in ms below which a run counts as this long in the bounded slowdown."""

KINDS = ("group", "user", "size")
"""Names of the ways to group jobs."""


class Figures(Struct, frozen=True):
    """Figures of some jobs: waits in s (of two medians the lower), mean bounded slowdown, PE seconds used."""

    jobs: int
    wait_mean_s: float
    wait_median_s: float
    wait_max_s: float
    bsld_mean: float
    pe_seconds: float


class Spread(Struct, frozen=True):
    """Spread of waits in seconds: 90 % lie from ``low`` to ``high``, half from ``lower`` to ``upper``."""

    jobs: int
    low: float
    lower: float
    median: float
    upper: float
    high: float
    mean: float


class Overall(Struct, frozen=True):
    """Figures of all jobs; ``makespan_s``: from the first submission to the last end."""

    wait_mean_s: float
    wait_median_s: float
    wait_max_s: float
    bsld_mean: float
    makespan_s: float
    utilisation: float


class _Sums:
    """Sums over some jobs; eight bytes for each job, for the median."""

    __slots__ = ("area", "slowdown", "waits")

    def __init__(self) -> None:
        self.waits, self.slowdown, self.area = array("q"), 0.0, 0

    def add(self, wait: int, slowdown: float, area: int) -> None:
        self.waits.append(wait)
        self.slowdown += slowdown
        self.area += area

    def figures(self) -> Figures:
        waits, jobs = sorted(self.waits), len(self.waits)
        if not jobs:
            return Figures(0, 0.0, 0.0, 0.0, 0.0, 0.0)
        mean, median = sum(waits) / jobs / 1000, waits[(jobs - 1) // 2] / 1000
        return Figures(jobs, mean, median, waits[-1] / 1000, self.slowdown / jobs, self.area / 1000)

    def spread(self) -> Spread:
        """Return the spread of the waits; there must be one at least."""
        waits, last = sorted(self.waits), len(self.waits) - 1
        places = (round(last * 0.05), round(last * 0.25), last // 2, round(last * 0.75), round(last * 0.95))
        low, lower, median, upper, high = (waits[place] / 1000 for place in places)
        return Spread(last + 1, low, lower, median, upper, high, sum(waits) / (last + 1) / 1000)


class Metrics:
    """Sums over ended jobs of one run, on a machine of ``pes`` PEs: the source of all its figures."""

    def __init__(self, pes: int) -> None:
        self._pes = pes
        self._all = _Sums()
        self._parts = {kind: defaultdict[str, _Sums](_Sums) for kind in KINDS}
        self._first: int | None = None
        self._last = 0

    def add(self, ended: EndedJob) -> None:
        """Count an ended job: its wait, run time and PEs."""
        job = ended.job
        slowdown = max(1.0, (ended.wait + ended.run) / max(ended.run, TAU))
        self._first = job.submit if self._first is None else min(self._first, job.submit)
        self._last = max(self._last, ended.start + ended.run)
        counted = ended.wait, slowdown, ended.pes * ended.run
        self._all.add(*counted)
        for kind, name in zip(KINDS, (job.group, job.user, size_class(job.width)), strict=True):
            self._parts[kind][name].add(*counted)

    @property
    def jobs(self) -> int:
        """Return the number of jobs that were counted."""
        return len(self._all.waits)

    def overall(self) -> Overall:
        """Return the figures of all jobs."""
        found, span = self._all.figures(), self._last - (self._first or 0)
        used = self._all.area / (self._pes * span) if span else 0.0
        waits = (found.wait_mean_s, found.wait_median_s, found.wait_max_s)
        return Overall(*waits, found.bsld_mean, span / 1000, used)

    def parts(self, kind: str) -> Mapping[str, Figures]:
        """Return figures by group, user or size class (`KINDS`): largest use first, classes by size."""
        found = {name: sums.figures() for name, sums in self._parts[kind].items()}
        order = first_size if kind == "size" else lambda name: (-found[name].pe_seconds, name)
        return {name: found[name] for name in sorted(found, key=order)}

    def spreads(self) -> Mapping[str, Spread]:
        """Return the spread of waits in each size class, smallest sizes first."""
        parts = self._parts["size"]
        return {name: parts[name].spread() for name in sorted(parts, key=first_size)}

    def data(self) -> dict[str, object]:
        """Return all figures as data for JSON."""
        parts = {kind: {name: asdict(each) for name, each in self.parts(kind).items()} for kind in KINDS}
        return {"metrics": asdict(self.overall()), "by": parts}


def size_class(width: int) -> str:
    """Return the size class of a number of PEs, a range up to a power of two: 1, 2, 3-4, 5-8, ..."""
    top = 1 << (width - 1).bit_length()
    return str(top) if top <= 2 else f"{top // 2 + 1}-{top}"


def first_size(name: str) -> tuple[int, str]:
    """Return a sort key for the name of a size class: its least number of PEs."""
    return int(name.partition("-")[0]), name
