"""A night's lists of the computing centre as a workload: time 0 is 17:00, the machine a Y-MP of 8 CPUs."""

from collections.abc import Iterator
from itertools import islice

from nqspy.sim.workloads.jobs import SimulatedJob, Workload
from nqspy.sim.workloads.nights import CPUS, hours_handed_in, night_lists
from nqspy.sim.workloads.wanted import Wanted


def night(wanted: Wanted) -> Workload:
    """The lists of night number ``seed``, in the order in which departments hand them in. An estimate is the
    CPU time that is asked for."""
    jobs = list(islice(_jobs(wanted), wanted.jobs))
    return Workload(f"night-{wanted.seed}", wanted.pes or CPUS, len(jobs), lambda: iter(jobs))


def _jobs(wanted: Wanted) -> Iterator[SimulatedJob]:
    lists, place = night_lists(wanted.seed), 0
    for group, at in sorted(hours_handed_in(wanted.seed).items(), key=lambda each: each[1]):
        for job in lists[group]:
            memory = job.memory if wanted.memory is not None else None
            if memory is None or wanted.memory is None or memory <= wanted.memory:
                yield SimulatedJob(place, place + 1, at, job.wall, job.asked, 1, memory, job.owner, group)
                place += 1
