"""Workloads by name: a generator's, or a file by its ending. To add one: a file here, a line below."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random

from msgspec.structs import replace

from nqspy.model.ids import DAY
from nqspy.sim.workloads.jobs import MOST_PES, NotSimulated, SimulatedJob, Wanted, Workload
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
"""Generators of workloads by name."""

FILES: Mapping[str, Callable[[Path, Wanted], Workload]] = {
    ".swf": lambda path, wanted: open_swf(path, wanted.pes, wanted.memory),
    ".csv": open_recorded,
}
"""Readers of files of jobs, by the ending of their names (without .gz)."""


def open_workload(word: str, wanted: Wanted) -> Workload:
    """Return the workload of a generator's name, else of a file's path. Raises NotSimulated."""
    ending = Path(word.removesuffix(".gz")).suffix.lower()
    if word in GENERATORS:
        found = GENERATORS[word](wanted)
    elif ending not in FILES:
        known = ", ".join((*GENERATORS, *(f"FILE{each}" for each in FILES)))
        raise NotSimulated(f"there is no workload {word}; there are {known}")
    elif wanted.jobs is not None:
        raise NotSimulated(f"--jobs is for generated workloads; the number of jobs in {word} is fixed")
    else:
        found = FILES[ending](Path(word), wanted)
    if found.pes > MOST_PES:
        least = f"{found.name}: a machine has at most {MOST_PES} PEs, not {found.pes}; give --pes N"
        raise NotSimulated(least)
    return found


WEEK = 7 * DAY
FEWEST = 4
"""Least number of whole weeks to draw from."""


def resampled(workload: Workload, seed: int) -> Workload:
    """Return a workload of as many weeks as this one has, each drawn from its whole weeks by the seed, with
    repetition; jobs keep their numbers. Raises NotSimulated if weeks are too few or have no jobs."""
    weeks = _weeks(workload)
    drawn = Random(seed).choices(range(len(weeks)), k=len(weeks))
    count = sum(len(weeks[number]) for number in drawn)
    if not count:
        raise NotSimulated(f"{workload.name}: the weeks drawn by seed {seed} have no jobs")

    def jobs() -> Iterator[SimulatedJob]:
        drawn_jobs = ((n, job) for n, number in enumerate(drawn) for job in weeks[number])
        for place, (n, job) in enumerate(drawn_jobs):
            yield replace(job, place=place, submit=n * WEEK + job.submit)

    return replace(workload, name=f"{workload.name}-{seed}", count=count, jobs=jobs, dropped={})


def _weeks(workload: Workload) -> list[list[SimulatedJob]]:
    """Return the jobs of each whole week from its first submission on; ``submit`` counts within the week."""
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
        raise NotSimulated(
            f"{workload.name} has {whole} whole weeks, but --seeds needs {FEWEST} at least: "
            "leave --seeds out, or use a longer log or a generated workload"
        )
    return found[:whole]
