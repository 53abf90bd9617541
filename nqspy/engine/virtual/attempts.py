"""Attempts on the invented machine: what they would do, how far they are, how they end."""

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
    """Course of an attempt that has the machine for itself: wall and CPU time in ms (the difference is
    its wait for disks), exit status, memory in bytes; ``unlimited``: no limit ends it before; ``ending``:
    what is told of its end where nothing ends it before. A wall time of `ENDLESS`: it never ends by
    itself."""

    wall: int
    cpu: int | None = None
    status: int = 0
    memory: int = 0
    unlimited: bool = False
    ending: Ending | None = None


@dataclass(slots=True, eq=False)
class VirtualAttempt:
    """Attempt on the invented machine. ``done``: how far its run is (ms of the wall time it takes at full
    speed), ``wall``: wall time it has had, without that in which it was suspended; both as of ``since``.
    ``target``: how far it gets, ``reason`` what stops it there. ``due``: when it ends as things are (None:
    not known), ``end``: how, once that is in the heap, and ``number`` its number there. ``more``: CPU time
    (ms) it was told to have used beyond what its run says. ``away``: it has left its PEs, or leaves them;
    ``coming``: it comes back, and makes no progress yet."""

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
    wall: int = 0
    due: int | None = None
    end: ObservedEnded | None = None
    number: int = -1
    more: int = 0
    away: bool = False
    coming: bool = False
    key: Key = field(init=False)
    """Request and number."""
    memory: int = field(init=False)
    """Memory it takes, bytes."""
    whole: int = field(init=False)
    """CPU time (ms) of its run, of which each part of the run takes its part."""
    in_all: int = field(init=False)
    """CPU time (ms) that it has used where it gets to."""

    def __post_init__(self) -> None:
        self.key = self.seq, self.attempt
        self.memory, self.whole = self.run.memory, cpu_at(self.run, self.run.wall)
        self.in_all = self.whole if self.reason == "exit" else cpu_at(self.run, self.target)

    def settle(self, now: Instant) -> float:
        """Takes stock at an instant; returns the CPU time (ms) used since the last time."""
        passed, self.since = now - self.since, now
        if not self.runs:
            return 0.0
        self.wall += passed
        self.done += self.rate * passed
        return self.demand * self.rate * passed

    def go_on_from(self, request: Request, used: Used | None, now: Instant) -> None:
        """Go on with a request that runs since its start, or is suspended, and has used what was told
        last."""
        used = request.used if used is None else used.most(request.used)
        self.runs = request.state is not State.SUSPENDED
        self.wall = request.run.ran(now)
        self.done = float(min(self.wall, self.target))
        self.more = used.cpu - cpu_at(self.run, used.wall) if used.wall else 0

    def used(self, now: Instant) -> Used:
        """Use of the attempt up to an instant."""
        passed = now - self.since if self.runs else 0
        done, wall = self.done + self.rate * passed, self.run.wall
        cpu = self.whole if done >= wall else round(self.whole * done / wall)
        return Used(cpu + self.more, self.wall + passed, self.memory)

    def next_end(self) -> tuple[int, Ending] | None:
        """Time for which it goes on at its rate, and its end then; None: it does not get on at all."""
        needs, limit, hole = self.lasts(), None, self.hole_end()
        if self.wall_limit is not None:
            limit = max(0, self.wall_limit - self.wall)
        if hole is not None and all(each is None or hole[0] < each for each in (limit, needs)):
            return hole
        if limit is not None and (needs is None or limit < needs):
            cpu = cpu_at(self.run, self.done + self.rate * limit)
            used = Used(cpu + self.more, self.wall + limit, self.memory)
            return limit, Ending("wall_limit", None, 15, used)
        if needs is None or self.run.wall >= ENDLESS:
            return None
        return needs, self.own_end(self.since + needs)

    def is_bounded(self) -> bool:
        """True if something else may end it than that it gets where it gets to, or nothing."""
        return self.wall_limit is not None or self.until is not None or self.run.wall >= ENDLESS

    def lasts(self) -> int | None:
        """Time it takes at its rate to get where it gets to; None: it does not get on."""
        rate, remaining = self.rate, self.target - self.done
        return 0 if remaining <= 0 else ceil(remaining / rate) if rate > 0 else None

    def own_end(self, at: int) -> Ending:
        """End of the attempt when it gets there, at that instant."""
        used = Used(self.in_all + self.more, self.wall + at - self.since, self.memory)
        if self.reason != "exit":
            return Ending(self.reason, None, 15, used)
        return self.run.ending or Ending("exit", self.run.status, None, used)

    def hole_end(self) -> tuple[int, Ending] | None:
        """Time until its hole ends, which goes by while it is suspended, and its end; None: it has none."""
        if self.until is None:
            return None
        remaining = max(0, self.until - self.since)
        ran = remaining if self.runs else 0
        used = Used(cpu_at(self.run, self.done + self.rate * ran), self.wall + ran, self.memory)
        return remaining, Ending("contract", None, 15, used)


def cpu_at(run: Run, done: float) -> int:
    """CPU time (ms) that a run has used when it is so far."""
    cpu = run.wall if run.cpu is None else run.cpu
    return cpu if done >= run.wall else round(cpu * done / run.wall)
