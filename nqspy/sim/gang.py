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
from collections.abc import Callable, Sequence
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
BATCH, WIDE, APPLICATIONS = "nqs", "wide", "applications"
"""Queues of the second site: of batch requests, of those of more than `WIDE_PES`, of applications that these
begin, of interactive ones."""

PER_PE, AT_NIGHT = 10, 30
"""Do-not-disturb seconds for each PE: of interactive and, by day, production jobs; of these at night."""
LARGE, BY_DAY, WIDE_PES, BESIDE, UNTIL = 32, 128, 128, 128, 20
"""Settings chosen by trial, on seeds 1 to 5 of the recipe; `CHOSEN` explains them."""
CHOSEN = (
    f"By class, chosen: jobs of {LARGE} PEs and more have {BY_DAY} PEs together from 8 to 18 h on weekdays "
    f"({PES} else), and what lower classes have of them does not count for an interactive one; "
    f"production jobs are not disturbed for {AT_NIGHT} s for each PE at other hours; requests of more than "
    f"{WIDE_PES} PEs start from 18 to 4 h and at weekends, and until {UNTIL} h the others have "
    f"{BESIDE} PEs beside them."
)

_QUEUE = """
create batch_queue {0} priority=10
set queue {0} order={1} {2}
enable queue {0}
start queue {0}
"""
_BEFORE = {
    INTERACTIVE: "",
    "pe32": "user_limit=2 run_limit=4 pe_limit=192",
    "pe64": "user_limit=2 run_limit=4 pe_limit=192",
    "pe64_long": "user_limit=2 run_limit=2 pe_limit=96",
    "pe128_short": "user_limit=1 run_limit=4 pe_limit=128",
    "pe128": "user_limit=1 run_limit=1 pe_limit=128",
    "pe256_short": "user_limit=1 run_limit=1 pe_limit=256",
    "pe256": "user_limit=1 run_limit=1 pe_limit=256",
}
_HOURS = "".join(
    f"""
define shift from{hour:02} when=("0 {hour} * * *")
  set complex nqs pe_limit={pes} run_limit={runs} user_limit=2
end
"""
    for hour, pes, runs in ((0, 256, 38), (4, 96, 8), (18, 192, 8))
)
SPACE = (
    f"set machine pes={PES}\nset domain application placement=contiguous\n"
    + "".join(_QUEUE.format(name, "fcfs", limits) for name, limits in _BEFORE.items())
    + f"create complex=({', '.join(QUEUES)}) nqs\n{_HOURS}"
)
"""Commands of qmgr for contiguous space sharing, without preemption."""

_CLASSES = """
set machine pes={pes}
set domain application placement=contiguous
create domain nqs kind=command
create class foreign priority=5 wait=0 do_not_disturb=unlimited pe_limit=256 preempted=off
create class interactive priority=4 wait=0 do_not_disturb={per_pe} pe_limit=256
create class benchmark priority=3 do_not_disturb=unlimited pe_limit=64 preempted=off
create class production priority=2 wait=30:00 do_not_disturb={at_night} pe_limit=256
create class standby priority=1 do_not_disturb=3 pe_limit=256
set gang large_size={large} large_limit=256 job_limit=256
{queues}
set queue wide priority=20
create complex=(nqs, wide) after
set complex after pe_limit=384 run_limit=20 user_limit=8
"""
_SHIFT = """
define shift {} when=("0 {} * * mon-fri")
  {} queue wide
  set queue nqs pe_limit={}
  set gang large_limit={}
  set class production do_not_disturb={}
end
"""


def by_class(order: "GangOrder") -> str:
    """Return the commands of qmgr for the site that runs work by classes; classes as in the seed by day."""
    per_pe, night, domain = order.per_pe, order.at_night, "domain=nqs backfill=none"
    queues = ((APPLICATIONS, "class", ""), (BATCH, "fcfs", domain), (WIDE, "fcfs", domain))
    shifts = (
        ("early", 4, "stop", 384, PES, night),
        ("day", 8, "stop", 384, order.by_day, per_pe),
        ("evening", 18, "start", BESIDE, PES, night),
        ("night", UNTIL, "start", 384, PES, night),
    )
    made = "".join(_QUEUE.format(*queue) for queue in queues)
    text = _CLASSES.format(pes=PES, per_pe=per_pe, at_night=night, large=LARGE, queues=made)
    return text + "".join(_SHIFT.format(*shift) for shift in shifts)


# ---------------------------------------------------------------- the run

MEMORY, RATE = 64 << 20, 256 * (64 << 20) / 480
"""Bytes of a PE, and bytes a second of the one channel: the whole machine in eight minutes (seed 000)."""
WEEK = 7 * DAY
WITHIN = 60_000
"""Longest wait (ms) that counts as none."""
OF_INTEREST = 64
"""Number of PEs of the interactive jobs that the seed reports on."""
YEAR = 365 * 24 * 3_600
"""Seconds of a year: most that a do-not-disturb time may be."""


