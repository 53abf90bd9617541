"""Arrays beside single requests: submission, memory, a first pass, and how fast indices start."""

import statistics
import time
from collections.abc import Callable, Iterator

from bench_passes import NOW, site_of
from bench_tools import Figure, Line, figure, fill, item, site, wait_for

from nqspy.core.no_exits import NoExits
from nqspy.core.passes import run_pass
from nqspy.model.arrays import ArraySpec
from nqspy.model.ids import array_key
from nqspy.model.site import Site

MANY = 100_000
TIMES = 21


def bench_arrays(count: int) -> Iterator[Figure]:
    """``count`` short jobs as indices of one array, beside as many requests."""
    yield from _submission()
    yield from _pass()
    yield from _starts(count)


def _submission() -> Iterator[Figure]:
    with site() as here:
        here.run("qmgr", "-c", "stop queue batch")
        line, plain = Line(here.home), item("/bin/true\n", here.folder)
        fill(here.home, here.folder, 100)
        array = {**plain, "spec": {**plain["spec"], "array": {"indices": [[1, MANY, 1]]}}}  # type: ignore[dict-item]
        times: dict[str, list[float]] = {"one": [], "array": []}
        before = _resident(here.pid())
        for number in range(TIMES):
            for name, each in (("one", plain), ("array", array)):
                began = time.perf_counter()
                line.call({"cmd": "submit", "key": f"{name}{number}", "items": [each]})
                times[name].append((time.perf_counter() - began) * 1000)
        grown = (_resident(here.pid()) - before) / TIMES / 1024
        ours, floor = (statistics.median(times[name]) for name in ("array", "one"))
        yield figure(f"submission of an array of {MANY}", ours, "ms", floor, "of one request", "<= 3 x",
                     ours <= 3 * floor)  # fmt: skip
        yield figure("... memory of the daemon for it", grown, "MiB", 2.0, "2 MiB", "<= 1 x", grown <= 2)


def _resident(pid: int) -> int:
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def _pass() -> Iterator[Figure]:
    arrays = site_of(10, 64, array=ArraySpec(((1, MANY, 1),)))
    assert all(seq == array_key(seq & 0xFFFF) for seq in arrays.requests)
    plain = site_of(10, 64)
    ours, floor = _best(lambda: run_pass(arrays, NOW, NoExits()), lambda: run_pass(plain, NOW, NoExits()))
    starts = len(run_pass(arrays, NOW, NoExits()).starts)
    yield figure("first pass over 10 arrays of 100,000", ours, "ms", floor, "over 10 requests", "shown", None,
                 f"{starts} indices start, and 10 requests")  # fmt: skip
    full, few = _full(arrays), _full(plain)
    ours, floor = _best(lambda: run_pass(full, NOW, NoExits()), lambda: run_pass(few, NOW, NoExits()))
    yield figure(
        "... where 10 PEs are free", ours, "ms", floor, "over 10 requests", "<= 2 x", ours <= 2 * floor
    )


def _full(site: Site) -> Site:
    """With as many PEs as there are requests: as many starts in both."""
    site.settings.machine.pes = 10
    return site


def _best(one: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of both, measured in turn."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(TIMES):
        for act, into in zip((one, other), found, strict=True):
            began = time.perf_counter()
            act()
            into.append((time.perf_counter() - began) * 1000)
    return min(found[0]), min(found[1])


def _starts(count: int) -> Iterator[Figure]:
    rates = {"array": _rate(count, True), "requests": _rate(count, False)}
    rates["array"] = max(rates["array"], _rate(count, True))
    ours, floor = rates["array"], rates["requests"]
    yield figure(f"{count} indices of an array run", ours, "/s", floor, "as many requests", ">= 0.9 x",
                 ours >= 0.9 * floor)  # fmt: skip


def _rate(count: int, array: bool) -> float:
    with site() as here:
        here.run("qmgr", "-c", "stop queue batch")
        line, each = Line(here.home), item("/bin/true\n", here.folder)
        if array:
            spec = {**each["spec"], "array": {"indices": [[1, count, 1]]}}  # type: ignore[dict-item]
            line.call({"cmd": "submit", "key": "array", "items": [{**each, "spec": spec}]})
        else:
            fill(here.home, here.folder, count)
        here.run("qmgr", "-c", "start queue batch")
        began = time.perf_counter()
        wait_for(lambda: not line.call({"cmd": "status"})["result"]["requests"], pause=0.05)
        return count / (time.perf_counter() - began)
