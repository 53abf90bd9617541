"""The command ``nqspy sim gang``: the T3D's work (seed 000) by space sharing beside the Gang Scheduler.

A workload (`t3d`) and two sites on the ordinary simulator: LLNL's T3D before the Gang Scheduler and after
(seed 000, "Results"). Before, a request holds its PEs in a row from start to end, and NQS keeps PEs free for
interactive work by the hour. After, NQS starts requests early, and their applications are scheduled by class.
A job's PEs count as used while it makes progress; while its state is moved they are busy and useless.

The text of seed 000 leaves open: before, pe32 and pe64 run 4 at a time, 2 of a user, on 192 PEs. After, NQS
has two queues, each first come, first served: one for requests of more than 128 PEs, one for all others.
`CHOSEN` says the rest.
"""

import json
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial
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
from nqspy.model.errors import NqspyError
from nqspy.model.ids import DAY, HOUR, Instant, Seq
from nqspy.model.requests import Ask, Request, Spec
from nqspy.model.texts import folded
from nqspy.rpc.program import run as run_app
from nqspy.sim.batch import YEAR_2026, BatchRun, caller_of
from nqspy.sim.tables import TextTable, remark, show
from nqspy.sim.workloads.jobs import MOST_JOBS, SimulatedJob, Wanted, Workload
from nqspy.sim.workloads.t3d import INTERACTIVE, QUEUES, is_working, t3d

PES = 256
BATCH = "nqs"
"""The queue of batch requests, after."""
WIDE = "wide"
"""That of those of more PEs than `GangChoices` has them."""
APPLICATIONS = "applications"
"""The queue of the applications that requests begin, and of interactive ones."""


BEFORE: dict[str, tuple[int, int, int]] = {
    "pe32": (2, 4, 192),
    "pe64": (2, 4, 192),
    "pe64_long": (2, 2, 96),
    "pe128_short": (1, 4, 128),
    "pe128": (1, 1, 128),
    "pe256_short": (1, 1, 256),
    "pe256": (1, 1, 256),
}
"""Requests of one user and of all at a time, PEs of all."""
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
set gang large_size={large} large_limit=256 job_limit=256
"""
"""The seed's table for the daytime on weekdays."""
PER_PE = 10
"""Its do-not-disturb time of interactive and production jobs for each PE, s."""


class GangChoices(Struct, frozen=True):
    """Choices that the seed's text leaves to the site. Jobs of ``large`` PEs
    and more have ``by_day`` PEs together from 8 to 18 h on weekdays, all of them at other hours; then
    production jobs are not disturbed for ``at_night`` s for each PE. Requests of more than ``wide`` PEs are
    not started from 4 to 18 h on weekdays; from then until ``until`` h the others have ``beside`` PEs, so
    that one gets in. Found by trial, on seeds 1 to 5 of the recipe."""

    large: int = 32
    by_day: int = 128
    at_night: int = 30
    wide: int = 128
    beside: int = 128
    until: int = 20

    def told(self) -> str:
        """Say it for people."""
        return (
            f"By class, chosen: jobs of {self.large} PEs and more have {self.by_day} PEs together from 8 to "
            f"18 h on weekdays ({PES} else), and what lower classes have of them does not count for an "
            f"interactive one; production jobs are not disturbed for {self.at_night} s for each PE at other "
            f"hours; requests of more than {self.wide} PEs start from 18 to 4 h and at weekends, and until "
            f"{self.until} h the others have {self.beside} PEs beside them."
        )


CHOSEN = GangChoices()
UNLIMITED = GangChoices(by_day=PES, at_night=PER_PE)
"""The same without PEs kept free by day, and with the same class table at all hours."""


def by_space() -> list[tuple[str, str]]:
    """Contiguous space sharing, without preemption."""
    lines = ["set domain application placement=contiguous", *_queue(INTERACTIVE, "")]
    for name in QUEUES:
        user, run, pes = BEFORE[name]
        lines += _queue(name, f" user_limit={user} run_limit={run} pe_limit={pes}")
    lines.append(f"create complex=({', '.join(QUEUES)}) nqs")
    for hour, pes, runs in HOURS:
        lines += [
            f'define shift from{hour:02} when=("0 {hour} * * *")',
            f"  set complex nqs pe_limit={pes} run_limit={runs} user_limit=2",
            "end",
        ]
    return _texts(lines)


def by_class(per_pe: int = PER_PE, chosen: GangChoices = CHOSEN) -> list[tuple[str, str]]:
    """Return the site that runs work by classes; ``per_pe``: do-not-disturb time by day, s for each PE."""
    queue = " domain=nqs backfill=none"
    lines = [
        "set domain application placement=contiguous",
        "create domain nqs kind=command",
        CLASSES.format(interactive=per_pe, production=chosen.at_night, large=chosen.large),
        *_queue(APPLICATIONS, "", "class"),
        *_queue(BATCH, queue),
        *_queue(WIDE, queue),
        f"set queue {WIDE} priority=20",
        f"create complex=({BATCH}, {WIDE}) after",
        f"set complex after pe_limit={LIMIT} run_limit={RUNS} user_limit={OF_A_USER}",
        *_hours("early", "0 4 * * mon-fri", production=chosen.at_night, wide=False),
        *_hours("day", "0 8 * * mon-fri", production=per_pe, wide=False, large=chosen.by_day),
        *_hours("evening", "0 18 * * mon-fri", production=chosen.at_night, others=chosen.beside),
        *_hours("night", f"0 {chosen.until} * * mon-fri", production=chosen.at_night),
    ]
    return _texts(lines)


