"""scripts/bench sim [LOG.swf[.gz]]: jobs a second of `nqspy sim` under first fit, on a log or a generated
workload, beside a plain simulator without any engine, of EASY, and of FCFS beside AccaSim where there is a
Python that has it; and what memory does when there are twice as many."""

import argparse
import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from heapq import heappop, heappush
from itertools import islice
from pathlib import Path

from bench_tools import Figure, figure

from nqspy.sim.batch import BatchRun
from nqspy.sim.batch_policies import BATCH_POLICIES, SITE
from nqspy.sim.running import calm
from nqspy.sim.workloads.jobs import SimulatedJob, Workload
from nqspy.sim.workloads.known import GENERATORS, open_workload
from nqspy.sim.workloads.wanted import Wanted

ROOT = Path(__file__).resolve().parents[1]
TURNS = 3
"""So often each is measured, in turn; the least CPU time counts."""
WANTED = 10_000
"""Jobs a second that are aimed at."""
EACH = 64
"""Bytes of memory more for each job more that has ended: what is allowed."""


def plain_starts(jobs: Iterable[SimulatedJob], pes: int) -> list[tuple[int, int]]:
    """(job number, start) of first fit, by the shortest program that gives them."""
    todo, starts = list(jobs), list[tuple[int, int]]()
    ends: list[tuple[int, int, int]] = []
    waiting: list[SimulatedJob] = []
    free, place = pes, 0
    while place < len(todo) or ends:
        now = min(ends[0][0] if ends else 1 << 62, todo[place].submit if place < len(todo) else 1 << 62)
        while ends and ends[0][0] == now:
            free += heappop(ends)[2]
        while place < len(todo) and todo[place].submit == now:
            waiting.append(todo[place])
            place += 1
        left: list[SimulatedJob] = []
        for job in waiting:
            if job.width <= free:
                free -= job.width
                starts.append((job.number, now))
                heappush(ends, (now + min(job.run, job.estimate), job.place, job.width))
            else:
                left.append(job)
        waiting = left
    return starts


def engine_starts(workload: Workload, policy: str = "firstfit") -> list[tuple[int, int]]:
    """The same through the engine."""
    texts = [("site", SITE), (policy, BATCH_POLICIES[policy].commands)]
    with calm():
        return [(each.job.number, each.start) for each in BatchRun(workload, texts)]


def accasim_rate(python: Path, log: str, pes: int) -> float:
    """Jobs a second of CPU time of AccaSim's FCFS on a whole log, the most of a few turns."""
    words = [str(python), str(ROOT / "scripts" / "accasim_peer.py"), log, str(pes)]
    runs = [subprocess.run(words, capture_output=True, text=True, check=False) for _ in range(TURNS)]
    if any(run.returncode for run in runs):
        raise SystemExit(f"scripts/bench sim: AccaSim: {runs[0].stderr.strip().splitlines()[-1:]}")
    found = [json.loads(run.stdout) for run in runs]
    return max(each["jobs"] / each["seconds"] for each in found)


def first(workload: Workload, count: int) -> Workload:
    """So many of its jobs."""
    return Workload(
        workload.name, workload.pes, min(count, workload.count), lambda: islice(workload.jobs(), count)
    )


def least(work: Callable[[], list[tuple[int, int]]]) -> tuple[float, list[tuple[int, int]]]:
    """Seconds of CPU time, the least of a few turns."""
    found = []
    for _ in range(TURNS):
        began = time.process_time()
        done = work()
        found.append((time.process_time() - began, done))
    return min(found, key=lambda each: each[0])


def memory_of(workload: Workload) -> int:
    """Bytes in use when the last job but a few has ended, without what was in use before."""
    tracemalloc.start()
    before, used = tracemalloc.get_traced_memory()[0], 0
    for number, _ in enumerate(BatchRun(workload, [("site", SITE)]), 1):
        if number == workload.count - 5:
            used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return used


def bench_sim(word: str, jobs: int, accasim: Path | None = None) -> Iterator[Figure]:
    """The figures for a workload's first jobs; ``accasim``: a Python that has it."""
    whole = open_workload(word, Wanted(jobs=jobs if word in GENERATORS else None))
    workload = first(whole, jobs)
    floor, ours = (least(work) for work in (
        lambda: plain_starts(workload.jobs(), workload.pes), lambda: engine_starts(workload),
    ))  # fmt: skip
    same = sorted(floor[1]) == sorted(ours[1])
    rates = [workload.count / took for took, _ in (ours, floor)]
    said = (
        f"{workload.count} jobs of {whole.name} on {workload.pes} PEs, starts {'equal' if same else 'DIFFER'}"
    )
    yield figure("nqspy sim, first fit, jobs", rates[0], "/s", rates[1], "a simulator without an engine",
                 f">= {WANTED}/s", same and rates[0] >= WANTED, said)  # fmt: skip
    took = least(lambda: engine_starts(workload, "easy"))[0]
    yield figure("... EASY", workload.count / took, "/s", rates[1], "first fit without an engine",
                 f">= {WANTED}/s", workload.count / took >= WANTED)  # fmt: skip
    if accasim is not None:
        rate = workload.count / least(lambda: engine_starts(workload, "fcfs"))[0]
        peer = accasim_rate(accasim, word, workload.pes)
        yield figure("... FCFS", rate, "/s", peer, "AccaSim, the whole log", ">= 4 x", rate >= 4 * peer)
    half, full = (memory_of(first(whole, count)) for count in (workload.count // 2, workload.count))
    more = (full - half) / (workload.count - workload.count // 2)
    yield figure("memory for each job more", more, "bytes", None, "", f"<= {EACH}", more <= EACH,
                 f"{half >> 10} KB at {workload.count // 2} jobs, {full >> 10} KB at all")  # fmt: skip


def main(words: list[str], table: Callable[[list[Figure]], str]) -> int:
    """Prints the table, or JSON."""
    parser = argparse.ArgumentParser(prog="scripts/bench sim", description=__doc__)
    parser.add_argument("workload", nargs="?", default="lublin", help="a log, or a generator's name (lublin)")
    parser.add_argument("--jobs", type=int, default=2_000, help="its first jobs (2000)")
    parser.add_argument(
        "--accasim", type=Path, metavar="PYTHON", help="a Python that has accasim; then a log, not gzipped"
    )
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args(words)
    found = list(bench_sim(options.workload, options.jobs, options.accasim))
    print(json.dumps([asdict(each) for each in found], indent=1) if options.json else table(found))
    return 0


if __name__ == "__main__":
    sys.exit("run scripts/bench sim")
