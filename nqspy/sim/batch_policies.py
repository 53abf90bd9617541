"""How a simulated machine schedules a workload: texts of qmgr commands, what would be written into
``queues.d``."""

from collections.abc import Mapping
from dataclasses import dataclass

SITE = """
create batch_queue batch priority=10
enable queue batch
start queue batch
set default batch_request queue batch
set sched_factor share 0 cpu 0 memory 0 time 0
"""
"""The site where no configuration is given: one queue, ordered by submit time, then place in the list."""


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """``title`` for tables; ``commands`` of qmgr that come after the site's; ``exact``: plans know how long
    each job will really run, which no live site does: jobs ask for that."""

    name: str
    title: str
    commands: str = ""
    exact: bool = False


_ALL = (
    BatchPolicy("fcfs", "first come, first served", "set queue batch order=fcfs backfill=none"),
    BatchPolicy("firstfit", "in order, skipping what does not fit", "set queue batch order=fcfs"),
    BatchPolicy("sjf", "shortest job first", "set queue batch order=sjf backfill=none"),
    BatchPolicy("easy", "EASY: backfills behind one promised start", "set queue batch order=fcfs reserve=1"),
    BatchPolicy(
        "easy-sjbf",
        "EASY, the shortest backfilled first",
        "set queue batch order=fcfs reserve=1 backfill_order=shortest",
    ),
    BatchPolicy(
        "conservative", "backfills behind all promised starts", "set queue batch order=fcfs reserve=all"
    ),
    BatchPolicy(
        "easy-exact", "EASY, run times known exactly", "set queue batch order=fcfs reserve=1", exact=True
    ),
    BatchPolicy(
        "easy-probable",
        "EASY, who probably ends in time passes",
        "set queue batch order=fcfs reserve=1 backfill=probable",
    ),
)

BATCH_POLICIES: Mapping[str, BatchPolicy] = {policy.name: policy for policy in _ALL}
"""Policies by name: to add one is a line above."""