def _hours(
    name: str, when: str, *, production: int, wide: bool = True, large: int = PES, others: int = LIMIT
) -> list[str]:
    """Return a set of parameters and from when on it is in force."""
    return [
        f'define shift {name} when=("{when}")',
        f"  {'start' if wide else 'stop'} queue {WIDE}",
        f"  set queue {BATCH} pe_limit={others}",
        f"  set gang large_limit={large}",
        f"  set class production do_not_disturb={production}",
        "end",
    ]


def _queue(name: str, more: str, order: str = "fcfs") -> Iterator[str]:
    yield f"create batch_queue {name} priority=10"
    yield f"set queue {name} order={order}{more}"
    yield f"enable queue {name}"
    yield f"start queue {name}"


def _texts(lines: list[str]) -> list[tuple[str, str]]:
    return [("gang", f"set machine pes={PES}\n" + "\n".join(lines) + "\n")]


# ---------------------------------------------------------------- the run

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
        queue, kind = job.group, ""
        if application:
            queue, kind = APPLICATIONS, "interactive" if job.group == INTERACTIVE else "production"
        elif self._order.classes:
            queue = WIDE if job.width > self._order.chosen.wide else BATCH
        spec = Spec(
            owner=job.user, uid=1000, name=str(job.number), queue=queue, script="", environment="",
            workdir="/", ask=Ask(pes=job.width, wall=job.estimate), job_class=kind,
        )  # fmt: skip
        return cm.Submission(spec, "")

    def _run(self, request: Request) -> Run:
        return Run(ENDLESS, 0, unlimited=True) if self._begins_one(request.queue) else super()._run(request)

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
                request = self._requests.pop(self._jobs.pop(event.seq).number, event.seq)
                if request == event.seq:
                    self._gone += 1
                else:  # an application, whose request ends with it
                    self.sim.heap.push(recorded.at, partial(self._finish, request))

    def _finish(self, request: Seq, now: Instant) -> Sequence[object]:
        self.sim.executor.finish(request, now)
        return ()

    def _starting(self, seq: Seq, at: Instant) -> None:
        job = self._jobs[seq]
        if self._begins_one(self.sim.site.requests[seq].queue):
            self._requests[job.number] = seq
            self.sim.heap.push(at, CommandAsked(cm.Submit((self._asked(job, True),)), caller_of(job), job))
        elif job.group == INTERACTIVE and job.width == OF_INTEREST and is_working(job.submit / 1000):
            self._waits.append(at - self.begin - job.submit)

    # ------------------------------------------------------------ figures

    def figures(self) -> dict[str, Any]:
        """Run all its whole weeks; return the figures (interfaces.md 11): part of the PEs used in the mean
        week, in working hours, and in each week; waits of interactive jobs of 64 PEs that came in working
        hours; time in which the channel moved something; how often a job was preempted; how many jobs ended,
        and were left."""
        weeks = max(1, round((self._last + DAY) // WEEK))
        used_by_week, in_hours, hours = [0.0] * weeks, 0.0, 0
        before, at = 0.0, 0
        while at < weeks * WEEK:
            day, hour = at // DAY * DAY, at % DAY // HOUR  # until working hours begin or end, or a day
            until = day + next(bound for bound in (8, 18, 24) if bound > hour) * HOUR
            for _ in self.pass_to(Instant(self.begin + until)):
                pass
            spent = self.sim.executor.spent(self.sim.now)
            used_by_week[at // WEEK] += spent - before
            if is_working(at / 1000):
                in_hours, hours = in_hours + spent - before, hours + until - at
            before, at = spent, until
        by_week, waits = [used / (WEEK * PES) for used in used_by_week], sorted(self._waits)
        count = len(waits)
        return {
            "utilisation": {"week": fmean(by_week), "hours": in_hours / (hours * PES), "weeks": by_week},
            "interactive64": {
                "jobs": count,
                "within_60s": sum(wait <= WITHIN for wait in waits) / count if waits else None,
                "mean_s": fmean(waits) / 1000 if waits else None,
                "p95_s": waits[min(count - 1, int(0.95 * count))] / 1000 if waits else None,
            },
            "swapping_s": self._channel.busy / 1000,
            "preempted": self._preempted,
            "jobs": {"ended": self._gone, "left": self.left},
        }


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
            each.value: GangRun(work, GangOrder(each is T3dMachine.GANG, per_pe, thin)).figures()
            for each in ([machine] if machine is not None else T3dMachine)
        }
    except NqspyError as error:
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
