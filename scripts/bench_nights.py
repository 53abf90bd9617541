"""scripts/bench nights: simulated nights at the computing centre (seed 003), the shipped site beside what
might stand in its place."""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from nqspy.sim.judge import JudgedNight, Week
from nqspy.sim.nights import run_week
from nqspy.sim.policies import NO_EXITS, POLICIES, Policy

ROOT = Path(__file__).resolve().parents[1]
NIGHTS = 5
"""Nights of a week."""
LIGHT = 0.9
"""Nights of work in the lists of a light night."""
ALONE = ("site", "fifo")
"""Policies whose nights are run one by one, too, each on an empty machine."""


IDLE = 0.3
"""Part of the evenings of intermittent nights on which a department hands in nothing."""
Task = tuple[str, int, int, float, float]


def _run(small_first: bool, task: Task) -> Week:
    name, first, nights, load, idle = task
    return run_week(ROOT, POLICIES[name], first, nights, load, small_first, idle)


def run_all(tasks: Sequence[Task], small_first: bool) -> list[Week]:
    """The weeks of all tasks (policy, first night, nights, load, idle), on all cores."""
    with multiprocessing.Pool(len(os.sched_getaffinity(0))) as pool:
        return pool.map(partial(_run, small_first), tasks, chunksize=1)


def tasks_of(policies: Sequence[str], nights: int) -> list[Task]:
    """What is run (policy, first night, how many, load, idle): for each policy the nights as weeks of five;
    for some each as a night of its own too; for the shipped site light nights, and weeks of intermittent
    ones."""
    firsts = range(1, max(nights, NIGHTS) + 1, NIGHTS)
    found = [(name, first, NIGHTS, 1.5, 0.0) for name in policies for first in firsts]
    found += [(name, n, 1, 1.5, 0.0) for name in policies if name in ALONE for n in range(1, nights + 1)]
    found += [("site", first, NIGHTS, 1.5, IDLE) for first in firsts]
    return found + [("site", n, 1, LIGHT, 0.0) for n in firsts]


def intermittent(weeks: Sequence[Week], always: Sequence[Week]) -> dict[str, float]:
    """Mean deviation of a night, in points: with departments idle on some evenings, and without."""
    some, full = ([n.deviation for week in each for n in week.nights if n.deviation is not None]
                  for each in (weeks, always))  # fmt: skip
    found = {"nights": float(len(some)), "deviation": fmean(some), "most": max(some)}
    return found | ({"always": fmean(full), "ratio": fmean(some) / fmean(full)} if full else {})


# ---------------------------------------------------------------- figures


def row(name: str, weeks: Sequence[Week], singles: Sequence[Week]) -> dict[str, Any]:
    """One policy's figures."""
    nights = [night for week in weeks for night in week.nights]
    busy, alone = _busy(nights), _busy([night for week in singles for night in week.nights])
    off = [week.deviation for week in weeks if week.deviation is not None]
    per = len(nights)
    return {
        "policy": name,
        "title": POLICIES[name].title,
        "nights": per,
        "dry": per - len(busy),
        "busy": fmean(busy) * 100 if busy else None,
        "busy_least": min(busy) * 100 if busy else None,
        "busy_single": fmean(alone) * 100 if alone else None,
        "quota_week": fmean(off) if off else None,
        "quota_week_most": max(off, default=None),
        "weeks_within_1_5": sum(each <= 1.5 for each in off),
        "quota_night": _mean([n.deviation for n in nights if n.deviation is not None]),
        "bound": fmean(week.bound for week in weeks),
        "order": sum(week.order for week in weeks),
        "dependencies": sum(week.dependencies for week in weeks),
        "breaches": {rule: sum(w.breaches[rule] for w in weeks) for rule in weeks[0].breaches},
        "swaps": sum(n.swaps for n in nights) / per,
        "swapped_gb": sum(n.swapped for n in nights) / per / 1024**3,
        "out": fmean(n.out for n in nights),
        "wait_h": _mean([wait for week in weeks for wait in week.waits]),
        "large_wait_h": _mean([wait for week in weeks for wait in week.large_waits]),
        "started": sum(len(week.waits) for week in weeks),
        "asked": sum(week.asked for week in weeks),
    }


def _busy(nights: Sequence[JudgedNight]) -> list[float]:
    return [night.busy for night in nights if night.left]


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("busy %", "busy", "6.1f"),
    ("least", "busy_least", "6.1f"),
    ("alone", "busy_single", "6.1f"),
    ("quota", "quota_week", "6.2f"),
    ("most", "quota_week_most", "6.2f"),
    ("order", "order", "6d"),
    ("dep.", "dependencies", "6d"),
    (">Hmax", "large", "6d"),
    (">2Hmax", "all", "6d"),
    ("swaps", "swaps", "6.0f"),
    ("out", "out", "6.2f"),
    ("wait h", "wait_h", "6.1f"),
    ("large h", "large_wait_h", "7.1f"),
    ("started", "started", "7d"),
)

