"""One run of the experiment: five weeks of the T3D's work, its utilisation, and how long interactive jobs of
64 PEs wait.

A job's PEs count as used while it makes progress; while its state is moved they are busy and useless.
"""

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from msgspec import Struct

from nqspy.engine.inputs import CommandAsked
from nqspy.engine.virtual.attempts import ENDLESS, Run
from nqspy.engine.virtual.moves import Channel
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.ids import DAY, HOUR, Instant, Seq
from nqspy.model.people import Caller
from nqspy.model.requests import Ask, Request, Spec
from nqspy.sim.batch import YEAR_2026, NotSimulated
from nqspy.sim.gang import machines
from nqspy.sim.main import Simulation
from nqspy.sim.workloads.jobs import SimulatedJob, Workload
from nqspy.sim.workloads.t3d import INTERACTIVE, is_working
from nqspy.store.passing import PassingJournal

MEMORY, RATE = 64 << 20, 256 * (64 << 20) / 480
"""Bytes of a PE, and bytes a second of the one channel: the whole machine in eight minutes (seed 000)."""
WEEK = 7 * DAY
WITHIN = 60_000
"""A wait (ms) that nobody minds."""


class GangOrder(Struct, frozen=True):
    """What is run: ``classes``: jobs go by class (else space is shared); ``per_pe``: do-not-disturb time, s
    for each PE; ``memory`` of a PE (bytes) and ``rate`` of the channel (bytes/s); every ``thin``-th job;
    ``chosen``: what the seed leaves open."""

    classes: bool
    per_pe: int = machines.PER_PE
    memory: int = MEMORY
    rate: float = RATE
    thin: int = 1
    chosen: machines.GangChoices = machines.CHOSEN


class GangFigures(Struct, frozen=True):
    """``weeks`` and ``hours``: part of the PEs used in each whole week, and in the working hours; ``waits``
    of interactive jobs of 64 PEs that came in working hours, ms, ascending; ``moving``: how long the
    channel was moving something, ms; ``preempted``: how often; ``ended`` and ``left``: jobs."""

    weeks: tuple[float, ...]
    hours: float
    waits: tuple[int, ...]
    moving: int
    preempted: int
    ended: int
    left: int

    def data(self) -> dict[str, object]:
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


