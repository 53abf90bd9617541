"""scripts/bench lachesis: how long jobs wait beside how long they run (seed 001: delays should be
proportional to run time), by size and by length, under the policies that are shipped and those of Lachesis's
paper; over seeds, with 95 % confidence intervals. Of a log each seed draws weeks."""

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log, sqrt
from pathlib import Path
from statistics import fmean, linear_regression

from nqspy.engine.virtual.attempts import Run
from nqspy.model.requests import Ask, Request
from nqspy.sim.batch import BatchRun
from nqspy.sim.batch_policies import BATCH_POLICIES, SITE, BatchPolicy
from nqspy.sim.comparing import Estimate, estimate, student
from nqspy.sim.night_site import shipped_run
from nqspy.sim.running import calm
from nqspy.sim.workloads.jobs import SimulatedJob, Workload
from nqspy.sim.workloads.known import GENERATORS, open_workload
from nqspy.sim.workloads.resampled import resampled
from nqspy.sim.workloads.wanted import Wanted

TRACES = Path(os.environ.get("NQSPY_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))
LENGTHS = (600, 3_600, 14_400)
"""Bounds of the classes of length, s."""
LENGTH_NAMES = ("to 10 min", "to 1 h", "to 4 h", "longer")
PARTS = (32, 4)
"""Bounds of the classes of size: parts of the machine."""
SIZES, ALL = len(PARTS) + 1, "all"
SECOND = 1000.0


def asking_for_work(job: SimulatedJob) -> Ask:
    """The factor `cpu` looks at its work: the estimate on each of its PEs."""
    return Ask(pes=job.width, wall=job.estimate, cpu=job.estimate * job.width, memory=job.memory)


def asking_for_length(job: SimulatedJob) -> Ask:
    """The factor `cpu` looks at its length: the limit of each process (`-lt`), however many PEs it has."""
    return Ask(pes=job.width, wall=job.estimate, cpu_process=job.estimate, memory=job.memory)


DAY = "set sched_factor share 0 cpu 6 memory 1 time 10\n"
LENGTH = "set sched_factor share 0 cpu 9 memory 0 time 10\n"
EASY = "set queue batch order=priority reserve=1"
NIGHT = "night"
OWN = (
    BatchPolicy("sjf+easy", "shortest first, one start promised", "set queue batch order=sjf reserve=1"),
    BatchPolicy(
        "day", "the shipped day's weights (cpu 6, memory 1, time 10), first fit", DAY, asking_for_work
    ),
    BatchPolicy("day+easy", "the same, one start promised", DAY + EASY, asking_for_work),
    BatchPolicy(
        "length+easy", "cpu 9, time 10 by `-lt`, one start promised", LENGTH + EASY, asking_for_length
    ),
    BatchPolicy(NIGHT, "the shipped site, its shifts and exits"),
)
GUESSED = ("easy-probable", "easy-exact")
"""These are `easy` where estimates are run times, as in what is invented."""
SHIPPED = ("fcfs", "firstfit", "sjf", "easy", *GUESSED, "easy-sjbf", "conservative")
WAYS: Mapping[str, BatchPolicy] = {
    policy.name: policy for policy in (*(BATCH_POLICIES[name] for name in SHIPPED), *OWN)
}


@dataclass(frozen=True)
class Task:
    """One run of a workload under a way."""

    workload: str
    jobs: int | None
    way: str
    seed: int


class OneProcessRun(BatchRun):
    """Each of a job's processes uses CPU time as long as it runs. The virtual machine holds a request's CPU
    time, not each process's, to whatever limit there is: so it is told that of one."""

    def _run(self, request: Request) -> Run:
        job = self._jobs[request.seq]
        return Run(job.run, job.run)


Waits = Mapping[tuple[int, int], tuple[int, int, int]]
"""Of each class of size and of length: jobs, and the sums of their waits and of their run times, ms."""


def workload_of(task: Task) -> Workload:
    """What a task runs. Raises BadWorkload."""
    generated = task.workload in GENERATORS
    found = open_workload(task.workload, Wanted(seed=task.seed, jobs=task.jobs if generated else None))
    return found if generated else resampled(found, task.seed)


def class_of(job: SimulatedJob, pes: int) -> tuple[int, int]:
    """Of size (by the part of the machine) and of length (by how long it runs)."""
    size = sum(job.width * part > pes for part in PARTS)
    return size, sum(min(job.run, job.estimate) > bound * SECOND for bound in LENGTHS)


def waits_of(task: Task) -> Waits:
    """Runs a task."""
    workload, way = workload_of(task), WAYS[task.way]
    if task.way == NIGHT:
        run = shipped_run(workload, None, (), ())
    else:
        kind = OneProcessRun if way.ask is asking_for_length else BatchRun
        run = kind(workload, [("the plain site", SITE), (way.name, way.commands)], ask=way.ask)
    found: dict[tuple[int, int], tuple[int, int, int]] = {}
    with calm():
        for ended in run:
            key = class_of(ended.job, workload.pes)
            jobs, wait, length = found.get(key, (0, 0, 0))
            found[key] = jobs + 1, wait + ended.wait, length + ended.run
    if run.left:
        raise SystemExit(f"{run.left} jobs of {workload.name} never ended under {task.way}")
    return found


def run_all(tasks: Sequence[Task]) -> list[Waits]:
    """All tasks, on all cores."""
    with multiprocessing.Pool(len(os.sched_getaffinity(0))) as pool:
        return pool.map(waits_of, tasks, chunksize=1)


# ---------------------------------------------------------------- figures


@dataclass(frozen=True)
class Cell:
    """Of one class over the seeds: mean wait (s), and sum of waits / sum of run times; None: no jobs."""

    jobs: int
    wait: Estimate | None
    ratio: Estimate | None


def cell(runs: Sequence[Waits], sizes: Sequence[int], length: int) -> Cell:
    """Of these classes of size together; seeds without such a job are left out."""
    sums = []
    for run in runs:
        parts = [run[size, length] for size in sizes if (size, length) in run]
        if parts:
            sums.append(tuple(map(sum, zip(*parts, strict=True))))
    if not sums:
        return Cell(0, None, None)
    waits = estimate([wait / jobs / SECOND for jobs, wait, _ in sums])
    ratios = estimate([wait / max(1, ran) for _, wait, ran in sums])
    return Cell(sum(jobs for jobs, _, _ in sums), waits, ratios)


def exponent_of(runs: Sequence[Waits]) -> float | None:
    """The b of wait ~ length^b: the slope through the classes' mean waits and mean run times, both as
    logarithms. 1: in proportion; 0: all wait alike. None: some class does not wait."""
    points = []
    for length in range(len(LENGTHS) + 1):
        parts = [each for run in runs for (_, of), each in run.items() if of == length]
        jobs, wait, ran = map(sum, zip(*parts, strict=True)) if parts else (0, 0, 0)
        if jobs and (not wait or not ran):
            return None
        if jobs:
            points.append((log(ran / jobs), log(wait / jobs)))
    return linear_regression(*zip(*points, strict=True)).slope if len(points) > 1 else None


def exponent(runs: Sequence[Waits]) -> Estimate | None:
    """Over all seeds, with an interval by the jackknife: each seed left out once."""
    whole, count = exponent_of(runs), len(runs)
    if whole is None or count < 2:
        return None if whole is None else Estimate(whole, None)
    each = [exponent_of([*runs[:n], *runs[n + 1 :]]) for n in range(count)]
    known = [value for value in each if value is not None]
    if len(known) < count:
        return Estimate(whole, None)
    spread = sqrt((count - 1) / count * sum((value - fmean(known)) ** 2 for value in known))
    return Estimate(whole, student(count - 1) * spread)


# ---------------------------------------------------------------- told


Found = Mapping[str, Sequence[Waits]]
"""The runs of each way, one of each seed."""


def ratio_text(found: Estimate | None) -> str:
    """A ratio with its interval, in as many digits as it has."""
    if found is None:
        return "-"
    digits = 0 if found.mean >= 99.5 else 1 if found.mean >= 9.95 else 2
    near = "" if found.ci95 is None else f" ± {found.ci95:.{digits}f}"
    return f"{found.mean:.{digits}f}{near}"


def cell_text(found: Cell) -> str:
    """The mean wait in minutes, and wait / length."""
    if found.wait is None:
        return "-"
    minutes = found.wait.mean / 60
    return f"{minutes:.{0 if minutes >= 9.95 else 1}f} min, {ratio_text(found.ratio)}"


def by_length(found: Found) -> Iterator[str]:
    """A table in Markdown: wait / length of all sizes together, and the exponent."""
    yield f"| policy | {' | '.join(LENGTH_NAMES)} | exponent |"
    yield "|" + " --- |" * (len(LENGTH_NAMES) + 2)
    for way, runs in found.items():
        cells = [ratio_text(cell(runs, range(SIZES), n).ratio) for n in range(len(LENGTH_NAMES))]
        yield f"| {way} | {' | '.join(cells)} | {ratio_text(exponent(runs))} |"


def by_size(found: Found, pes: int) -> Iterator[str]:
    """A table in Markdown: size by length, mean wait and wait / length."""
    yield f"| policy | PEs | {' | '.join(LENGTH_NAMES)} |"
    yield "|" + " --- |" * (len(LENGTH_NAMES) + 2)
    for way, runs in found.items():
        for size, name in enumerate(size_names(pes)):
            cells = [cell_text(cell(runs, (size,), n)) for n in range(len(LENGTH_NAMES))]
            yield f"| {'' if size else way} | {name} | {' | '.join(cells)} |"


def size_names(pes: int) -> list[str]:
    """The classes of size on a machine of so many PEs."""
    tops = [pes // part for part in PARTS] + [pes]
    return [f"{low + 1}-{top}" for low, top in zip([0, *tops], tops, strict=False)]


def plain(found: Found) -> dict[str, object]:
    """All figures, for JSON: by way, size (or `all`) and length."""
    told: dict[str, object] = {}
    for way, runs in found.items():
        sizes: list[tuple[str, Sequence[int]]] = [(str(n), (n,)) for n in range(SIZES)]
        told[way] = {
            name: [asdict(cell(runs, of, n)) for n in range(len(LENGTH_NAMES))]
            for name, of in [*sizes, (ALL, range(SIZES))]
        } | {"exponent": None if (slope := exponent(runs)) is None else asdict(slope)}
    return told


def measured(workload: str, jobs: int | None, ways: Sequence[str], seeds: Sequence[int]) -> Found:
    """Each way over the same seeds."""
    tasks = [Task(workload, jobs, way, seed) for way in ways for seed in seeds]
    runs = iter(run_all(tasks))
    return {way: [next(runs) for _ in seeds] for way in ways}


def options_of(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench lachesis", description=__doc__)
    text = "lublin, or logs in the Standard Workload Format of four weeks at least (lublin and sdsc.swf)"
    parser.add_argument("workloads", nargs="*", help=text)
    parser.add_argument("--jobs", type=int, default=1_000, help="of what is invented (1000)")
    parser.add_argument("--seeds", type=int, default=20, help="so many, from 1 on (20)")
    parser.add_argument("--policy", help=f"some of {', '.join(WAYS)} (all)")
    parser.add_argument("--quick", action="store_true", help="lublin only, 3 seeds of 150 jobs")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    """Prints the tables, or JSON."""
    options = options_of(words)
    if options.quick:
        options.workloads, options.jobs, options.seeds = ["lublin"], 150, 3
    told = {}
    for name in options.workloads or known_workloads():
        pes = workload_of(Task(name, options.jobs, "", 1)).pes
        found = measured(name, options.jobs, ways_of(options.policy, name), range(1, options.seeds + 1))
        told[Path(name).name] = plain(found)
        if not options.json:
            print(f"{Path(name).name} on {pes} PEs, {options.seeds} seeds, wait / length", "", sep="\n")
            print(*by_length(found), "", *by_size(found, pes), "", sep="\n", flush=True)
    if options.json:
        print(json.dumps(told, indent=1))
    return 0


def ways_of(policy: str | None, workload: str) -> list[str]:
    """Those that are asked for, else all that are not the same."""
    if policy is not None:
        return policy.split(",")
    return [name for name in WAYS if workload not in GENERATORS or name not in GUESSED]


def known_workloads() -> list[str]:
    """What is invented, and one log where it is there."""
    log_of_sdsc = TRACES / "sdsc.swf"
    return ["lublin", *([str(log_of_sdsc)] if log_of_sdsc.exists() else [])]


if __name__ == "__main__":
    sys.exit("run scripts/bench lachesis")
