"""scripts/bench sim [LOG.swf[.gz]]: jobs a second of `nqspy sim` under first fit, on a log's first jobs or a
generated workload, beside a plain simulator without any engine, of EASY, and of FCFS on the whole log beside
AccaSim where there is a Python that has it (minutes); and what memory does when there are twice as many."""

import argparse
import gzip
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
from tempfile import NamedTemporaryFile

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
MANY = 8_000
"""Jobs of which memory is measured."""


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


def accasim_rate(python: Path, log: Path, nodes: int, cores: int) -> float:
    """Jobs a second of CPU time of AccaSim's FCFS on a whole log."""
    with NamedTemporaryFile("wb", suffix=".swf") as plain:
        plain.write(gzip.decompress(log.read_bytes()) if log.suffix == ".gz" else log.read_bytes())
        plain.flush()
        words = [str(python), str(ROOT / "scripts" / "accasim_peer.py"), plain.name, str(nodes), str(cores)]
        run = subprocess.run(words, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"scripts/bench sim: AccaSim: {run.stderr.strip().splitlines()[-1:]}")
    found = json.loads(run.stdout)
    return float(found["jobs"] / found["seconds"])


def beside_accasim(python: Path, log: Path) -> Iterator[Figure]:
    """FCFS on a whole log, once each."""
    workload = open_workload(str(log), Wanted())
    began = time.process_time()
    rate = len(engine_starts(workload, "fcfs")) / (time.process_time() - began)
    pes, said = workload.pes, f"the whole of {workload.name}"
    for nodes, cores in ((1, pes), (pes, 1)):
        peer = accasim_rate(python, log, nodes, cores)
        beside = f"AccaSim, {nodes} node{'s' * (nodes > 1)} of {cores}"
        yield figure("... FCFS", rate, "/s", peer, beside, ">= 4 x", rate >= 4 * peer, said)


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
        yield from beside_accasim(accasim, Path(word))
    yield memory_for_each()


def memory_for_each() -> Figure:
    """What a job more takes, once the tables that are bounded (lifetimes, the last of what was told) are
    full."""
    many = open_workload("lublin", Wanted(jobs=MANY))
    half, full = (memory_of(first(many, count)) for count in (MANY // 2, MANY))
    more = (full - half) / (MANY - MANY // 2)
    said = f"{half >> 10} KB at {MANY // 2} jobs of {many.name}, {full >> 10} KB at {MANY}"
    return figure("memory for each job more", more, "bytes", None, "", f"<= {EACH}", more <= EACH, said)


def main(words: list[str], table: Callable[[list[Figure]], str]) -> int:
    """Prints the table, or JSON."""
    parser = argparse.ArgumentParser(prog="scripts/bench sim", description=__doc__)
    parser.add_argument("workload", nargs="?", default="lublin", help="a log, or a generator's name (lublin)")
    parser.add_argument("--jobs", type=int, default=2_000, help="its first jobs (2000)")
    parser.add_argument(
        "--accasim", type=Path, metavar="PYTHON", help="a Python that has accasim; the workload is a log then"
    )
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args(words)
    found = list(bench_sim(options.workload, options.jobs, options.accasim))
    print(json.dumps([asdict(each) for each in found], indent=1) if options.json else table(found))
    return 0


if __name__ == "__main__":
    sys.exit("run scripts/bench sim")