EXPLAINED = """\
busy %: CPU time used from 21:00 to 06:00, mean of the nights of all weeks that had work left; least: the
lowest of them; alone: the same lists, each night on an empty machine. quota: largest difference between part
and quota over a week, in points, of departments that always had work, mean of the weeks; most: the worst
week. order, dep.: violations. >Hmax, >2Hmax: starts that left large requests above Hmax, all above 2 Hmax.
swaps: a night; out: requests swapped out on the mean. wait h: from 21:00 of the evening to the start, of
what was started; large h: of the large ones (more than Hmax/8)."""


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as text."""
    lines = [f"{'policy':<24}" + "".join(f"{head:>{_width(form)}}" for head, _, form in COLUMNS)]
    for each in rows:
        values = {**each, **each["breaches"]}
        lines.append(f"{each['title']:<24}" + "".join(_cell(values[key], form) for _, key, form in COLUMNS))
    return "\n".join(lines)


def _width(form: str) -> int:
    return int(form.split(".")[0].rstrip("d")) + 1


def _cell(value: Any, form: str) -> str:
    return f"{'-':>{_width(form)}}" if value is None else f" {value:{form}}"


# ---------------------------------------------------------------- the row of scripts/bench


def bench_simulation(figure: Callable[..., Any], nights: int) -> Iterator[Any]:
    """How many requests of a simulated night a second of CPU time takes, everything included; beside it the
    same without exits."""
    (took, week), (bare, other) = (_fastest(policy, nights) for policy in (POLICIES["site"], NO_EXITS))
    floor = len(week.waits) / _floor(week.events, len(week.waits), week.asked)
    name = "heap push and pop of each event, numpy's four factors and argmax at each start"
    yield figure("a simulated night, requests", len(week.waits) / took, "/s", floor, name, "shown", None,
                 f"{nights} nights, {len(week.waits)} started")  # fmt: skip
    ours, without = len(week.waits) / took, len(other.waits) / bare
    yield figure("... beside no exits", ours, "/s", without, "the same nights without exits",
                 f">= {EXITS_LEAVE} x", ours >= EXITS_LEAVE * without)  # fmt: skip


EXITS_LEAVE = 0.5
"""What the exits may leave of the rate."""


def _fastest(policy: Policy, nights: int, turns: int = 9) -> tuple[float, Week]:
    """Seconds of CPU time that a week takes, the least of some turns: the machine has others to serve."""
    found = []
    for _ in range(turns):
        began = time.process_time()
        week = run_week(ROOT, policy, 1, nights)
        found.append((time.process_time() - began, week))
    return min(found, key=lambda each: each[0])


def _floor(events: int, starts: int, waiting: int) -> float:
    columns = np.random.default_rng(1).random((4, waiting))
    began = time.perf_counter()
    heap: list[tuple[int, int]] = []
    for n in range(events):
        heappush(heap, (n * 7919 % events, n))
    for _ in range(events):
        heappop(heap)
    for _ in range(starts):
        (20 * columns[0] + 6 * (1 - columns[1]) + (1 - columns[2]) + 10 * columns[3]).argmax()
    return time.perf_counter() - began


# ---------------------------------------------------------------- all


def main(words: Sequence[str]) -> int:
    """Prints the table, or JSON."""
    parser = argparse.ArgumentParser(prog="scripts/bench nights", description=__doc__)
    parser.add_argument("--nights", type=int, default=100, help="nights of each policy (100)")
    parser.add_argument("--policy", action="append", choices=list(POLICIES), help="only these; repeatable")
    parser.add_argument(
        "--small-first", action="store_true", help="the swapper keeps small requests in memory"
    )
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args(words)
    names = options.policy or list(POLICIES)
    tasks = tasks_of(names, options.nights)
    began = time.perf_counter()
    done = list(zip(tasks, run_all(tasks, options.small_first), strict=True))
    rows = [
        row(name, *([week for (who, _, n, load, idle), week in done
                     if who == name and n == many and load > LIGHT and not idle] for many in (NIGHTS, 1)))
        for name in names
    ]  # fmt: skip
    light = [n for (_, _, _, load, _), week in done if load == LIGHT for n in week.nights]
    always = [w for (who, _, n, load, idle), w in done if who == "site" and n == NIGHTS and not idle]
    some = intermittent([week for (*_, idle), week in done if idle], always)
    _tell(rows, light, some, time.perf_counter() - began, options.json)
    return 0


def _tell(
    rows: list[dict[str, Any]], light: list[JudgedNight], some: dict[str, float], took: float, as_json: bool
) -> None:
    found: dict[str, Any] = {
        "policies": rows,
        "light": {"nights": len(light), "dry": sum(not n.left for n in light),
                  "busy": fmean(n.busy for n in light) * 100},
        "intermittent": some,
        "seconds": took,
    }  # fmt: skip
    if as_json:
        print(json.dumps(found, indent=1))
        return
    print(table(rows), EXPLAINED, sep="\n\n")
    first = rows[0]
    bound = f"the longest request alone is {first['bound']:.2f} points of a week's CPU time (mean)"
    print(f"{first['nights']} nights in weeks of {NIGHTS} for each policy; {bound}.")
    busy, dry = found["light"]["busy"], found["light"]["dry"]
    print(
        f"{len(light)} light nights ({LIGHT} nights of work), shipped site: {busy:.1f} % busy, {dry} ran dry."
    )
    beside = f", {some['ratio']:.2f} times that of nights in which all work" if "ratio" in some else ""
    print(
        f"{some['nights']:.0f} nights with departments idle on {IDLE * 100:.0f} % of the evenings: deviation "
        f"of a night {some['deviation']:.2f} points (mean), {some['most']:.2f} at most{beside}."
    )
    print(f"{took:.0f} s.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
