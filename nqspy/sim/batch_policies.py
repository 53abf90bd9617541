"""How a simulated machine schedules a workload: texts of qmgr commands, what would be written into
``queues.d``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nqspy.model.requests import Ask
from nqspy.sim.batch import ask_of, exact_ask_of
from nqspy.sim.workloads.jobs import SimulatedJob

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
    """``title`` for tables; ``commands`` of qmgr that come after the site's; ``ask``: what jobs ask for."""

    name: str
    title: str
    commands: str = ""
    ask: Callable[[SimulatedJob], Ask] = ask_of


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
        "easy-exact",
        "EASY, run times known exactly",
        "set queue batch order=fcfs reserve=1",
        exact_ask_of,
    ),
    BatchPolicy(
        "easy-probable",
        "EASY, who probably ends in time passes",
        "set queue batch order=fcfs reserve=1 backfill=probable",
    ),
)

BATCH_POLICIES: Mapping[str, BatchPolicy] = {policy.name: policy for policy in _ALL}
"""Policies by name: to add one is a line above."""
