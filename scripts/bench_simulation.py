"""Measures the rate of a simulated night: requests a second of CPU time, with and without the shipped
exits."""

import sys
import time
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
try:  # a checkout measured beside this one may have the nights in its package
    from nqspy.sim.nights import run_week

    from nqspy.sim.policies import NO_EXITS, POLICIES
except ImportError:
    sys.path.insert(0, str(ROOT / "tests"))
    from scenarios.nights import NO_EXITS, POLICIES, run_week

EXITS_LEAVE = 0.5
"""Least fraction of the rate that must remain with exits."""


def bench_simulation(figure: Callable[..., Any], nights: int) -> Iterator[Any]:
    """Yield the rate of the shipped site beside its floor, then beside the rate without exits."""
    (took, week), (bare, other) = (_fastest(policy, nights) for policy in (POLICIES["site"], NO_EXITS))
    floor = len(week.waits) / _floor(week.events, len(week.waits), week.asked)
    name = "heap push and pop of each event, numpy's four factors and argmax at each start"
    yield figure("a simulated night, requests", len(week.waits) / took, "/s", floor, name, "shown", None,
                 f"{nights} nights, {len(week.waits)} started")  # fmt: skip
    ours, without = len(week.waits) / took, len(other.waits) / bare
    yield figure("... beside no exits", ours, "/s", without, "the same nights without exits",
                 f">= {EXITS_LEAVE} x", ours >= EXITS_LEAVE * without)  # fmt: skip


def _fastest(policy: Any, nights: int, turns: int = 9) -> tuple[float, Any]:
    """Return the least CPU time (s) over some turns, with the simulated result: other work slows some
    turns."""
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
