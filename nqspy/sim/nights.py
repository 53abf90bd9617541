"""Nights at the computing centre: the shipped site run for a week of them, under one policy, and measured.

A week is five evenings from a Monday on. In each the departments' lists are handed in between 17:00 and
21:00; what is left goes on to the next evening, and so does what was used.
"""

from datetime import date, timedelta
from pathlib import Path

from nqspy.engine.virtual.attempts import Run
from nqspy.engine.virtual.processors import TimeShared
from nqspy.model import commands as cm
from nqspy.model.ids import HOUR, Instant, Seq
from nqspy.model.requests import Ask, Request, Spec
from nqspy.report.time_text import zone_of
from nqspy.sim.judge import Judge, JudgedNight, Moment, Week
from nqspy.sim.main import Simulation
from nqspy.sim.policies import Policy
from nqspy.sim.running import calm
from nqspy.sim.watched import Watched
from nqspy.sim.workloads.nights import (
    CPUS,
    MEMORY,
    MW,
    NIGHT,
    Job,
    hours_handed_in,
    idle_in,
    night_lists,
)
from nqspy.store.memory import MemoryJournal

ZONE = "Europe/Paris"
MONDAY = date(2026, 3, 2)
"""The first evening of every week: one without a change of clocks."""


class Centre:
    """The site of ``folder`` (``queues.d`` and ``exits``) on a Y-MP 8/128, under a policy; ``small_first``:
    how its swapper chooses (`TimeShared`).

    ``jobs``: what each request really is; ``judge`` follows what happens.
    """

    def __init__(self, folder: Path, policy: Policy, start: Instant, small_first: bool = False) -> None:
        hmax = policy.hmax * MW
        self.exits = Watched(folder / "exits", (hmax / CPUS, hmax))
        if self.exits.problems:
            raise ValueError(self.exits.problems[0])
        self.processors = TimeShared(CPUS, MEMORY, small_first)
        self.journal = MemoryJournal()
        self.jobs: dict[Seq, Job] = {}
        self.judge = Judge(self.jobs, hmax)
        self._taken = 0
        self.sim = Simulation(
            self.journal,
            self._run,
            start,
            pes=CPUS,
            zone=ZONE,
            exits=self.exits,
            processors=self.processors,
            patient=True,
        )
        self.sim.configure(_files(folder, policy))

    def _run(self, request: Request) -> Run:
        job = self.jobs[request.seq]
        return Run(wall=job.wall, cpu=job.cpu, memory=job.memory)

    def hand_in(self, jobs: list[Job]) -> list[Seq]:
        """Submits a department's list, as an operator does."""
        items = tuple(_submission(job, line) for line, job in enumerate(jobs, 1))
        first = self.sim.site.next_seq
        self.sim.ask(cm.Submit(items))
        seqs = list(range(first, self.sim.site.next_seq))
        self.jobs.update(zip(seqs, jobs, strict=True))
        return seqs

    def night(self, evening: Instant, seed: int, load: float, idle: float = 0.0) -> JudgedNight:
        """The lists of night ``seed`` are handed in from ``evening`` (17:00) on, but for departments that are
        idle (`idle_in`); the night passes."""
        lists, dark = night_lists(seed, load), Instant(evening + 4 * HOUR)
        away = idle_in(seed, idle)
        for group, at in sorted(hours_handed_in(seed).items(), key=lambda each: each[1]):
            if group in away:
                continue
            self.sim.run(Instant(evening + at))
            self.judge.handed_in(self.hand_in(lists[group]), dark)
        first = self._pass_to(Instant(dark - 1))
        self.judge.begin()
        last = self._pass_to(Instant(dark + NIGHT - 1))
        return self.judge.night(first, last)

    def _pass_to(self, at: Instant) -> Moment:
        """Lets time pass to an instant and has the judge look at what happened."""
        sim, shared = self.sim, self.processors
        sim.run(at)
        self.judge.take(self.journal.events(after=self._taken))
        self._taken = sim.site.n
        queued = sum(len(columns) for columns in sim.site.waiting.values())
        spent, out = sim.executor.spent(at), shared.swapped_out(at)
        return Moment(at, spent, self.used(), shared.swaps, shared.swapped_bytes, out, queued)

    def used(self) -> dict[str, float]:
        """CPU time (ms) that each department has used, as far as the judge has looked and those that run now
        have come."""
        found = dict(self.judge.ended)
        for seq, (_, used) in self.sim.executor.use(self.sim.now).items():
            found[self.jobs[seq].group] += used.cpu
        return found


def _files(folder: Path, policy: Policy) -> list[tuple[str, str]]:
    texts = [(path.name, path.read_text()) for path in sorted((folder / "queues.d").glob("*.qmgr"))]
    return [*texts, ("90-policy.qmgr", policy.text)]


def _submission(job: Job, line: int) -> cm.Submission:
    spec = Spec(
        owner=job.owner,
        uid=1000,
        name=job.name,
        queue="night",
        script="",
        environment="",
        workdir="/home",
        name_given=True,
        account=job.group,
        ask=Ask(cpu=job.asked, memory=job.memory),
    )
    return cm.Submission(spec, "#!/bin/sh\n", "", job.owner, line)


# ---------------------------------------------------------------- running


def run_week(
    folder: Path,
    policy: Policy,
    first: int,
    nights: int = 5,
    load: float = 1.5,
    small_first: bool = False,
    idle: float = 0.0,
) -> Week:
    """Nights number ``first`` and following, one after the other on one site: a Monday and its successors.
    ``load``: nights of work handed in each evening; ``idle``: part of the evenings on which a department
    hands in nothing."""
    zone = zone_of(ZONE)
    with calm():
        centre = Centre(folder, policy, zone.at(MONDAY, 16), small_first)
        evenings = [zone.at(MONDAY + timedelta(days=n), 17) for n in range(nights)]
        found = [centre.night(evening, first + n, load, idle) for n, evening in enumerate(evenings)]
    centre.judge.breaches["line"] = len(centre.exits.passed_by)
    return centre.judge.week(found, centre.used())
