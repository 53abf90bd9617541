"""Other workloads like a recorded one: weeks of it, drawn by a seed and put one behind the other. What people
do in the course of a day and of a week stays as it was, and so do bursts; what reaches from one week into the
next is torn apart."""

from collections.abc import Iterator
from random import Random

from msgspec.structs import replace

from nqspy.sim.workloads.jobs import BadWorkload, SimulatedJob, Workload

WEEK = 7 * 24 * 3_600_000
FEWEST = 4
"""Whole weeks that there must be to draw from."""


def resampled(workload: Workload, seed: int) -> Workload:
    """As many weeks as it has, each drawn from all of them; jobs keep their numbers, so one may come several
    times. Raises BadWorkload."""
    weeks = _weeks(workload)
    drawn = Random(seed).choices(range(len(weeks)), k=len(weeks))
    count = sum(len(weeks[number]) for number in drawn)
    if not count:
        raise BadWorkload(f"{workload.name}: the weeks that seed {seed} draws hold no job")
    return replace(
        workload, name=f"{workload.name}-{seed}", count=count, jobs=lambda: _put(weeks, drawn), dropped={}
    )


def _weeks(workload: Workload) -> list[list[SimulatedJob]]:
    """Its whole weeks, from its first submission on; submit times count from each one's beginning."""
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
