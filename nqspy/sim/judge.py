"""What simulated nights are judged by: processors, quotas, order, dependencies, memory rules. Everything is
found from the journal and the machine; nothing is asked of the scheduler."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from nqspy.model import events as ev
from nqspy.model.ids import HOUR, Instant, Seq
from nqspy.report.night_metrics import overtaken
from nqspy.report.replay import HistoryReplay
from nqspy.report.shares import deviations, largest
from nqspy.sim.workloads.nights import CPUS, DEPARTMENTS, Job

RULES = ("large", "all", "running", "line")
"""Rules of the exit large_memory: large requests together within hmax; all within 2 hmax; at most nproc+2
run; no large request passes an earlier one that the same pass refused for its memory."""


class Moment(Struct, frozen=True):
    """Counters as they stand at an instant: CPU ms spent, in all and by department; swaps, bytes swapped,
    ms swapped out (summed over requests); requests queued."""

    at: Instant
    spent: float
    used: Mapping[str, float]
    swaps: int
    swapped: int
    out: int
    queued: int


class JudgedNight(Struct, frozen=True):
    """What one night was like, from 21:00 to 06:00. ``busy``: CPU time used / (CPUs x time); ``used``: CPU
    ms by department; ``working``: departments that always had work waiting or running; ``left``: requests
    queued at 06:00 (0: it ran dry); ``swaps``, ``swapped`` bytes; ``out``: how many requests were swapped
    out, on the mean."""

    busy: float
    used: Mapping[str, float]
    working: frozenset[str]
    left: int
    swaps: int
    swapped: int
    out: float
    started: int

    @property
    def deviation(self) -> float | None:
        """Largest difference between part and quota, in points, among the departments that had work."""
        return deviation(self.used, self.working)


class Week(Struct, frozen=True):
    """Nights in sequence, and what holds over all of them, the mornings between included.

    ``longest``: CPU ms of the longest request; ``waits``: hours from the evening's 21:00 to the start, of
    those that were started, ``large_waits`` of the large ones among them; ``asked``: how many were handed
    in; ``order``, ``dependencies``: how often they were violated; ``breaches`` of each of `RULES`.
    """

    nights: tuple[JudgedNight, ...]
    used: Mapping[str, float]
    longest: float
    waits: tuple[float, ...]
    large_waits: tuple[float, ...]
    asked: int
    order: int
    dependencies: int
    breaches: Mapping[str, int]
    events: int

    @property
    def working(self) -> frozenset[str]:
        """Departments that always had work, in each of the nights."""
        return frozenset.intersection(*(night.working for night in self.nights))

    @property
    def deviation(self) -> float | None:
        """As of a night, over all the CPU time of the week."""
        return deviation(self.used, self.working)

    @property
    def bound(self) -> float:
        """Points that the longest request alone is of the week's CPU time: nobody can promise less who lets
        requests run to their end."""
        return 100 * self.longest / sum(self.used.values())


def deviation(used: Mapping[str, float], working: frozenset[str]) -> float | None:
    """Largest difference between a department's part of the CPU time and its quota, both among those that
    always had work; percentage points, None where fewer than two had."""
    if len(working) < 2:
        return None
    mine, due = ({name: of[name] for name in working} for of in (used, DEPARTMENTS))
    return largest(deviations(mine, due).values())


class Judge:
    """Follows a journal and counts. ``jobs`` is what each request really is; ``hmax`` in bytes, more than an
    eighth of it is large; ``ended``: CPU ms used by those that have ended, by department."""

    def __init__(self, jobs: Mapping[Seq, Job], hmax: int) -> None:
        self._jobs = jobs
        self._hmax = hmax
        self._replay = HistoryReplay({})
        self._decided: ev.Decided | None = None
        self._live = dict.fromkeys(DEPARTMENTS, 0)
        self._open: dict[tuple[str, str, str], list[Seq]] = {}
        self._running: set[Seq] = set()
        self._memory = self._large = 0  # bytes of those that run, and of the large ones among them
        self._due: dict[Seq, Instant] = {}
        self._waits: list[tuple[float, bool]] = []
        self._working: set[str] = set()
        self.ended = dict.fromkeys(DEPARTMENTS, 0.0)
        self._events = self._order = self._dependencies = self._started = 0
        self.breaches = dict.fromkeys(RULES, 0)

    def handed_in(self, seqs: Iterable[Seq], due: Instant) -> None:
        """These requests may start from ``due`` on."""
        self._due.update(dict.fromkeys(seqs, due))

    # ------------------------------------------------------------ nights and weeks

    def begin(self) -> None:
        """A night begins."""
        self._working = {group for group, live in self._live.items() if live}
        self._started = 0

    def night(self, first: Moment, last: Moment) -> JudgedNight:
        """The night that lay between these moments, now that its events were taken."""
        span = last.at - first.at
        return JudgedNight(
            busy=(last.spent - first.spent) / (CPUS * span),
            used={name: last.used[name] - first.used[name] for name in DEPARTMENTS},
            working=frozenset(self._working),
            left=last.queued,
            swaps=last.swaps - first.swaps,
            swapped=last.swapped - first.swapped,
            out=(last.out - first.out) / span,
            started=self._started,
        )

    def week(self, nights: Iterable[JudgedNight], used: Mapping[str, float]) -> Week:
        """All nights together."""
        return Week(
            nights=tuple(nights),
            used=used,
            longest=max(job.cpu for job in self._jobs.values()),
            waits=tuple(wait for wait, _ in self._waits),
            large_waits=tuple(wait for wait, large in self._waits if large),
            asked=len(self._jobs),
            order=self._order,
            dependencies=self._dependencies,
            breaches=self.breaches,
            events=self._events,
        )

    # ------------------------------------------------------------ events

    def take(self, events: Iterable[ev.Recorded]) -> None:
        """Takes what happened, in its order."""
        for recorded in events:
            self._events += 1
            event: Any = recorded.event
            kind = type(event)
            if kind is ev.Decided:
                self._decided = event
            elif kind is ev.Ended:
                self._ended(event)
            elif kind is not ev.Started:  # who waits is asked, and not what ran when
                if kind is ev.Submitted:
                    self._submitted(event)
                elif kind is ev.Starting:
                    self._starting(event, recorded.at)
                self._replay.take(recorded)

    def _submitted(self, event: ev.Submitted) -> None:
        spec = event.spec
        self._live[spec.group] += 1
        self._open.setdefault((spec.owner, spec.group, spec.name), []).append(event.seq)

    def _starting(self, event: ev.Starting, at: Instant) -> None:
        job = self._jobs[event.seq]
        self._started += 1
        self._order += len(overtaken(self._replay, event, self._decided))
        earlier = self._open[job.owner, job.group, job.name][0]
        self._dependencies += earlier != event.seq
        large = self._is_large(job)
        self._waits.append(((at - self._due[event.seq]) / HOUR, large))
        self._running.add(event.seq)
        self._memory += job.memory
        self._large += job.memory * large
        self._weigh(large)

    def _weigh(self, large: bool) -> None:
        """Looks at the memory rules after a start of a ``large`` one, or another."""
        self.breaches["large"] += large and self._large > self._hmax
        self.breaches["all"] += self._memory > 2 * self._hmax
        self.breaches["running"] += len(self._running) > CPUS + 2

    def _ended(self, event: ev.Ended) -> None:
        job = self._jobs[event.seq]
        self.ended[job.group] += event.used.cpu
        if event.seq in self._running:
            self._running.remove(event.seq)
            self._memory -= job.memory
            self._large -= job.memory * self._is_large(job)
        self._open[job.owner, job.group, job.name].remove(event.seq)
        self._live[job.group] -= 1
        if not self._live[job.group]:
            self._working.discard(job.group)

    def _is_large(self, job: Job) -> bool:
        return job.memory * CPUS > self._hmax
