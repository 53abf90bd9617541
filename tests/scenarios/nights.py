"""Weeks of nights at the computing centre (seed 003; manual page `nights`) under several policies, and a
judge that counts from the journal and the machine, and asks the scheduler nothing.

A week is five evenings from a Monday on. In each the departments hand in their lists between 17:00 and 21:00;
what is left goes on to the next evening, and so does what was used.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct

from nqspy.engine.virtual.attempts import Run
from nqspy.engine.virtual.processors import TimeShared
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.ids import HOUR, Instant, Seq
from nqspy.model.requests import Ask, Request, Spec
from nqspy.report.night_metrics import overtaken
from nqspy.report.replay import HistoryReplay
from nqspy.report.shares import deviations, largest
from nqspy.report.time_text import zone_of
from nqspy.sim.main import Simulation
from nqspy.sim.night_site import MONDAY, ZONE, site_of
from nqspy.sim.runs import calm
from nqspy.sim.workloads.nights import CPUS, DEPARTMENTS, MEMORY, MW, NIGHT, Job, night_lists, submit_hours
from nqspy.store.memory import MemoryJournal
from nqspy.userexit.guard import Unguarded
from nqspy.userexit.site_exits import SiteExits


# ---------------------------------------------------------------- policies
class Policy(Struct, frozen=True):
    """Commands of qmgr behind those of the shipped site; ``hmax`` in Mw."""

    commands: str = ""
    hmax: int = 115

    @property
    def text(self) -> str:
        return (
            f"set machine pes={CPUS + 2} memory=128mw\n"
            f"set exit large_memory hmax={self.hmax}mw nproc={CPUS}\n{self.commands}"
        )


def _without_exits(factors: str, more: str = "") -> str:
    shifts = "".join(
        f"""define shift {name} when=("0 {hour} * * mon-fri")
  set sched_factor {factors}
  set priority={priority} night
  start queue express, normal, pe128m10, batch, night
  disable exit machine_gun
  disable exit large_memory
