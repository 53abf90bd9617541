"""The shipped site under a workload: its queues, groups, shifts and user exits, on a machine of any size; and
its own night, judged."""

from collections.abc import Iterator, Mapping

from nqspy.model import events as ev
from nqspy.model.ids import Seq
from nqspy.model.requests import Ask
from nqspy.report import shares
from nqspy.report.time_text import zone_of
from nqspy.sim.batch import BatchRun, EndedJob, HeldByJobs, Texts
from nqspy.sim.judge import JudgedNight
from nqspy.sim.nights import MONDAY, ZONE, Centre
from nqspy.sim.policies import POLICIES
from nqspy.sim.workloads.jobs import SimulatedJob, Workload
from nqspy.sim.workloads.nights import CPUS, DEPARTMENTS, MW, hours_handed_in, night_lists
from nqspy.system.shipped import shipped
from nqspy.userexit.guard import Unguarded
from nqspy.userexit.site_exits import SiteExits

NIGHT = "night"
"""Its name among the policies."""

LOAD = 1.5
"""Nights of work in its lists."""

HMAX = POLICIES["site"].hmax / CPUS
"""Mw that large requests may use together, for each PE: as on the Y-MP."""


def shipped_run(workload: Workload, memory: int | None, texts: Texts, kept: Texts) -> BatchRun:
    """The workload under the shipped site, ``texts`` and ``kept`` behind it (as of `BatchRun`). A job is
    submitted to the pipe queue `batch`, which finds it a queue by what it asks for: its estimate on each of
    its PEs as CPU time, the memory it says, else 1 Mw. Raises NotSimulated."""
    folder = shipped()
    files = [(path.name, path.read_text("utf-8")) for path in sorted((folder / "queues.d").glob("*.qmgr"))]
    hmax = f"{max(1, round(HMAX * workload.pes))}mw"
    size = ("policy night", f"set exit large_memory hmax={hmax} nproc={workload.pes}\n")
    exits = SiteExits(folder / "exits", guard=Unguarded)
    return BatchRun(workload, [*files, size, *texts], memory, exits, kept, _ask_of)


def _ask_of(job: SimulatedJob) -> Ask:
    memory = MW if job.memory is None else job.memory
    return Ask(pes=job.width, wall=job.estimate, cpu=job.estimate * job.width, memory=memory)


# ---------------------------------------------------------------- its own night


class NightRun:
    """Night number ``seed`` at the computing centre, alone on its Y-MP 8/128 (`nights.Centre`: ten PEs share
    eight CPUs), under the shipped site with ``texts`` and ``kept`` behind it (as of `BatchRun`). It is judged
    from 21:00 to 06:00 and then goes on until its lists are done. Times are counted from 17:00 on."""

    def __init__(self, seed: int, texts: Texts, kept: Texts = ()) -> None:
        zone = zone_of(ZONE)
        self._evening, self._seed = zone.at(MONDAY, 17), seed
        self._centre = Centre(shipped(), POLICIES["site"], zone.at(MONDAY, 16))
        self._centre.sim.configure(texts)
        self._centre.sim.keep(kept)
        self._night: JudgedNight | None = None
        self._passed = self._ended = 0
        lists, at = night_lists(seed), hours_handed_in(seed)
        order = sorted(at, key=lambda group: at[group])
        self._jobs = [
            SimulatedJob(place, place + 1, at[group], job.wall, job.asked, 1, job.memory, job.owner, group)
            for place, (group, job) in enumerate((group, job) for group in order for job in lists[group])
        ]
        name = f"night-{seed}"
        self.workload = Workload(
            name, self.pes, len(self._jobs), lambda: iter(self._jobs), begin=self._evening, zone=ZONE
        )

    @property
    def pes(self) -> int:
        """Ten, unless the settings say another number."""
        return self._centre.sim.site.pes()

    @property
    def left(self) -> int:
        """Requests that have not ended."""
        return len(self._jobs) - self._ended

    def __iter__(self) -> Iterator[EndedJob]:
        centre = self._centre
        self._night = centre.night(self._evening, self._seed, LOAD)
        self._passed = centre.judge.week([self._night], centre.used()).order
        centre.sim.run()
        yield from self._what_ended()

    def _what_ended(self) -> Iterator[EndedJob]:
        held, jobs, coming = HeldByJobs(self._evening), dict[Seq, SimulatedJob](), iter(self._jobs)
        for recorded in self._centre.journal.events():
            event, spans = recorded.event, held.take(recorded)
            if isinstance(event, ev.Submitted):
                jobs[event.seq] = next(coming)
            elif isinstance(event, ev.Ended):
                self._ended += 1
                job = jobs.pop(event.seq)
                yield EndedJob(job, spans[0].begin, spans[-1].end, event.used.wall, spans)

    def judged(self) -> Mapping[str, object]:
        """``busy``: CPU time used from 21:00 to 06:00 / (CPUs x time). ``deviation``: by department the part
        of that CPU time it had less the part its quota gives it, in percentage points, both among those that
        had work waiting or running all night; others have none. ``order_kept``: whether until 06:00 no
        request was started while an earlier one of its list could have been."""
        assert self._night is not None
        return {
            "busy": self._night.busy,
            "deviation": deviations(self._night),
            "order_kept": self._passed == 0,
        }


def deviations(night: JudgedNight) -> dict[str, float]:
    """Of each department that always had work, in the order of `DEPARTMENTS`: see `NightRun.judged`."""
    names = [name for name in DEPARTMENTS if name in night.working]
    return shares.deviations(
        {name: night.used[name] for name in names}, {name: DEPARTMENTS[name] for name in names}
    )
