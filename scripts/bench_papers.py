"""scripts/bench papers [--seeds N] [--from SEED] [--judged] [--only PAPER]: the papers' results that are
repeated so far. gang, the Gang Scheduler on the T3D (seed 000): five weeks of the recipe, by space sharing
and by class, the same submissions. psched, migration (seed 002): 33 applications always there, the same
stream. ``--judged``: only the runs that the issues judge."""

import argparse
import json
import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from nqspy.sim.gang import CHOSEN, PER_PE, PES, GangOrder, GangRun
from nqspy.sim.psched import PschedOrder, PschedRun
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


MIGRATION: Mapping[str, PschedOrder] = {
    "no migration": PschedOrder(False),
    "migration": PschedOrder(True),
    "a move costs 60 s": PschedOrder(True, 60),
    "a cycle of 60 s": PschedOrder(True, cycle=60),
    "no patience, no migration": PschedOrder(False, patience=0),
    "no patience, migration": PschedOrder(True, patience=0),
    "pure first fit, no migration": PschedOrder(False, patience=None),
    "pure first fit, migration": PschedOrder(True, patience=None),
}
"""Runs of PSched's experiment; the first two are judged."""
BUSY, NEAR, MORE = {"no migration": 103.0, "migration": 109.5}, 1.5, 5.0
"""Mean PEs busy that are wanted, how near, and the least gain (psched-experiment.md 1)."""


def _run(task: tuple[str, int]) -> tuple[str, dict[str, Any]]:
    name, seed = task
    if name in ORDERS:
        return name, GangRun(t3d(Wanted(seed=seed)), ORDERS[name]).figures()
    run = PschedRun(seed, MIGRATION[name])
    figures = run.figures()
    cycles = [at // (1000 * MIGRATION[name].cycle) for at, _ in run.moves]
    sound = run.alone == run.scattered == 0 and len(cycles) == len(set(cycles))
    return name, figures | {"sound": sound}


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


def lines_of_moves(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return the lines of a Markdown table of PSched's experiment: means over the seeds, lowest and
    highest."""
    rows = ["|  | PEs busy | moves | wait below 64 PEs | wait from 64 PEs on |", "|---|---|---|---|---|"]
    for name, runs in found.items():
        busy = [each["pes_busy"] for each in runs]
        waits = (fmean(each["wait_s"][size] for each in runs) for size in ("narrow", "wide"))
        cells = [
            name,
            f"{fmean(busy):.1f} ({min(busy):.1f} .. {max(busy):.1f})",
            f"{fmean(each['moves'] for each in runs):.0f}",
            *(f"{wait:.0f} s" for wait in waits),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def main(words: Sequence[str]) -> int:
    """Print the tables, or JSON, and whether what is judged was met; return the exit status."""
    parser = argparse.ArgumentParser(prog="scripts/bench papers", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--from", dest="first", type=int, default=1, help="the first of them")
    parser.add_argument("--judged", action="store_true", help="only the runs that the issues judge")
    parser.add_argument("--only", choices=["gang", "psched"], help="one paper")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(words)
    gang = list(ORDERS)[: JUDGED if asked.judged else None] if asked.only != "psched" else []
    moves = list(MIGRATION)[: len(BUSY) if asked.judged else None] if asked.only != "gang" else []
    found = run_all([*gang, *moves], range(asked.first, asked.first + asked.seeds))
    if asked.json:
        print(json.dumps(found))
        return 0
    verdicts = list[tuple[str, bool]]()
    if gang:
        print("\n".join(lines({name: found[name] for name in gang})))
        print(CHOSEN)
        verdicts += judged(found)
    if moves:
        print("\n".join(lines_of_moves({name: found[name] for name in moves})))
        verdicts += judged_moves(found)
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


def judged_moves(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[tuple[str, bool]]:
    """Yield the conditions on PSched's experiment, and True for each that holds."""
    busy = {name: fmean(each["pes_busy"] for each in found[name]) for name in BUSY}
    for name, wanted in BUSY.items():
        yield f"{name}: {busy[name]:.1f} PEs (wanted {wanted} +- {NEAR})", abs(busy[name] - wanted) <= NEAR
    gain = busy["migration"] - busy["no migration"]
    yield f"{gain:.1f} PEs more (wanted {MORE})", gain >= MORE
    sound = all(each["sound"] for name in BUSY for each in found[name])
    yield "PEs in a row, no move while nothing waits, at most one a cycle", sound