end
"""
        for name, hour, priority in (("night", 21, 40), ("report", 6, 10))
    )
    return f"disable exit dependency\ndisable exit shrpri\n{shifts}{more}"


_FIFO = "share 0 cpu 0 memory 0 time 1"
NO_EXITS = Policy(_without_exits("share 20 cpu 0 memory 0 time 1"))
POLICIES = {
    "site": Policy(),
    "tuned": Policy(hmax=100),
    "users": Policy("disable exit shrpri\n"),
    "fifo": Policy(_without_exits(_FIFO)),
    "fifo1": Policy(_without_exits(_FIFO, "set global memory_limit=115mw\n")),
    "fifo3": Policy(_without_exits(_FIFO, "set global memory_limit=345mw\n")),
}


# ---------------------------------------------------------------- the judge
RULES = ("large", "all", "running", "line")
"""Rules of the exit large_memory: large requests together within hmax; all within 2 hmax; at most nproc + 2
run; no large request passes an earlier one that the same pass refused for its memory."""


class Watched(SiteExits):
    """Site exits that note (later, earlier) large requests, where jobselect let the later one pass although
    the pass had refused an earlier one of its queue for its memory. ``large``: (more than, at most) bytes."""

    def __init__(self, folder: Path, large: tuple[float, float]) -> None:
        super().__init__(folder, guard=Unguarded)
        self.large = large
        self.passed_by: list[tuple[Seq, Seq]] = []
        self._refused: dict[str, Seq] = {}

    def begin(self, site):
        super().begin(site)
        self._refused = {}

    def jobselect(self, request, view):
        answer = super().jobselect(request, view)
        least, most = self.large
        if request.memory is not None and least < request.memory <= most:
            if answer is None or answer.verdict == "force":
                if request.queue in self._refused:
                    self.passed_by.append((request.seq, self._refused[request.queue]))
            elif answer.who == "large_memory":
                self._refused.setdefault(request.queue, request.seq)
        return answer


class JudgedNight(Struct, frozen=True):
    """One night from 21:00 to 06:00. ``busy``: CPU time used / (CPUs x time); ``used``: CPU ms by department;
    ``working``: departments that always had work; ``left``: requests queued at 06:00; ``out``: how many
    requests were swapped out, on the mean."""

    busy: float
    used: Mapping[str, float]
    working: frozenset[str]
    left: int
    swaps: int
    out: float

    @property
    def deviation(self) -> float | None:
        """Largest difference between a department's part of the CPU time and its quota, both among those that
        always had work; percentage points, None where fewer than two had."""
        if len(self.working) < 2:
            return None
        mine, due = ({name: of[name] for name in self.working} for of in (self.used, DEPARTMENTS))
        return largest(deviations(mine, due).values())


class Week(Struct, frozen=True):
    """Nights in sequence, the mornings between included. ``waits``: hours from the evening's 21:00 to the
    start, ``large_waits`` of the large ones; ``asked``: how many were handed in; ``order``, ``dependencies``:
    how often they were violated; ``breaches`` of each of `RULES`."""

    nights: tuple[JudgedNight, ...]
    used: Mapping[str, float]
    waits: tuple[float, ...]
    large_waits: tuple[float, ...]
    asked: int
    order: int
    dependencies: int
    breaches: Mapping[str, int]
    events: int

    @property
    def working(self) -> frozenset[str]:
        return frozenset.intersection(*(night.working for night in self.nights))

    deviation = JudgedNight.deviation


class Judge:
    """Follows a journal and counts. ``jobs``: what each request really is; more than an eighth of ``hmax``
    (bytes) is large; ``due``: from when on each may start."""

    def __init__(self, jobs: Mapping[Seq, Job], hmax: int) -> None:
        self.jobs, self.hmax, self.due = jobs, hmax, dict[Seq, Instant]()
        self.working: set[str] = set()
        self.live = dict.fromkeys(DEPARTMENTS, 0)
        self.ended = dict.fromkeys(DEPARTMENTS, 0.0)
        self.waits: list[tuple[float, bool]] = []
        self.breaches = dict.fromkeys(RULES, 0)
        self.events = self.order = self.dependencies = 0
        self._replay = HistoryReplay({})
        self._decided: ev.Decided | None = None
        self._open: dict[tuple[str, str, str], list[Seq]] = {}
        self._running: dict[Seq, int] = {}
        self._large: dict[Seq, int] = {}

    def add(self, events: Iterable[ev.Recorded]) -> None:
        for recorded in events:
            self.events += 1
            event: Any = recorded.event
            kind = type(event)
            if kind is ev.Decided:
                self._decided = event
            elif kind is ev.Ended:
                self._ended(event)
            elif kind is not ev.Started:  # who waits is asked, and not what ran when
                if kind is ev.Submitted:
                    self.live[event.spec.group] += 1
                    self._open.setdefault(_key(self.jobs[event.seq]), []).append(event.seq)
                elif kind is ev.Starting:
                    self._starting(event, recorded.at)
                self._replay.add(recorded)

    def _starting(self, event: ev.Starting, at: Instant) -> None:
        job = self.jobs[event.seq]
        self.order += len(overtaken(self._replay, event, self._decided))
        self.dependencies += self._open[_key(job)][0] != event.seq
        large = job.memory * CPUS > self.hmax
        self.waits.append(((at - self.due[event.seq]) / HOUR, large))
        self._running[event.seq] = job.memory
        if large:
            self._large[event.seq] = job.memory
            self.breaches["large"] += sum(self._large.values()) > self.hmax
        self.breaches["all"] += sum(self._running.values()) > 2 * self.hmax
        self.breaches["running"] += len(self._running) > CPUS + 2

    def _ended(self, event: ev.Ended) -> None:
        job = self.jobs[event.seq]
        self.ended[job.group] += event.used.cpu
        self._running.pop(event.seq, None)
        self._large.pop(event.seq, None)
        self._open[_key(job)].remove(event.seq)
        self.live[job.group] -= 1
        if not self.live[job.group]:
            self.working.discard(job.group)


def _key(job: Job) -> tuple[str, str, str]:
    return job.owner, job.group, job.name


# ---------------------------------------------------------------- the site
class Centre:
    """The site of ``folder`` (``queues.d`` and ``exits``) on a Y-MP 8/128, under a policy, judged."""

    def __init__(self, folder: Path, policy: Policy, start: Instant) -> None:
        hmax = policy.hmax * MW
        self.exits = Watched(folder / "exits", (hmax / CPUS, hmax))
        assert not self.exits.problems
        self.processors = TimeShared(CPUS, MEMORY)
        self.journal = MemoryJournal()
        self.jobs: dict[Seq, Job] = {}
        self.judge = Judge(self.jobs, hmax)
        self._taken = 0
        self.sim = Simulation(
            self.journal, self._run, start, pes=CPUS, zone=ZONE, exits=self.exits,
            processors=self.processors, patient=True,
        )  # fmt: skip
        self.sim.configure(site_of(folder, policy.text))

    def _run(self, request: Request) -> Run:
        job = self.jobs[request.seq]
        return Run(wall=job.wall, cpu=job.cpu, memory=job.memory)

    def night(self, evening: Instant, seed: int, load: float = 1.5) -> JudgedNight:
        """The lists of night ``seed`` are handed in from ``evening`` (17:00) on; the night passes."""
        lists, dark = night_lists(seed, load), Instant(evening + 4 * HOUR)
        for group, at in sorted(submit_hours(seed).items(), key=lambda each: each[1]):
            self.sim.run(Instant(evening + at))
            self._hand_in(lists[group], dark)
        self._pass_to(Instant(dark - 1))
        self.judge.working = {group for group, live in self.judge.live.items() if live}
        used, spent, swaps, out = self._counters()
        self._pass_to(Instant(dark + NIGHT - 1))
        now = self._counters()
        return JudgedNight(
            busy=(now[1] - spent) / (CPUS * NIGHT),
            used={name: now[0][name] - used[name] for name in DEPARTMENTS},
            working=frozenset(self.judge.working),
            left=sum(len(columns) for columns in self.sim.site.waiting.values()),
            swaps=now[2] - swaps,
            out=(now[3] - out) / NIGHT,
        )

    def _hand_in(self, jobs: list[Job], due: Instant) -> None:
        """Submits a department's list, as an operator does."""
        first = self.sim.site.next_seq
        self.sim.ask(cm.Submit(tuple(_submission(job, line) for line, job in enumerate(jobs, 1))))
        seqs = range(first, self.sim.site.next_seq)
        self.jobs.update(zip(seqs, jobs, strict=True))
        self.judge.due.update(dict.fromkeys(seqs, due))

    def _pass_to(self, at: Instant) -> None:
        self.sim.run(at)
        self.judge.add(self.journal.events(after=self._taken))
        self._taken = self.sim.site.n

    def _counters(self) -> tuple[dict[str, float], float, int, int]:
        """CPU ms by department, CPU ms in all, swaps, ms swapped out (summed over requests)."""
        out = self.processors.swapped_out(self.sim.now)
        return self.used(), self.sim.executor.spent(self.sim.now), self.processors.swaps, out

    def used(self) -> dict[str, float]:
        """CPU time (ms) that each department has used by now."""
        found = dict(self.judge.ended)
        for seq, (_, used) in self.sim.executor.use(self.sim.now).items():
            found[self.jobs[seq].group] += used.cpu
        return found


