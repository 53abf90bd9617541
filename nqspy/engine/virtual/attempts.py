"""Attempts on the simulated machine: what they would do, their progress, their ends."""

from dataclasses import dataclass, field
from math import ceil

from msgspec import Struct

from nqspy.engine.virtual.processors import Key
from nqspy.model.ids import Instant, Seq
from nqspy.model.observations import ObservedEnded
from nqspy.model.requests import Ending, EndReason, Request, State, Used

ENDLESS = 1 << 62
"""Wall time (ms) of a run without a known end."""


class Run(Struct, frozen=True):
    """Run of an attempt as if it had the machine alone: wall and CPU time in ms (the difference is its wait
    for disks), exit status, memory in bytes. ``unlimited``: True if no limit ends it earlier; ``ending``:
    reported at its own end. A wall time of `ENDLESS`: it never ends by itself."""

    wall: int
    cpu: int | None = None
    status: int = 0
    memory: int = 0
    unlimited: bool = False
    ending: Ending | None = None


@dataclass(slots=True, eq=False)
class VirtualAttempt:
    """Attempt on the simulated machine. ``done``: progress (ms of the wall time at full speed); ``wall``:
    wall time (ms) without suspensions; both at the instant ``since``. ``target``: progress at which it ends,
    ``reason``: why there; ``until``: end of its hole before a reservation (`Spec.contract`). ``due``: when it
    ends at its present rate (None: unknown); ``end``: its end in the heap, ``number``: its number there.
    ``more``: reported CPU time (ms) beyond its run's. ``turns``: time (ms) in its slots, and of a whole round
    of slots, over which its run time is taken as evenly spread (None: it runs all the time). ``away``: True
    if it has left or leaves its PEs; ``coming``: True while it comes back, without progress yet."""

    seq: Seq
    attempt: int
    run: Run
    demand: float
    target: int
    reason: EndReason
    wall_limit: int | None
    until: Instant | None
    since: Instant
    runs: bool = True
    rate: float = 0.0
    done: float = 0.0
    wall: float = 0
    due: int | None = None
    end: ObservedEnded | None = None
    number: int = -1
    more: int = 0
    turns: tuple[int, int] | None = None
    away: bool = False
    coming: bool = False
    key: Key = field(init=False)
    """Request and number."""
    memory: int = field(init=False)
    """Memory that it uses, bytes."""
    whole: int = field(init=False)
    """CPU time (ms) of its whole run, evenly spread over it."""
    in_all: int = field(init=False)
    """CPU time (ms) that it has used at its target."""

    def __post_init__(self) -> None:
        self.key = self.seq, self.attempt
        self.memory, self.whole = self.run.memory, cpu_at(self.run, self.run.wall)
        self.in_all = self.whole if self.reason == "exit" else cpu_at(self.run, self.target)

    def settle(self, now: Instant) -> float:
        """Update the progress to an instant; return the CPU time (ms) used since the last update."""
        passed, self.since = self.ran(now - self.since), now
        if not self.runs:
            return 0.0
        self.wall += passed
        self.done += self.rate * passed
        return self.demand * self.rate * passed

    @property
    def has_slot(self) -> bool:
        """True if it runs at some time; one may have no slot while a prime request runs."""
        return self.turns is None or self.turns[0] > 0

    def ran(self, span: int) -> float:
        """Return how long it runs in a span of time (ms), in which it is not suspended."""
        return span if self.turns is None else span * self.turns[0] / self.turns[1]

    def _takes(self, ran: float) -> int:
        """Return the time (ms) in which it runs for so long (ms). It must have a slot."""
        return ceil(ran) if self.turns is None else ceil(ran * self.turns[1] / self.turns[0])

    def go_on_from(self, request: Request, used: Used | None, now: Instant) -> None:
        """Set the progress of an attempt that a site has begun, by its start and its last reported use."""
        used = request.used if used is None else used.most(request.used)
        self.runs = request.state is not State.SUSPENDED
        self.wall = request.run.ran(now) if self.turns is None else used.wall
        self.done = float(min(self.wall, self.target))
        self.more = used.cpu - cpu_at(self.run, used.wall) if used.wall else 0

    def used(self, now: Instant) -> Used:
        """Return the use (CPU, wall, memory) of the attempt up to ``now``."""
        passed = self.ran(now - self.since) if self.runs else 0
        done, wall = self.done + self.rate * passed, self.run.wall
        cpu = self.whole if done >= wall else round(self.whole * done / wall)
        return Used(cpu + self.more, round(self.wall + passed), self.memory)

    def next_end(self) -> tuple[int, Ending] | None:
        """Return the time (ms) until it ends at its present rate (by itself, at a limit, or with its hole),
        and its end record; None: it does not end."""
        needs, limit, hole = self.lasts(), None, self.hole_end()
        if self.wall_limit is not None and self.has_slot:
            limit = self._takes(max(0, self.wall_limit - self.wall))
        if hole is not None and all(each is None or hole[0] < each for each in (limit, needs)):
            return hole
        if limit is not None and (needs is None or limit < needs):
            ran = self.ran(limit)
            cpu = cpu_at(self.run, self.done + self.rate * ran)
            used = Used(cpu + self.more, round(self.wall + ran), self.memory)
            return limit, Ending("wall_limit", None, 15, used)
        if needs is None or self.run.wall >= ENDLESS:
            return None
        return needs, self.own_end(self.since + needs)

    def is_bounded(self) -> bool:
        """True if its wall limit or the end of its hole may end it, or if it has no end of its own."""
        return self.wall_limit is not None or self.until is not None or self.run.wall >= ENDLESS

    def lasts(self) -> int | None:
        """Return the time (ms) to its target at its present rate; None: it makes no progress."""
        rate, remaining = self.rate, self.target - self.done
        return 0 if remaining <= 0 else self._takes(remaining / rate) if rate > 0 and self.has_slot else None

    def own_end(self, at: int) -> Ending:
        """Return the end record of the attempt if it reaches its target at that instant."""
        used = Used(self.in_all + self.more, round(self.wall + self.ran(at - self.since)), self.memory)
        if self.reason != "exit":
            return Ending(self.reason, None, 15, used)
        return self.run.ending or Ending("exit", self.run.status, None, used)

    def hole_end(self) -> tuple[int, Ending] | None:
        """Return the time (ms) until its hole ends, which also passes while it is suspended, and its end
        record then; None: it has no hole."""
        if self.until is None:
            return None
        remaining = max(0, self.until - self.since)
        ran = self.ran(remaining) if self.runs else 0
        used = Used(cpu_at(self.run, self.done + self.rate * ran), round(self.wall + ran), self.memory)
        return remaining, Ending("contract", None, 15, used)


def cpu_at(run: Run, done: float) -> int:
    """Return the CPU time (ms) that a run has used at this progress (ms of its wall time)."""
    cpu = run.wall if run.cpu is None else run.cpu
    return cpu if done >= run.wall else round(cpu * done / run.wall)
