"""scripts/bench papers [--seeds N] [--from SEED] [--judged]: the papers' results that are repeated so far,
the Gang Scheduler on the T3D (seed 000): five weeks of the recipe, by space sharing and by class, the same
submissions. ``--judged``: only the three orders that the issue judges."""

import argparse
import json
import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from nqspy.sim.gang import CHOSEN, PER_PE, PES, GangOrder, GangRun
from nqspy.sim.workloads.jobs import Wanted
from nqspy.sim.workloads.t3d import t3d

ORDERS: Mapping[str, GangOrder] = {
    "space sharing": GangOrder(False),
    "by class, 10 s/PE": GangOrder(True),
    "by class, 3 s/PE": GangOrder(True, per_pe=3),
    "by class, 10 s/PE, no PEs kept free by day": GangOrder(True, by_day=PES, at_night=PER_PE),
}
JUDGED = 3
"""Number of seeds, from the first on, that are judged."""
GAIN = 1.35
"""Factor by which the machine's use has to grow (psched-experiment.md 2)."""


def _run(task: tuple[str, int]) -> tuple[str, dict[str, Any]]:
    name, seed = task
    return name, GangRun(t3d(Wanted(seed=seed)), ORDERS[name]).figures()


def run_all(names: Sequence[str], seeds: range) -> dict[str, list[dict[str, Any]]]:
    """Return the figures of these experiments, by seed."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    tasks = [(name, seed) for name in names for seed in seeds]
    with multiprocessing.Pool(len(os.sched_getaffinity(0))) as pool:
        for name, data in pool.map(_run, tasks, chunksize=1):
            found[name].append(data)
    return found


def lines(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return the lines of a Markdown table: means over the seeds."""
    head = [
        "",
        "PEs used",
        "working hours",
        "64 PEs within 60 s",
        "mean wait",
        "state moved",
        "preempted",
        "left",
    ]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, runs in found.items():
        used = [each["utilisation"]["week"] for each in runs]
        waits = [each["interactive64"] for each in runs]
        cells = [
            name,
            f"{100 * fmean(used):.1f} %",
            f"{100 * fmean(each['utilisation']['hours'] for each in runs):.1f} %",
            f"{100 * fmean(each['within_60s'] for each in waits):.1f} %",
            f"{fmean(each['mean_s'] for each in waits):.0f} s",
            f"{fmean(each['swapping_s'] for each in runs) / 3600:.0f} h",
            f"{fmean(each['preempted'] for each in runs):.0f}",
            f"{fmean(each['jobs']['left'] for each in runs):.0f}",
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def main(words: Sequence[str]) -> int:
    """Print the table, or JSON, and whether the use of the machine grew enough; return the exit status."""
    parser = argparse.ArgumentParser(prog="scripts/bench papers", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--from", dest="first", type=int, default=1, help="the first of them")
    parser.add_argument("--judged", action="store_true", help="only the orders that the issue judges")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(words)
    names = list(ORDERS)[: JUDGED if asked.judged else None]
    found = run_all(names, range(asked.first, asked.first + asked.seeds))
    if asked.json:
        print(json.dumps(found))
        return 0
    print("\n".join(lines(found)))
    print(CHOSEN)
    verdicts = list(judged(found))
    for text, met in verdicts:
        print(f"{text}: {'met' if met else 'NOT met'}")
    return 0 if all(met for _, met in verdicts) else 1


def judged(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[tuple[str, bool]]:
    """Yield the issue's conditions on the first three experiments, and True for each that holds."""
    before, seed, short = (found[name] for name in list(ORDERS)[:JUDGED])
    space, gang = (fmean(each["utilisation"]["week"] for each in runs) for runs in (before, seed))
    yield f"by class {gang / space:.3f} times space sharing (wanted {GAIN})", gang >= GAIN * space
    for name, runs, wanted in (("10 s/PE", seed, 0.8), ("3 s/PE", short, 0.9)):
        waits = [each["interactive64"] for each in runs]
        jobs = sum(each["jobs"] for each in waits)
        soon = sum(each["within_60s"] * each["jobs"] for each in waits) / jobs
        yield f"{name}: {100 * soon:.1f} % within 60 s (wanted {100 * wanted:.0f} %)", soon >= wanted
