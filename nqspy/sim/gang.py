"""The command ``nqspy sim gang``: the T3D's work (seed 000) by space sharing beside the Gang Scheduler.

A workload (`t3d`) and two sites on the ordinary simulator: LLNL's T3D before the Gang Scheduler and after
(seed 000, "Results"). A job's PEs count as used while it makes progress; while its state is moved they are
busy and useless.
"""

import json
import sys
from collections import deque
from collections.abc import Callable, Sequence
from enum import StrEnum
from statistics import fmean
from typing import Annotated, Any

import typer
from msgspec import Struct
from msgspec.structs import replace

from nqspy.engine.inputs import CommandAsked
from nqspy.engine.virtual.attempts import ENDLESS, Run
from nqspy.engine.virtual.moves import Channel
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.ids import DAY, HOUR, Instant, Seq
from nqspy.model.requests import Ask, Request, Spec
from nqspy.model.texts import folded
from nqspy.rpc.program import run as run_app
from nqspy.sim.batch import YEAR_2026, BatchRun, NotSimulated
from nqspy.sim.gang_sites import (
    APPLICATIONS,
    BATCH,
    CHOSEN,
    PER_PE,
    PES,
    WIDE,
    GangChoices,
    by_class,
    by_space,
)
from nqspy.sim.rows import TextTable
from nqspy.sim.tables import remark, show
from nqspy.sim.workloads.jobs import MOST_JOBS, SimulatedJob, Workload
from nqspy.sim.workloads.t3d import INTERACTIVE, is_working, t3d
from nqspy.sim.workloads.wanted import Wanted

MEMORY, RATE = 64 << 20, 256 * (64 << 20) / 480
"""Bytes of a PE, and bytes a second of the one channel: the whole machine in eight minutes (seed 000)."""
WEEK = 7 * DAY
WITHIN = 60_000
"""A wait (ms) that nobody minds."""
OF_INTEREST = 64
"""PEs of the interactive jobs that the seed tells of."""
YEAR = 365 * 24 * 3_600
"""In seconds."""


class GangOrder(Struct, frozen=True):
    """``classes``: jobs go by class (else space is shared); ``per_pe``: do-not-disturb time, s for each PE;
    every ``thin``-th job; ``chosen``: what the seed leaves open."""

    classes: bool
    per_pe: int = PER_PE
    thin: int = 1
    chosen: GangChoices = CHOSEN


class GangFigures(Struct, frozen=True):
    """``weeks`` and ``hours``: part of the PEs used in each whole week, and in the working hours; ``waits``
    of interactive jobs of 64 PEs that came in working hours, ms, ascending; ``moving``: ms in which the
    channel moved something; ``preempted``: how often; ``ended`` and ``left``: jobs."""

    weeks: tuple[float, ...]
    hours: float
    waits: tuple[int, ...]
    moving: int
    preempted: int
    ended: int
    left: int

    def data(self) -> dict[str, Any]:
        """For programs (interfaces.md 11)."""
        waits = self.waits
        return {
            "utilisation": {"week": fmean(self.weeks), "hours": self.hours, "weeks": list(self.weeks)},
            "interactive64": {
                "jobs": len(waits),
                "within_60s": sum(1 for wait in waits if wait <= WITHIN) / len(waits) if waits else None,
                "mean_s": fmean(waits) / 1000 if waits else None,
                "p95_s": waits[min(len(waits) - 1, int(0.95 * len(waits)))] / 1000 if waits else None,
            },
            "swapping_s": self.moving / 1000,
            "preempted": self.preempted,
            "jobs": {"ended": self.ended, "left": self.left},
        }


