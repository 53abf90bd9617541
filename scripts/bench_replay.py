"""scripts/bench replay [WORKLOAD]: requests a second of a replay, beside the simulator that has made the
journal, in the same run; as it was, and under another setting."""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from bench_tools import Figure, figure

from nqspy.model import lifecycle
from nqspy.model.events import Recorded
from nqspy.model.site import Site
from nqspy.ports import Batch
from nqspy.sim.batch import BatchRun
from nqspy.sim.batch_policies import BATCH_POLICIES, SITE
from nqspy.sim.replay import changes
from nqspy.sim.replay.past import RecordedPast
from nqspy.sim.replay.what_if import AS_IT_WAS, Other, Replayed, gathered, replayed
from nqspy.sim.running import calm
from nqspy.sim.workloads.jobs import Workload
from nqspy.sim.workloads.known import open_workload
from nqspy.sim.workloads.wanted import Wanted
from nqspy.store.journal import SqliteJournal
from nqspy.store.passing import PassingJournal

HALF = 0.5
"""Part of the simulator's rate that a replay has at least."""
OTHER = "set global run_limit=40"
TOGETHER = 5_000
"""Events that are written into the journal with one commit."""


class Remembering(PassingJournal):
    """Told as the simulator's, and of what is remembered: as a daemon's journal has it."""

    remembers = True


def simulate(workload: Workload, policy: str) -> int:
    """Runs it; how many jobs ended."""
    with calm():
        return sum(1 for _ in BatchRun(workload, _texts(policy)))


def _texts(policy: str) -> list[tuple[str, str]]:
    return [("site", SITE), (policy, BATCH_POLICIES[policy].commands)]


def record(workload: Workload, policy: str, home: Path) -> int:
    """Writes the journal of the same run into a home; how many events that are."""
    events = list[Recorded]()
    run = BatchRun(workload, _texts(policy), journal=lambda told: Remembering(_both(events, told)))
    with calm():
        for _ in run:
            pass
    (home / "exits").mkdir()
    site = Site()
    with SqliteJournal.open(home / "nqs.db") as journal:
        for place in range(0, len(events), TOGETHER):
            some = events[place : place + TOGETHER]
            for recorded in some:
                lifecycle.apply(site, recorded)
            journal.commit(Batch(some), site)
    return len(events)


def _both(
    kept: list[Recorded], told: Callable[[Sequence[Recorded]], None]
) -> Callable[[Sequence[Recorded]], None]:
    def tell(events: Sequence[Recorded]) -> None:
        kept.extend(events)
        told(events)

    return tell


def replay(home: Path, other: Other) -> Replayed:
    """From the file to the end of the courses."""
    return replayed(gathered(RecordedPast(home)), other)


def took(work: Callable[[], object]) -> tuple[float, object]:
    """CPU seconds, and what came of it."""
    began = time.process_time()
    made = work()
    return time.process_time() - began, made


def bench_replay(word: str, requests: int, policy: str) -> Iterator[Figure]:
    """The figures of a workload's first jobs."""
    workload = open_workload(word, Wanted(jobs=requests))
    with tempfile.TemporaryDirectory(prefix="nqspy-bench-") as folder:
        home = Path(folder)
        events = record(workload, policy, home)
        floor = workload.count / took(lambda: simulate(workload, policy))[0]
        ours, found = took(lambda: replay(home, AS_IT_WAS))
        assert isinstance(found, Replayed)
        differ, rate = len(found.was.differences), workload.count / ours
        said = f"{workload.count} requests of {workload.name}, {events} events, {differ} differences"
        yield figure("nqspy replay, as it was, requests", rate, "/s", floor, f"nqspy sim, {policy}",
                     f">= {HALF} x", not differ and rate >= HALF * floor, said)  # fmt: skip
        both, found = took(lambda: replay(home, Other(changes.throughout(f"{OTHER}\n"))))
        assert isinstance(found, Replayed)
        assert found.would is not None
        yield figure(f"... and with {OTHER}", workload.count / both, "/s", floor, "the same", "", None,
                     f"both courses, {len(found.would.made)} events in the other")  # fmt: skip


def main(words: list[str], table: Callable[[list[Figure]], str]) -> int:
    """Prints the table, or JSON."""
    parser = argparse.ArgumentParser(prog="scripts/bench replay", description=__doc__)
    parser.add_argument("workload", nargs="?", default="lublin", help="a generator's name (lublin)")
    parser.add_argument("--requests", type=int, default=10_000, help="its first jobs (10000)")
    parser.add_argument("--policy", default="firstfit", help="as nqspy sim has them (firstfit)")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args(words)
    found = list(bench_replay(options.workload, options.requests, options.policy))
    print(json.dumps([asdict(each) for each in found], indent=1) if options.json else table(found))
    return 0 if all(each.met is not False for each in found) else 1


if __name__ == "__main__":
    sys.exit("run scripts/bench replay")
