"""A workload on a simulated machine: each job is an ordinary submission, reported and dropped at its end."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from nqspy.engine.inputs import CommandAsked
from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.ids import Instant, Seq
from nqspy.model.people import Caller
from nqspy.model.requests import Ask, Request, Spec
from nqspy.ports import Exits
from nqspy.sim.main import Simulation
from nqspy.sim.workloads.jobs import NotSimulated, SimulatedJob, Workload
from nqspy.sim.workloads.moldable import Molding, molded_job
from nqspy.store.memory import MemoryJournal, PassingJournal

YEAR_2026 = Instant(1_767_225_600_000)
"""Begin of a workload that has none of its own: 2026-01-01 UTC."""

Texts = Sequence[tuple[str, str]]
"""Commands of qmgr: texts, each with the name it has in errors."""


class HeldPes(NamedTuple):
    """PEs (in order) that a job held from ``begin`` to ``end``, in ms since the workload's beginning."""

    begin: int
    end: int
    pes: tuple[int, ...]


class EndedJob(Struct, frozen=True):
    """A job and its times in ms since the workload's beginning: first start, end, and how long it ran in all
    (wall time, as the executor measured it). ``held``: PEs of each attempt, also while suspended."""

    job: SimulatedJob
    start: int
    end: int
    run: int
    held: tuple[HeldPes, ...] = ()

    @property
    def pes(self) -> int:
        """Return the number of PEs that the job held last; the number it asked for if it held none."""
        return len(self.held[-1].pes) if self.held else self.job.width

    @property
    def wait(self) -> int:
        """Return the time (ms) between submission and first start."""
        return self.start - self.job.submit


def ask_of(job: SimulatedJob) -> Ask:
    """Return what a job asks for; its estimate becomes its wall limit."""
    return Ask(pes=job.width, wall=job.estimate, memory=job.memory)


def exact_ask_of(job: SimulatedJob) -> Ask:
    """Return what a job asks for, with its exact run time as wall limit, which no real site knows."""
    return Ask(pes=job.width, wall=max(1, min(job.run, job.estimate)), memory=job.memory)


def caller_of(job: SimulatedJob) -> Caller:
    """Return the job's owner as the caller that submits it, with the right to charge any group."""
    return Caller(job.user, 1000, 1000, (), True)


Listener = Callable[[Sequence[ev.Recorded]], None]


class BatchRun:
    """Runs ``workload`` under the settings of ``texts``, applied in order, and ``exits``, on its PEs and
    ``memory`` bytes (None: no limit). ``fixed``: settings after these that no shift changes; ``ask``: returns
    what a job asks for; ``molding``: chooses the PEs on which it can run (None: its width); ``journal``:
    makes a journal that calls a function with committed events; ``sampled``, ``more`` (``processors``,
    ``moves``) as in `VirtualRun`.

    Iterating over it lets time pass, and yields the jobs as they end. Raises NqspyError."""

    def __init__(
        self,
        workload: Workload,
        texts: Texts,
        memory: int | None = None,
        exits: Exits | None = None,
        fixed: Texts = (),
        ask: Callable[[SimulatedJob], Ask] = ask_of,
        journal: Callable[[Listener], MemoryJournal] = PassingJournal,
        molding: Molding | None = None,
        sampled: bool = False,
        **more: Any,
    ) -> None:
        self.workload, self._ask, self._molding = workload, ask, molding
        self.begin = Instant(workload.begin) if workload.begin else YEAR_2026
        self._coming: deque[SimulatedJob] = deque()
        self._jobs: dict[Seq, SimulatedJob] = {}
        self._held: dict[Seq, list[HeldPes]] = {}
        self._ended: list[EndedJob] = []
        self.sim = Simulation(
            journal(self._follow), self._run, self.begin, pes=workload.pes, zone=workload.zone,
            exits=exits, sampled=sampled, patient=True, **more,
        )  # fmt: skip
        if memory is not None:
            text = f"set machine memory={memory}b\nset global memory_limit={memory}b\n"
            texts = [*texts, ("--memory", text)]
        self.sim.configure(texts)
        self.sim.pin(fixed)
        self._groups = frozenset(self.sim.site.settings.groups)
        self._source = self._arrivals()
        if workload.at_once is None:
            self.sim.heap.stream(self._source)
        else:
            self._hand_in(workload.at_once)

    def __iter__(self) -> Iterator[EndedJob]:
        return self.pass_to()

    def pass_to(self, until: Instant | None = None) -> Iterator[EndedJob]:
        """Let time pass to an instant (None: to the end); yield the jobs that end. Raises NotSimulated."""
        while self.sim.step(until):
            for job, reply in self.sim.replies:
                if reply.refusal is not None:
                    raise NotSimulated(f"job {job.number} was refused: {reply.refusal}")
            self.sim.replies.clear()
            yield from self._ended
            self._ended.clear()
        if until is not None:
            self.sim.run(until)

    @property
    def unended(self) -> int:
        """Return the number of jobs that were submitted and have not ended."""
        return len(self._jobs)

    @property
    def pes(self) -> int:
        """Return the number of PEs of the machine, by the settings."""
        return self.sim.site.pes()

    def judged(self) -> Mapping[str, object]:
        """Return measures of the run that `Metrics` lacks, by name, once it is over; only a night has any."""
        return {}

    def _hand_in(self, count: int) -> None:
        """Submit the next ``count`` jobs now, of a workload without submit times."""
        for _, command in islice(self._source, count):
            self.sim.heap.push(self.sim.now, command)

    def _arrivals(self) -> Iterator[tuple[Instant, CommandAsked]]:
        for job in self.workload.jobs():
            if self.workload.at_once is not None:
                job = replace(job, submit=self.sim.now - self.begin)
            self._coming.append(job)
            command = cm.Submit((self._submission(job),))
            yield Instant(self.begin + job.submit), CommandAsked(command, caller_of(job), job)

    def _submission(self, job: SimulatedJob) -> cm.Submission:
        account = job.group if job.group in self._groups else None
        spec = Spec(
            owner=job.user, uid=1000, name="job", queue="", script="", environment="", workdir="/home",
            account=account, ask=self._ask(job),
            mold=None if self._molding is None else self._molding(molded_job(job, self.workload.pes)),
        )  # fmt: skip
        return cm.Submission(spec, "")

    def _run(self, request: Request) -> Run:
        job = self._jobs[request.seq]
        if self._molding is None:
            return Run(job.run, job.run * job.width)
        pes = request.spec.ask.pes
        run = molded_job(job, self.workload.pes).time_on(pes, job.run)
        return Run(run, run * pes)

    def _follow(self, events: Sequence[ev.Recorded]) -> None:
        for recorded in events:
            event, at = recorded.event, recorded.at - self.begin
            if isinstance(event, ev.Submitted):
                self._jobs[event.seq] = self._coming.popleft()
            elif isinstance(event, ev.Starting):
                self._held.setdefault(event.seq, []).append(HeldPes(at, at, event.pes))
            elif isinstance(event, ev.Migrated):
                since = self._held[event.seq]
                since[-1:] = [since[-1]._replace(end=at), HeldPes(at, at, event.pes)]
            elif isinstance(event, ev.Requeued) and event.seq in self._held:
                self._held[event.seq][-1] = self._held[event.seq][-1]._replace(end=at)
            elif isinstance(event, ev.Ended):
                *before, last = self._held.pop(event.seq)
                held = (*before, last._replace(end=at))
                job = self._jobs.pop(event.seq)
                self._ended.append(EndedJob(job, held[0].begin, at, event.used.wall, held))
                if self.workload.at_once is not None:
                    self._hand_in(1)
