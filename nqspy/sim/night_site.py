"""The shipped site under a workload on any machine; the computing centre's night, with measures."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

from msgspec.structs import replace

from nqspy.engine.virtual.attempts import Run
from nqspy.engine.virtual.processors import TimeShared
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.ids import HOUR, Instant
from nqspy.model.requests import Ask, Request, Spec
from nqspy.report import shares
from nqspy.report.night_metrics import overtaken
from nqspy.report.replay import HistoryReplay
from nqspy.report.time_text import zone_of
from nqspy.sim.batch import BatchRun, EndedJob, Texts
from nqspy.sim.workloads.jobs import SimulatedJob, Workload
from nqspy.sim.workloads.nights import CPUS, DEPARTMENTS, MEMORY, MW, NIGHT, simulated, submissions
from nqspy.store.memory import PassingJournal
from nqspy.system.shipped import shipped
from nqspy.userexit.guard import Unguarded
from nqspy.userexit.site_exits import SiteExits

NAME = "night"
"""Name of the shipped site among the policies."""

ZONE = "Europe/Paris"
MONDAY = date(2026, 3, 2)
"""Date of the evening of each night: without a change of clocks."""
PES, HMAX = CPUS + 2, 115
"""Requests that share the CPUs of the Y-MP, and Mw that large requests may use together."""


def shipped_run(workload: Workload, memory: int | None, texts: Texts, fixed: Texts) -> BatchRun:
    """Return a run of the workload under the shipped site with the settings ``texts`` after its own; no shift
    changes those of ``fixed``. ``memory``: bytes that the machine has (None: no limit).

    A job is submitted to the pipe queue `batch`, which finds it a queue by what it asks for: its estimate on
    each of its PEs as CPU time, the memory it names, else 1 Mw. Raises NotSimulated."""
    hmax = f"{max(1, round(HMAX / CPUS * workload.pes))}mw"
    size = f"set exit large_memory hmax={hmax} nproc={workload.pes}\n"

    def ask_of(job: SimulatedJob) -> Ask:
        memory = MW if job.memory is None else job.memory
        return Ask(pes=job.width, wall=job.estimate, cpu=job.estimate * job.width, memory=memory)

    return BatchRun(workload, [*site_of(shipped(), size), *texts], memory, _exits(), fixed, ask_of)


def site_of(folder: Path, policy: str) -> list[tuple[str, str]]:
    """Return the (name, text) pairs of a folder's ``queues.d``, with the commands ``policy`` behind them."""
    paths = sorted((folder / "queues.d").glob("*.qmgr"))
    return [*((path.name, path.read_text("utf-8")) for path in paths), ("policy night", policy)]


def _exits() -> SiteExits:
    return SiteExits(shipped() / "exits", guard=Unguarded)


class _JudgedJournal(PassingJournal):
    """Lets passes journal why they skipped requests, to judge the order of lists."""

    remembers = True


class NightRun(BatchRun):
    """Night number ``seed`` at the computing centre, alone on its Y-MP 8/128 (ten PEs share eight CPUs).

    It runs under the shipped site with ``texts`` and ``fixed`` behind it (as in `BatchRun`), is measured from
    21:00 to 06:00, and then goes on until its lists are done. Times count from 17:00 on."""

    def __init__(self, seed: int, texts: Texts, fixed: Texts = ()) -> None:
        lines = submissions(seed)
        self._lines = [job for _, job in lines]
        jobs = [simulated(job, at, place, job.memory) for place, (at, job) in enumerate(lines)]
        begin = zone_of(ZONE).at(MONDAY, 17)
        workload = Workload(f"night-{seed}", PES, len(jobs), lambda: iter(jobs), begin=begin, zone=ZONE)
        self._replay = HistoryReplay({})
        self._decided: ev.Decided | None = None
        self._live, self._ended_cpu = dict.fromkeys(DEPARTMENTS, 0), dict.fromkeys(DEPARTMENTS, 0.0)
        self._working = set[str]()
        self._overtaken = 0
        self._judged: Mapping[str, object] = {}
        size = f"set machine pes={PES} memory=128mw\nset exit large_memory hmax={HMAX}mw nproc={CPUS}\n"
        super().__init__(
            workload, [*site_of(shipped(), size), *texts], exits=_exits(), fixed=fixed,
            journal=_JudgedJournal, processors=TimeShared(CPUS, MEMORY), sampled=True,
        )  # fmt: skip
        self.workload = replace(workload, pes=self.pes)

    def __iter__(self) -> Iterator[EndedJob]:
        dark = Instant(self.begin + 4 * HOUR - 1)
        yield from self.pass_to(dark)
        self._working = {group for group, live in self._live.items() if live}
        used, spent = self._cpu_used(), self.sim.executor.spent(dark)
        yield from self.pass_to(Instant(dark + NIGHT))
        now = self._cpu_used()
        used = {group: now[group] - used[group] for group in DEPARTMENTS if group in self._working}
        self._judged = {
            "busy": (self.sim.executor.spent(self.sim.now) - spent) / (CPUS * NIGHT),
            "deviation": shares.deviations(used, {group: DEPARTMENTS[group] for group in used}),
            "order_kept": not self._overtaken,
        }
        yield from self.pass_to()

    def _submission(self, job: SimulatedJob) -> cm.Submission:
        line = self._lines[job.place]
        spec = Spec(
            owner=line.owner, uid=1000, name=line.name, queue="night", script="", environment="",
            workdir="/home", name_given=True, account=line.group, ask=Ask(cpu=line.asked, memory=line.memory),
        )  # fmt: skip
        return cm.Submission(spec, "")

    def _run(self, request: Request) -> Run:
        line = self._lines[self._jobs[request.seq].place]
        return Run(wall=line.wall, cpu=line.cpu, memory=line.memory)

    def _follow(self, events: Sequence[ev.Recorded]) -> None:
        for recorded in events:
            event = recorded.event
            if isinstance(event, ev.Decided):
                self._decided = event
            elif isinstance(event, ev.Ended):
                group = self._jobs[event.seq].group
                self._ended_cpu[group] += event.used.cpu
                self._live[group] -= 1
                if not self._live[group]:
                    self._working.discard(group)
            elif not isinstance(event, ev.Started):  # the question is which requests wait, not what ran
                if isinstance(event, ev.Submitted):
                    self._live[event.spec.group] += 1
                elif isinstance(event, ev.Starting):
                    self._overtaken += len(overtaken(self._replay, event, self._decided))
                self._replay.add(recorded)
        super()._follow(events)

    def _cpu_used(self) -> dict[str, float]:
        """Return the CPU time (ms) that each department has used by now."""
        found = dict(self._ended_cpu)
        for seq, (_, used) in self.sim.executor.use(self.sim.now).items():
            found[self._jobs[seq].group] += used.cpu
        return found

    def judged(self) -> Mapping[str, object]:
        """Return ``busy``: CPU time used from 21:00 to 06:00 / (CPUs x time); ``deviation``: by department,
        its part of that CPU time less the part of its quota, in percentage points, both among those that had
        work waiting or running all night (others have none); ``order_kept``: True if until 06:00 no request
        was started while an earlier one of its list could have been."""
        return self._judged
