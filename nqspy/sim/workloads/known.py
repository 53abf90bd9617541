"""Workloads by name: a generator's name, or a file by its ending. To add one is a file here and a line
below."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random

from msgspec.structs import replace

from nqspy.sim.workloads.jobs import MOST_PES, BadWorkload, SimulatedJob, Wanted, Workload
from nqspy.sim.workloads.logs import open_recorded, open_swf
from nqspy.sim.workloads.lublin import lublin
from nqspy.sim.workloads.nights import night
from nqspy.sim.workloads.psched import psched
from nqspy.sim.workloads.t3d import t3d

GENERATORS: Mapping[str, Callable[[Wanted], Workload]] = {
    "lublin": lublin,
    "night": night,
    "psched": psched,
    "t3d": t3d,
}
"""What is invented, by name."""

FILES: Mapping[str, Callable[[Path, Wanted], Workload]] = {
    ".swf": lambda path, wanted: open_swf(path, wanted.pes, wanted.memory),
    ".csv": open_recorded,
}
"""Who reads a file, by its ending (without .gz)."""


def open_workload(word: str, wanted: Wanted) -> Workload:
    """The generator of that name, else the file. Raises BadWorkload."""
    found = _opened(word, wanted)
    if found.pes > MOST_PES:
        raise BadWorkload(f"{found.name}: a machine has at most {MOST_PES} PEs, not {found.pes}: say --pes N")
    return found


def _opened(word: str, wanted: Wanted) -> Workload:
    if word in GENERATORS:
        return GENERATORS[word](wanted)
    path = Path(word)
    ending = Path(word.removesuffix(".gz")).suffix.lower()
    if ending in FILES:
        if wanted.jobs is not None:
            raise BadWorkload(f"--jobs is of an invented workload: {word} has the jobs that it has")
        return FILES[ending](path, wanted)
    known = ", ".join((*GENERATORS, *(f"FILE{each}" for each in FILES)))
    raise BadWorkload(f"there is no workload {word}; there are {known}")


WEEK = 7 * 24 * 3_600_000
FEWEST = 4
"""Whole weeks that there must be to draw from."""


def resampled(workload: Workload, seed: int) -> Workload:
    """Return as many weeks as it has, each drawn from all of them; jobs keep their numbers, so one may come
    several times. Raises BadWorkload."""
    weeks = _weeks(workload)
    drawn = Random(seed).choices(range(len(weeks)), k=len(weeks))
    count = sum(len(weeks[number]) for number in drawn)
    if not count:
        raise BadWorkload(f"{workload.name}: the weeks that seed {seed} draws hold no job")
    return replace(
        workload, name=f"{workload.name}-{seed}", count=count, jobs=lambda: _put(weeks, drawn), dropped={}
    )


def _weeks(workload: Workload) -> list[list[SimulatedJob]]:
    """Return its whole weeks, from its first submission on; submit times count from each one's beginning."""
    found: list[list[SimulatedJob]] = []
    first = last = None
    for job in workload.jobs():
        first = job.submit if first is None else first
        last = job.submit
        number, at = divmod(job.submit - first, WEEK)
        found.extend([] for _ in range(number + 1 - len(found)))
        found[number].append(replace(job, submit=at))
    whole = ((last or 0) - (first or 0)) // WEEK
    if whole < FEWEST:
        raise BadWorkload(
            f"{workload.name} reaches over {whole} whole weeks, and other seeds draw from {FEWEST} at least: "
            "leave --seeds out, or take a longer log or a generator"
        )
    return found[:whole]


def _put(weeks: list[list[SimulatedJob]], drawn: list[int]) -> Iterator[SimulatedJob]:
    place = 0
    for n, number in enumerate(drawn):
        for job in weeks[number]:
            yield replace(job, place=place, submit=n * WEEK + job.submit)
            place += 1
