"""scripts/bench mold: moldable jobs beside fixed sizes, on invented workloads: each policy with every job on
the width that the workload says, on the least and on the greatest of its sizes, and with the size chosen by
the pass. One table, over as many seeds as wanted; differences are to the policy with fixed widths, seed by
seed.

The slowdown is the response time by the run time on the job's own width (10 s at least), whatever size it
got: so all policies are measured by the same."""

import argparse
import json
import multiprocessing
import os
from collections.abc import Sequence
from statistics import fmean

from nqspy.sim.batch import EndedJob
from nqspy.sim.comparing import Estimate, estimate
from nqspy.sim.metrics import TAU
from nqspy.sim.runs import RunTask, run_task
from nqspy.sim.variants import Variant
from nqspy.sim.workloads.wanted import Wanted

POLICIES = ("fcfs", "easy", "conservative")
SHAPES = ("", "-narrow", "-wide", "-mold")
NAMES = ("wait_s", "response_s", "slowdown", "utilised", "pes")
Figures = dict[str, float]


class Responses:
    """What is kept of each job that has ended."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.responses: list[float] = []
        self.slowdowns: list[float] = []
        self.pes: list[int] = []

    def add(self, ended: EndedJob) -> None:
        """One more."""
        response = ended.wait + ended.run
        self.waits.append(ended.wait / 1000)
        self.responses.append(response / 1000)
        self.slowdowns.append(max(1.0, response / max(ended.job.run, TAU)))
        self.pes.append(ended.pes)

    def close(self) -> None:
        """Nothing is written."""


def _run(task: RunTask) -> Figures:
    kept = Responses()
    found = run_task(task, [kept]).found
    means = map(fmean, (kept.waits, kept.responses, kept.slowdowns))
    return dict(zip(NAMES, (*means, found.metrics.overall().utilisation, fmean(kept.pes)), strict=True))


def run_all(policies: Sequence[str], seeds: int, jobs: int) -> dict[str, list[Figures]]:
    """The figures of each policy, seed by seed, on all cores."""
    tasks = [
        RunTask("lublin", Wanted(seed=seed, jobs=jobs), Variant(policy))
        for policy in policies
        for seed in range(1, seeds + 1)
    ]
    with multiprocessing.Pool(len(os.sched_getaffinity(0))) as pool:
        found = pool.map(_run, tasks, chunksize=1)
    return {policy: found[n * seeds : (n + 1) * seeds] for n, policy in enumerate(policies)}


def row(policy: str, found: dict[str, list[Figures]]) -> dict[str, object]:
    """A policy's means with their 95 % confidence intervals, and the differences to its fixed widths."""
    mine, base = found[policy], found.get(policy.partition("-")[0])
    means = {name: estimate([each[name] for each in mine]) for name in NAMES}
    fixed = None if base is None or base is mine else base
    pairs = [] if fixed is None else list(zip(mine, fixed, strict=True))
    differences = {
        name: estimate([one[name] - other[name] for one, other in pairs]) for name in NAMES if pairs
    }
    return {"policy": policy, "means": means, "differences": differences}


def _show(found: Estimate, digits: int, signed: bool = False) -> str:
    half = "" if found.ci95 is None else f" ± {found.ci95:,.{digits}f}"
    return f"{found.mean:{'+' if signed else ''},.{digits}f}{half}"


def table(rows: Sequence[dict[str, object]]) -> str:
    """The rows as a table of the manual."""
    heads = ("policy", "wait s", "response s", "slowdown", "utilised", "PEs", "response, to fixed")
    lines = [" | ".join(heads), " | ".join("---" for _ in heads)]
    for each in rows:
        means, differences = each["means"], each["differences"]
        cells = [_show(means[name], digits) for name, digits in zip(NAMES, (0, 0, 1, 3, 1), strict=True)]
        more = _show(differences["response_s"], 0, signed=True) if differences else ""
        lines.append(" | ".join((str(each["policy"]), *cells, more)))
    return "\n".join(f"| {line} |" for line in lines)


def main(words: Sequence[str]) -> int:
    """Runs all and prints the table."""
    parser = argparse.ArgumentParser(prog="scripts/bench mold", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument(
        "--policy", default=",".join(f"{name}{shape}" for name in POLICIES for shape in SHAPES)
    )
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(words)
    policies = given.policy.split(",")
    found = run_all(policies, given.seeds, given.jobs)
    rows = [row(policy, found) for policy in policies]
    if given.json:
        print(json.dumps({"seeds": given.seeds, "jobs": given.jobs, "rows": rows}, default=vars_of, indent=2))
    else:
        print(table(rows))
    return 0


def vars_of(found: Estimate) -> dict[str, float | None]:
    """An estimate as JSON has it."""
    return {"mean": found.mean, "ci95": found.ci95}