def _submission(job: Job, line: int) -> cm.Submission:
    spec = Spec(
        owner=job.owner, uid=1000, name=job.name, queue="night", script="", environment="", workdir="/home",
        name_given=True, account=job.group, ask=Ask(cpu=job.asked, memory=job.memory),
    )  # fmt: skip
    return cm.Submission(spec, "#!/bin/sh\n", "", job.owner, line)


def evenings(nights: int) -> Iterator[Instant]:
    """17:00 of a Monday and its successors."""
    return (zone_of(ZONE).at(MONDAY + timedelta(days=n), 17) for n in range(nights))


def centre_of(folder: Path, policy: Policy) -> Centre:
    return Centre(folder, policy, zone_of(ZONE).at(MONDAY, 16))


def run_week(folder: Path, policy: Policy, first: int, nights: int = 5, load: float = 1.5) -> Week:
    """Nights number ``first`` and following on one site; ``load``: nights of work handed in each evening."""
    with calm():
        centre = centre_of(folder, policy)
        found = tuple(centre.night(evening, first + n, load) for n, evening in enumerate(evenings(nights)))
    judge = centre.judge
    judge.breaches["line"] = len(centre.exits.passed_by)
    return Week(
        nights=found,
        used=centre.used(),
        waits=tuple(wait for wait, _ in judge.waits),
        large_waits=tuple(wait for wait, large in judge.waits if large),
        asked=len(centre.jobs),
        order=judge.order,
        dependencies=judge.dependencies,
        breaches=judge.breaches,
        events=judge.events,
    )