class GangRun:
    """A workload (its jobs' groups are their queues) on the machine of an order."""

    def __init__(self, workload: Workload, order: GangOrder) -> None:
        self._workload, self._order = workload, order
        self.begin = Instant(YEAR_2026 + 4 * DAY)  # a Monday: shifts know weekdays
        self.channel = Channel(order.memory, order.rate)
        self._coming: dict[str, SimulatedJob] = {}
        self._jobs: dict[Seq, SimulatedJob] = {}
        self._parents: dict[Seq, Seq] = {}
        self._first: dict[int, int] = {}
        self._waits: list[int] = []
        self._preempted = self._ended = 0
        self._callers: dict[str, Caller] = {}
        self.sim = Simulation(
            PassingJournal(self._follow), self._run, self.begin, pes=machines.PES, moves=self.channel,
            sampled=False, patient=True,
        )  # fmt: skip
        by_class = machines.gang(order.per_pe, order.chosen)
        self.sim.configure(by_class if order.classes else machines.space())
        self.sim.heap.stream(self._arrivals())

    # ------------------------------------------------------------ what comes

    def _arrivals(self) -> Iterator[tuple[Instant, CommandAsked]]:
        for job in self._workload.jobs():
            if job.place % self._order.thin == 0:
                yield Instant(self.begin + job.submit), self._asked(job, self._is_application(job))

    def _is_application(self, job: SimulatedJob) -> bool:
        """Whether it comes as an application: interactive ones do, where jobs go by class."""
        return self._order.classes and job.group == INTERACTIVE

    def _asked(self, job: SimulatedJob, application: bool) -> CommandAsked:
        self._coming[str(job.number)] = job
        queue = machines.APPLICATIONS if application else self._queue(job)
        kind = ("interactive" if job.group == INTERACTIVE else "production") if application else ""
        spec = Spec(
            owner=job.user, uid=1000, name=str(job.number), queue=queue, script="", environment="",
            workdir="/", ask=Ask(pes=job.width, wall=job.estimate), job_class=kind,
        )  # fmt: skip
        return CommandAsked(cm.Submit((cm.Submission(spec, ""),)), self._caller(job.user), job)

    def _queue(self, job: SimulatedJob) -> str:
        if not self._order.classes:
            return job.group
        return machines.WIDE if job.width > self._order.chosen.wide else machines.BATCH

    def _caller(self, user: str) -> Caller:
        return self._callers.setdefault(user, Caller(user, 1000, 1000, (), True))

    def _run(self, request: Request) -> Run:
        if self._begins_one(request.queue):
            return Run(ENDLESS, 0, unlimited=True)
        job = self._jobs[request.seq]
        return Run(job.run, job.run * job.width)

    def _begins_one(self, queue: str) -> bool:
        """Whether requests of that queue hold no PEs, and begin an application each."""
        return self._order.classes and queue != machines.APPLICATIONS

    # ------------------------------------------------------------ what happens

    def _follow(self, events: Sequence[ev.Recorded]) -> None:
        for recorded in events:
            found = _FOLLOWED.get(type(recorded.event))
            if found is not None:
                found(self, recorded.event, recorded.at)

    def _submitted(self, event: ev.Submitted, at: Instant) -> None:
        self._jobs[event.seq] = job = self._coming.pop(event.spec.name)
        parent = self._first.get(job.number)
        if event.queue == machines.APPLICATIONS and parent is not None:
            self._parents[event.seq] = Seq(parent)

    def _starting(self, event: ev.Starting, at: Instant) -> None:
        job = self._jobs[event.seq]
        if self._begins_one(self.sim.site.requests[event.seq].queue):
            self._first[job.number] = event.seq
            self.sim.heap.push(at, self._asked(job, application=True))
        elif job.group == INTERACTIVE and job.width == _OF_INTEREST and is_working(job.submit / 1000):
            self._waits.append(at - self.begin - job.submit)

    def _suspended(self, event: ev.Suspended, at: Instant) -> None:
        self._preempted += 1

    def _gone(self, event: ev.Ended, at: Instant) -> None:
        job = self._jobs.pop(event.seq)
        parent = self._parents.pop(event.seq, None)
        if parent is not None:
            del self._first[job.number]
            self.sim.heap.push(at, lambda now: self._finish(parent, now))
        else:
            self._ended += 1

    def _finish(self, seq: Seq, now: Instant) -> Sequence[object]:
        self.sim.executor.finish(seq, now)
        return ()

    # ------------------------------------------------------------ figures

    def figures(self, seen: Callable[[float], None] = lambda part: None) -> GangFigures:
        """Runs all its whole weeks. ``seen`` is told how much of them has passed."""
        last = max(job.submit for job in self._workload.jobs())
        weeks = max(1, round((last + DAY) // WEEK))
        used_by_week, in_hours, hours = [0.0] * weeks, 0.0, 0
        before, at = 0.0, 0
        while at < weeks * WEEK:
            until = _next_bound(at)
            self._pass_to(Instant(self.begin + until))
            spent = self.sim.executor.spent(self.sim.now)
            used_by_week[at // WEEK] += spent - before
            if is_working(at / 1000):
                in_hours, hours = in_hours + spent - before, hours + until - at
            before, at = spent, until
            seen(at / (weeks * WEEK))
        return GangFigures(
            tuple(used / (WEEK * machines.PES) for used in used_by_week), in_hours / (hours * machines.PES),
            tuple(sorted(self._waits)), self.channel.busy, self._preempted, self._ended, len(self._jobs),
        )  # fmt: skip

    def _pass_to(self, at: Instant) -> None:
        self.sim.run(at)
        for job, reply in self.sim.replies:
            if reply.refusal is not None and isinstance(job, SimulatedJob):
                raise NotSimulated(f"job {job.number} was refused: {reply.refusal}")
        self.sim.replies.clear()


_OF_INTEREST = 64
"""PEs of the interactive jobs that the seed tells of."""

_FOLLOWED: dict[type[ev.Event], Callable[..., None]] = {
    ev.Submitted: GangRun._submitted,
    ev.Starting: GangRun._starting,
    ev.Suspended: GangRun._suspended,
    ev.Ended: GangRun._gone,
}


def _next_bound(at: int) -> int:
    """The next instant at which working hours begin or end, or a day."""
    day, hour = at // DAY * DAY, at % DAY // HOUR
    return day + next(bound for bound in (8, 18, 24) if bound > hour) * HOUR
