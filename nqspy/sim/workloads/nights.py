"""The departments' lists for one night, by a seed: the recipe of the manual's page `nights` (seed 003)."""

from collections.abc import Mapping
from math import log
from random import Random

from msgspec import Struct

from nqspy.model.ids import HOUR, MINUTE
from nqspy.sim.workloads.jobs import SimulatedJob, Wanted, Workload

DEPARTMENTS: Mapping[str, int] = {
    "d1": 29, "d2": 24, "d3": 16, "d4": 15, "d5": 4, "d6": 10, "d7": 1, "d8": 1,
}  # fmt: skip
"""Quotas of the departments in per cent."""

CPUS = 8
MW = 8 * 1024**2
MEMORY = 128 * MW
"""The machine: a Y-MP 8/128."""

IO = 0.05
"""Fraction of a request's time in which it waits for disks."""

NIGHT = 9 * HOUR
"""Milliseconds from 21:00 to 06:00."""

MEDIAN, SIGMA = 40 * MINUTE, 0.9
SHORTEST, LONGEST = MINUTE, 9 * HOUR
DEPENDENT = 0.15
"""CPU times are log-normal, cut to these bounds; this fraction of the requests waits for the one before."""

BANDS = ((0.70, 1.0, 10.0), (0.25, 10.0, 40.0), (0.05, 60.0, 100.0))
"""Memory: fraction of the requests, from, to (Mw)."""
_PARTS = [part for part, _, _ in BANDS]


class Job(Struct, frozen=True):
    """A request in a list: CPU time in ms, memory in bytes. Requests of an owner with equal names run in
    turn."""

    name: str
    owner: str
    group: str
    cpu: int
    memory: int

    @property
    def asked(self) -> int:
        """Return the CPU time (ms) that it asks for: half as much again as it needs, in whole minutes."""
        return -(-self.cpu * 3 // (2 * MINUTE)) * MINUTE

    @property
    def wall(self) -> int:
        """Return the time (ms) that it takes on a CPU of its own, waits for disks included."""
        return round(self.cpu / (1 - IO))


def night_lists(seed: int, load: float = 1.5) -> dict[str, list[Job]]:
    """Return each department's list for night number ``seed``: by the quotas, ``load`` nights of all CPUs."""
    rng = Random(seed)
    whole = sum(DEPARTMENTS.values())
    return {
        group: _list(rng, seed, group, round(load * NIGHT * CPUS * share / whole))
        for group, share in DEPARTMENTS.items()
    }


def submit_hours(seed: int) -> dict[str, int]:
    """Draw by the seed when each department submits its list: in ms after 17:00, before 21:00."""
    rng = Random(-seed)
    return {group: rng.randrange(4 * HOUR - MINUTE) for group in DEPARTMENTS}


def users_of(group: str) -> list[str]:
    """Return the users of a department, one for each four per cent of its quota begun."""
    return [f"{group}u{n}" for n in range(1, 2 + DEPARTMENTS[group] // 4)]


def _list(rng: Random, seed: int, group: str, total: int) -> list[Job]:
    found: list[Job] = []
    users, remaining = users_of(group), total
    while remaining > 0:
        dependent, owner = rng.random() < DEPENDENT, rng.choice(users)
        cpu = round(min(max(rng.lognormvariate(log(MEDIAN), SIGMA), SHORTEST), LONGEST))
        _, low, high = rng.choices(BANDS, _PARTS)[0]
        memory, name = round(rng.uniform(low, high) * MW), f"{group}n{seed}r{len(found)}"
        if dependent and found:
            owner, name = found[-1].owner, found[-1].name
        cpu = max(SHORTEST, min(cpu, remaining))
        found.append(Job(name, owner, group, cpu, memory))
        remaining -= cpu
    return found


def submissions(seed: int) -> list[tuple[int, Job]]:
    """Return the jobs of a night in the order of submission, each with its time (ms after 17:00)."""
    lists, at = night_lists(seed), submit_hours(seed)
    return [(at[group], job) for group in sorted(lists, key=at.__getitem__) for job in lists[group]]


def simulated(job: Job, at: int, place: int, memory: int | None) -> SimulatedJob:
    """Return a job as submitted at ``at`` (ms after 17:00); its estimate is the CPU time that it asks for."""
    return SimulatedJob(place, place + 1, at, job.wall, job.asked, 1, memory, job.owner, job.group)


def night(wanted: Wanted) -> Workload:
    """Return night number ``wanted.seed`` as a workload, without jobs larger than the wanted memory."""
    most = wanted.memory
    fitting = [(at, job) for at, job in submissions(wanted.seed) if most is None or job.memory <= most]
    jobs = [
        simulated(job, at, place, None if most is None else job.memory)
        for place, (at, job) in enumerate(fitting[: wanted.jobs])
    ]
    return Workload(f"night-{wanted.seed}", wanted.pes or CPUS, len(jobs), lambda: iter(jobs))