class GangOrder(Struct, frozen=True):
    """An experiment. ``classes``: by class, else space sharing; ``per_pe``, ``at_night``: do-not-disturb
    seconds a PE; ``thin``: only every so many-th job; ``by_day``: PEs of all large jobs by day."""

    classes: bool
    per_pe: int = PER_PE
    thin: int = 1
    by_day: int = BY_DAY
    at_night: int = AT_NIGHT


class GangRun(BatchRun):
    """A workload on an experiment's machine. By class, interactive jobs are submitted as applications, and
    each batch request submits its application when it starts."""

    def __init__(self, workload: Workload, order: GangOrder) -> None:
        self._order = order
        self._named: dict[str, SimulatedJob] = {}
        self._requests: dict[int, Seq] = {}
        self._waits: list[int] = []
        self._preempted = self._completed = 0
        self._channel = Channel(MEMORY, RATE)
        jobs = workload.jobs
        thinned = replace(
            workload,
            pes=PES,
            jobs=lambda: (job for job in jobs() if job.place % order.thin == 0),
            begin=YEAR_2026 + 4 * DAY,  # a Monday: shifts know weekdays
        )
        self._last = max(job.submit for job in jobs())
        site = by_class(order) if order.classes else SPACE
        super().__init__(thinned, [("gang", site)], moves=self._channel)
        self._coming = deque(maxlen=0)  # submissions are known by name: some are made later

    # ------------------------------------------------------------ what comes

    def _submission(self, job: SimulatedJob) -> cm.Submission:
        return self._asked(job, self._order.classes and job.group == INTERACTIVE)

    def _asked(self, job: SimulatedJob, application: bool) -> cm.Submission:
        self._named[str(job.number)] = job
        queue, kind = job.group, ""
        if application:
            queue, kind = APPLICATIONS, "interactive" if job.group == INTERACTIVE else "production"
        elif self._order.classes:
            queue = WIDE if job.width > WIDE_PES else BATCH
        spec = Spec(
            owner=job.user, uid=1000, name=str(job.number), queue=queue, script="", environment="",
            workdir="/", ask=Ask(pes=job.width, wall=job.estimate), job_class=kind,
        )  # fmt: skip
        return cm.Submission(spec, "")

    def _run(self, request: Request) -> Run:
        return Run(ENDLESS, 0, unlimited=True) if self._begins_one(request.queue) else super()._run(request)

    def _begins_one(self, queue: str) -> bool:
        """True if requests of the queue hold no PEs themselves: each submits an application when it
        starts."""
        return self._order.classes and queue != APPLICATIONS

    # ------------------------------------------------------------ what happens

    def _follow(self, events: Sequence[ev.Recorded]) -> None:
        for recorded in events:
            event = recorded.event
            if isinstance(event, ev.Submitted):
                self._jobs[event.seq] = self._named.pop(event.spec.name)
            elif isinstance(event, ev.Starting):
                job, at = self._jobs[event.seq], recorded.at
                if self._begins_one(self.sim.site.requests[event.seq].queue):
                    self._requests[job.number] = event.seq
                    command = cm.Submit((self._asked(job, True),))
                    self.sim.heap.push(at, CommandAsked(command, caller_of(job), job))
                elif job.group == INTERACTIVE and job.width == OF_INTEREST and is_working(job.submit / 1000):
                    self._waits.append(at - self.begin - job.submit)
            elif isinstance(event, ev.Suspended):
                self._preempted += 1
            elif isinstance(event, ev.Ended):
                request = self._requests.pop(self._jobs.pop(event.seq).number, event.seq)
                if request == event.seq:
                    self._completed += 1
                else:  # an application, whose request ends with it
                    self.sim.heap.push(recorded.at, partial(self._finish, request))

    def _finish(self, request: Seq, now: Instant) -> Sequence[object]:
        self.sim.executor.finish(request, now)
        return ()

    # ------------------------------------------------------------ figures

    def figures(self) -> dict[str, Any]:
        """Run all whole weeks; return the figures (interfaces.md 11): fraction of the PEs used in the mean
        week, in working hours, in each week; waits of interactive jobs of 64 PEs submitted in working hours;
        seconds in which the channel moved something; how often a job was preempted; how many jobs ended or
        did not."""
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
            "jobs": {"ended": self._completed, "left": self.unended},
        }


# ---------------------------------------------------------------- the command

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class T3dMachine(StrEnum):
    """Which of the two machines to run."""

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
    """Run the T3D's work by space sharing and by the Gang Scheduler: utilisation, interactive waits."""
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
    remark(folded(CHOSEN))


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
    ("... 95 % wait no longer than", lambda each: _seconds(each["interactive64"]["p95_s"])),
    ("time in which state was moved", lambda each: f"{each['swapping_s'] / 3600:.1f} h"),
    ("jobs preempted", lambda each: str(each["preempted"])),
    ("jobs not ended", lambda each: str(each["jobs"]["left"])),
)


def main() -> None:
    """Run ``nqspy sim gang``."""
    run_app(app, "nqspy sim gang")
