"""How a simulated machine schedules a workload: texts of qmgr commands, what would be written into
``queues.d``."""

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from nqspy.model.requests import Ask
from nqspy.sim.batch import ask_of, exact_ask_of
from nqspy.sim.workloads.jobs import SimulatedJob
from nqspy.sim.workloads.moldable import Molding, any_size, narrow, wide

SITE = """
create batch_queue batch priority=10
enable queue batch
start queue batch
set default batch_request queue batch
set sched_factor share 0 cpu 0 memory 0 time 0
"""
"""The site where no configuration is given: one queue, ordered by submit time, then place in the list."""


class BatchPolicy(Struct, frozen=True):
    """``title`` for tables; ``commands`` of qmgr that come after the site's; ``ask``: what jobs ask for;
    ``molding``: on which numbers of PEs, where these are other than the workload says."""

    name: str
    title: str
    commands: str = ""
    ask: Callable[[SimulatedJob], Ask] = ask_of
    molding: Molding | None = None


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
        "EASY, a job that probably ends in time passes",
        "set queue batch order=fcfs reserve=1 backfill=probable",
    ),
)

_MOLDED = (
    ("narrow", "each job on the least of its sizes", narrow),
    ("wide", "each job on the greatest of its sizes", wide),
    ("mold", "on the size with the earliest expected end", any_size),
)
_MOLDABLE = ("fcfs", "easy", "conservative")
_SIZES = tuple(
    replace(policy, name=f"{policy.name}-{name}", title=f"{policy.title}; {title}", molding=molding)
    for policy in _ALL
    if policy.name in _MOLDABLE
    for name, title, molding in _MOLDED
)
"""The same with jobs that could run on several numbers of PEs (`molding`)."""

BATCH_POLICIES: Mapping[str, BatchPolicy] = {policy.name: policy for policy in (*_ALL, *_SIZES)}
"""Policies by name: to add one is a line above."""
