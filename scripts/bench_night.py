"""Measures short requests that state their memory on a real daemon: in the night shift with the shipped
exits, and at the plain site."""

import statistics
from collections.abc import Iterator

from bench_tools import Figure, Line, Site, figure, fill, wait_for

RATIO = 0.8
"""Least fraction of the rate that must remain with the exits."""
TURNS = 3
"""Number of times that each rate is measured, in turn, because the disk's speed changes."""


MEMORY = 8 << 20
"""Memory that each request asks for (1 Mw): small for the exit large_memory, which runs requests without a
size one by one."""


SITES = (("plain", "batch"), ("day-night", "night"))


def night_rate(count: int, waiting: int, site: str, queue: str) -> float:
    """Return requests a second, of the first ``count`` to end while ``waiting`` wait at first, on 2 PEs."""
    here = Site(site)
    try:
        if site == "day-night":
            here.run("qmgr", "-c", "switch shift night")
        here.run("qmgr", "-c", f"stop queue {queue}")
        fill(here.home, here.folder, waiting, queue, MEMORY)
        line = Line(here.home)
        before = int(here.status()["events"])
        here.run("qmgr", "-c", f"start queue {queue}")
        wait_for(lambda: _left(line) <= waiting - count, pause=0.1)
        here.run("qmgr", "-c", f"stop queue {queue}")
        return _rate(here, before, count)
    finally:
        here.close()


def _left(line: Line) -> int:
    return int(line.call({"cmd": "status"})["result"]["requests"])


def _rate(here: Site, after: int, count: int) -> float:
    from datetime import datetime

    line, first, ends = Line(here.home), None, []
    while len(ends) < count:
        result = line.call({"cmd": "events", "after": after, "limit": 5000})["result"]
        after = result["last"]
        for each in result["events"]:
            if each["kind"] == "starting" and first is None:
                first = datetime.fromisoformat(each["at"])
            elif each["kind"] == "ended":
                ends.append(datetime.fromisoformat(each["at"]))
    return count / (ends[count - 1] - first).total_seconds()


def bench_night(sizes: tuple[int, ...], count: int) -> Iterator[Figure]:
    """Yield a figure for each size of the queue: the night shift with its exits, compared with none;
    medians."""
    for waiting in sizes:
        turns = [[night_rate(count, waiting, *each) for each in SITES] for _ in range(TURNS)]
        plain, ours = (statistics.median(rates) for rates in zip(*turns, strict=True))
        name = f"night with its exits, {waiting} waiting"
        yield figure(
            name, ours, "/s", plain, "the same at the plain site", f">= {RATIO} x", ours >= RATIO * plain
        )