class GangRun(BatchRun):
    """A workload (its jobs' groups are their queues) on the machine of an order. By class, interactive jobs
    come as applications, and each other one is a request that holds no PEs and begins an application."""

    def __init__(self, workload: Workload, order: GangOrder) -> None:
        self._order = order
        self._named: dict[str, SimulatedJob] = {}
        self._requests: dict[int, Seq] = {}
        self._waits: list[int] = []
        self._preempted = self._gone = 0
        self._channel = Channel(MEMORY, RATE)
        jobs = workload.jobs
        thinned = replace(
            workload,
            pes=PES,
            jobs=lambda: (job for job in jobs() if job.place % order.thin == 0),
            begin=YEAR_2026 + 4 * DAY,  # a Monday: shifts know weekdays
        )
        self._last = max(job.submit for job in jobs())
        site = by_class(order.per_pe, order.chosen) if order.classes else by_space()
        super().__init__(thinned, site, moves=self._channel)
        self._coming = deque(maxlen=0)  # submissions are known by name: some are made meanwhile

    # ------------------------------------------------------------ what comes

    def _submission(self, job: SimulatedJob) -> cm.Submission:
        return self._asked(job, self._order.classes and job.group == INTERACTIVE)

    def _asked(self, job: SimulatedJob, application: bool) -> cm.Submission:
        self._named[str(job.number)] = job
        if application:
            queue, kind = APPLICATIONS, "interactive" if job.group == INTERACTIVE else "production"
        elif self._order.classes:
            queue, kind = WIDE if job.width > self._order.chosen.wide else BATCH, ""
        else:
            queue, kind = job.group, ""
        spec = Spec(
            owner=job.user, uid=1000, name=str(job.number), queue=queue, script="", environment="",
            workdir="/", ask=Ask(pes=job.width, wall=job.estimate), job_class=kind,
        )  # fmt: skip
        return cm.Submission(spec, "")

    def _run(self, request: Request) -> Run:
        if self._begins_one(request.queue):
            return Run(ENDLESS, 0, unlimited=True)
        return super()._run(request)

    def _begins_one(self, queue: str) -> bool:
        """True if the queue's requests hold no PEs and begin an application each."""
        return self._order.classes and queue != APPLICATIONS

    # ------------------------------------------------------------ what happens

    def _follow(self, events: Sequence[ev.Recorded]) -> None:
        for recorded in events:
            event = recorded.event
            if isinstance(event, ev.Submitted):
                self._jobs[event.seq] = self._named.pop(event.spec.name)
            elif isinstance(event, ev.Starting):
                self._starting(event.seq, recorded.at)
            elif isinstance(event, ev.Suspended):
                self._preempted += 1
            elif isinstance(event, ev.Ended):
                self._over(event.seq, recorded.at)

    def _starting(self, seq: Seq, at: Instant) -> None:
        job = self._jobs[seq]
        if self._begins_one(self.sim.site.requests[seq].queue):
            self._requests[job.number] = seq
            self.sim.heap.push(at, CommandAsked(cm.Submit((self._asked(job, True),)), self._caller(job), job))
        elif job.group == INTERACTIVE and job.width == OF_INTEREST and is_working(job.submit / 1000):
            self._waits.append(at - self.begin - job.submit)

    def _over(self, seq: Seq, at: Instant) -> None:
        """An application that ends has its request end; anything else is a job that has ended."""
        request = self._requests.pop(self._jobs.pop(seq).number, seq)
        if request == seq:
            self._gone += 1
            return

        def finish(now: Instant) -> Sequence[object]:
            self.sim.executor.finish(request, now)
            return ()

        self.sim.heap.push(at, finish)

    # ------------------------------------------------------------ figures

    def figures(self) -> GangFigures:
        """Run all its whole weeks."""
        weeks = max(1, round((self._last + DAY) // WEEK))
        used_by_week, in_hours, hours = [0.0] * weeks, 0.0, 0
        before, at = 0.0, 0
        while at < weeks * WEEK:
            until = _next_bound(at)
            for _ in self.pass_to(Instant(self.begin + until)):
                pass
            spent = self.sim.executor.spent(self.sim.now)
            used_by_week[at // WEEK] += spent - before
            if is_working(at / 1000):
                in_hours, hours = in_hours + spent - before, hours + until - at
            before, at = spent, until
        return GangFigures(
            tuple(used / (WEEK * PES) for used in used_by_week), in_hours / (hours * PES),
            tuple(sorted(self._waits)), self._channel.busy, self._preempted, self._gone, self.left,
        )  # fmt: skip


def _next_bound(at: int) -> int:
    """The next instant at which working hours begin or end, or a day."""
    day, hour = at // DAY * DAY, at % DAY // HOUR
    return day + next(bound for bound in (8, 18, 24) if bound > hour) * HOUR


# ---------------------------------------------------------------- the command

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class T3dMachine(StrEnum):
    """Which of the two machines."""

    SPACE = "space"
    GANG = "gang"


@app.command("gang")
def gang(
    machine: Annotated[
        T3dMachine | None, typer.Option("--run", help="space sharing, or by class; else both, side by side")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="of the invented workload")] = 1,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, max=MOST_JOBS, help="else five weeks of it")
    ] = None,
    thin: Annotated[int, typer.Option("--thin", min=1, help="every so manieth job only")] = 1,
    per_pe: Annotated[
        int, typer.Option("--do-not-disturb", min=0, max=YEAR, help="seconds for each PE of a job")
    ] = PER_PE,
    as_json: Annotated[bool, typer.Option("--json", help="data instead of a table")] = False,
) -> None:
    """The T3D's work by space sharing and by the Gang Scheduler: utilisation, waits of interactive jobs."""
    try:
        work = t3d(Wanted(PES, None, seed, jobs))
        found = {
            each.value: GangRun(work, GangOrder(each is T3dMachine.GANG, per_pe, thin)).figures().data()
            for each in ([machine] if machine is not None else T3dMachine)
        }
    except NotSimulated as error:
        print(f"nqspy: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    if as_json:
        print(json.dumps(found[machine.value] if machine is not None else found))
        return
    rows = tuple((title, *(read(each) for each in found.values())) for title, read in _ROWS)
    show([TextTable(f"{work.name}: {work.count} jobs on {PES} PEs", ("", *found), rows)])
    remark(folded(CHOSEN.told()))


def _part(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} s"


_ROWS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("PEs used, whole weeks", lambda each: _part(each["utilisation"]["week"])),
    ("PEs used, working hours", lambda each: _part(each["utilisation"]["hours"])),
    ("interactive jobs of 64 PEs in working hours", lambda each: str(each["interactive64"]["jobs"])),
    ("... given PEs within 60 s", lambda each: _part(each["interactive64"]["within_60s"])),
    ("... mean wait", lambda each: _seconds(each["interactive64"]["mean_s"])),
    ("... 95 of 100 wait no longer than", lambda each: _seconds(each["interactive64"]["p95_s"])),
    ("time in which state was moved", lambda each: f"{each['swapping_s'] / 3600:.1f} h"),
    ("jobs preempted", lambda each: str(each["preempted"])),
    ("jobs left at the end", lambda each: str(each["jobs"]["left"])),
)


def main() -> None:
    """Entry point."""
    run_app(app, "nqspy sim gang")
