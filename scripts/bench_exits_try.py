"""Measures `nqspy exits try` of a file on a backlog: the whole command, compared with `nqspy exits check` of
the same file, which runs it on a handful of requests in a similar process."""

import os
import statistics
import time
from collections.abc import Iterator

from bench_tools import BIN, Figure, Line, Site, figure, item, wait_for

GOAL = 2_000
"""Most ms for the whole command on a backlog of 1,000."""
MEMORY = 8 << 20
"""Memory that each request asks for (1 Mw), as in the figures of the night."""
RULE = '''\
"""Requests of one name run one after the other, and the widest count as submitted now."""

from nqspy.userexit import Answer, Instant, Redate, Request, View, redate, refuse, userexit


@userexit
def jobselect(request: Request, view: View) -> Answer | None:
    running = view.running(owner=request.owner, name=request.name)
    return refuse(f"{running[0].id} runs") if len(running) >= 1 else None


@userexit
def elected(request: Request, view: View, now: Instant) -> list[Redate]:
    return [redate(view.waiting(owner=request.owner), now)] if request.pes > 1 else []
'''


def bench_exits_try(count: int, runs: int) -> Iterator[Figure]:
    """Yield two figures: the night shift of the shipped site with its exits; two requests run, ``count``
    wait."""
    here = Site("day-night")
    try:
        rule = here.folder / "rule.py"
        rule.write_text(RULE)
        _fill(here, count)
        tried = [str(BIN / "nqspy"), "exits", "try", str(rule), "--json"]
        checked = [str(BIN / "nqspy"), "exits", "check", str(rule)]
        before = int(here.status()["events"])
        taken = [(_taken(tried, here.env), _taken(checked, here.env)) for _ in range(runs + 1)][1:]
        note = f"{int(here.status()['events']) - before} events meanwhile"
        for place, what in enumerate(("", ", CPU time")):
            ours, floor = (statistics.median(each[side][place] for each in taken) for side in (0, 1))
            yield figure(f"nqspy exits try, {count} waiting{what}", ours, "ms", floor,
                         "nqspy exits check of the file", f"<= {GOAL} ms", ours <= GOAL, note)  # fmt: skip
    finally:
        here.close()


def _taken(words: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Return the ms that a whole process with its children takes: by the clock, and of CPU time."""
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1)]
    began = time.perf_counter()
    _, status, used = os.wait4(os.posix_spawn(words[0], words, env, file_actions=actions), 0)
    wall = time.perf_counter() - began
    os.close(null)
    if status:
        raise SystemExit(f"{' '.join(words)} ended {status}")
    return 1000 * wall, 1000 * (used.ru_utime + used.ru_stime)


def _fill(here: Site, count: int) -> None:
    here.run("qmgr", "-c", "switch shift night")
    line, left = Line(here.home), count + 2
    each = item("sleep 3600\n", here.folder, "night", MEMORY)
    each["spec"] |= {"ask": {"memory": MEMORY, "wall": 3_600_000}}  # type: ignore[operator]
    while left > 0:
        some = min(1000, left)
        line.call({"cmd": "submit", "items": [each] * some, "key": f"fill{left}"})
        left -= some
    wait_for(lambda: here.status()["started"] == 2)
