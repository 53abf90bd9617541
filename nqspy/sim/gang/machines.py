"""The two machines of the experiment, as texts of qmgr commands: LLNL's T3D before the Gang Scheduler and
after (seed 000, "Results").

Before, a request holds its PEs in a row from start to end, and NQS keeps PEs free for interactive work by the
hour. After, NQS starts requests early, and their applications are scheduled by class. What the seed's text
does not show any more is chosen here: before, pe32 and pe64 run 4 at a time, 2 of a user, on 192 PEs; after,
all batch queues are one, first come, first served (with limits for each queue the widest starve under this
load); large jobs are those of 128 PEs and more, and may have the whole machine.
"""

from collections.abc import Iterator
from typing import NamedTuple

from nqspy.sim.workloads.t3d import INTERACTIVE, QUEUES

PES = 256


class QueueLimits(NamedTuple):
    """Requests of one user and of all at a time, PEs of all."""

    user: int
    run: int
    pes: int


BEFORE: dict[str, QueueLimits] = {
    "pe32": QueueLimits(2, 4, 192),
    "pe64": QueueLimits(2, 4, 192),
    "pe64_long": QueueLimits(2, 2, 96),
    "pe128_short": QueueLimits(1, 4, 128),
    "pe128": QueueLimits(1, 1, 128),
    "pe256_short": QueueLimits(1, 1, 256),
    "pe256": QueueLimits(1, 1, 256),
}
HOURS = ((0, 256, 38), (4, 96, 8), (18, 192, 8))
"""From which hour on NQS may use how many PEs, and run how many requests, before; 2 of each user."""
LIMIT, RUNS, OF_A_USER = 384, 20, 8
"""After: at all hours."""

CLASSES = """
create class foreign priority=5 wait=0 do_not_disturb=unlimited pe_limit=256 preempted=off
create class interactive priority=4 wait=0 do_not_disturb={interactive} pe_limit=256
create class benchmark priority=3 do_not_disturb=unlimited pe_limit=64 preempted=off
create class production priority=2 wait=30:00 do_not_disturb={production} pe_limit=256
create class standby priority=1 do_not_disturb=3 pe_limit=256
set gang large_size=128 large_limit=256 job_limit=256
"""
"""The seed's table for the daytime on weekdays."""
PER_PE = 10
"""Its do-not-disturb time of interactive and production jobs for each PE, s."""


def space() -> list[tuple[str, str]]:
    """Contiguous space sharing, without preemption."""
    lines = ["set domain application placement=contiguous", *_queue(INTERACTIVE, "")]
    for name in QUEUES:
        lines += _queue(name, _limits(BEFORE[name]))
    lines.append(f"create complex=({', '.join(QUEUES)}) nqs")
    for hour, pes, runs in HOURS:
        lines += [
            f'define shift from{hour:02} when=("0 {hour} * * *")',
            f"  set complex nqs pe_limit={pes} run_limit={runs} user_limit=2",
            "end",
        ]
    return _texts(lines)


def gang(per_pe: int = PER_PE) -> list[tuple[str, str]]:
    """The same work by classes; ``per_pe``: do-not-disturb time, s for each PE."""
    limits = f" domain=nqs backfill=none pe_limit={LIMIT} run_limit={RUNS} user_limit={OF_A_USER}"
    lines = [
        "set domain application placement=contiguous",
        "create domain nqs kind=command",
        CLASSES.format(interactive=per_pe, production=per_pe),
        *_queue(APPLICATIONS, "", "class"),
        *_queue(BATCH, limits),
    ]
    return _texts(lines)


BATCH = "nqs"
"""The queue of batch requests, after."""
APPLICATIONS = "applications"
"""The queue of the applications that requests begin, and of interactive ones."""


def _limits(limits: QueueLimits) -> str:
    return f" user_limit={limits.user} run_limit={limits.run} pe_limit={limits.pes}"


def _queue(name: str, more: str, order: str = "fcfs") -> Iterator[str]:
    yield f"create batch_queue {name} priority=10"
    yield f"set queue {name} order={order}{more}"
    yield f"enable queue {name}"
    yield f"start queue {name}"


def _texts(lines: list[str]) -> list[tuple[str, str]]:
    return [("gang", f"set machine pes={PES}\n" + "\n".join(lines) + "\n")]
