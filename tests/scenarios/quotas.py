"""Histories of departments on one machine: who hands in what and when, and how each department's part of the
machine kept to its target. `scripts/share_pictures.py` draws three for the manual's page `shares`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from msgspec import Struct

from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.ids import DAY, HOUR, MINUTE, Instant, Seq, request_named
from nqspy.model.requests import Ask, Spec
from nqspy.model.site import Site
from nqspy.ports import Batch
from nqspy.qmgr.parser import parse_text
from nqspy.report.shares import deviations, largest
from nqspy.shares import balance_of
from nqspy.sim.main import Simulation
from nqspy.store.memory import MemoryJournal

START = Instant(1_772_485_200_000)
"""When every history begins: 2026-03-02 21:00 UTC."""

STEP = 5 * MINUTE
WINDOW = 3 * HOUR
APART = 3
"""Steps between the beginnings of windows."""
SETTLED = 2 * HOUR
STARTS = 120
"""Parts are compared over windows of three hours with so many starts at least, throughout which the same
departments have work to start, from two hours after a change of who has or of the shares."""

QUEUE = """
create batch_queue night priority=10
enable queue night
start queue night
set sched_factor share 20 cpu 0 memory 0 time 1
set usage charge={charge}
set global share_rule={rule}
"""


class HandedIn(Struct, frozen=True):
    """At ``at`` (ms from the beginning) a department hands in requests of these lengths (ms), of so many PEs
    each."""

    at: int
    group: str
    lengths: tuple[int, ...]
    pes: int = 1


class UnevenHistory(Struct, frozen=True):
    """What happens: shares, what is handed in, settings that change (ms from the beginning, qmgr's
    commands), how long it is looked at; ``since``: from when parts are compared and drawn."""

    name: str
    shares: Mapping[str, int]
    batches: tuple[HandedIn, ...]
    until: int
    changes: tuple[tuple[int, str], ...] = ()
    pes: int = 8
    since: int = 0


@dataclass(slots=True)
class Sample:
    """How things stood at an instant (ms from the beginning): by department what was used and what it was
    to have used by its target so far (ms of PE time), requests that wait; starts so far."""

    at: int
    used: dict[str, float]
    due: dict[str, float]
    waiting: dict[str, int]
    starts: int


class Window(Struct, frozen=True):
    """Three hours: parts and targets of the departments with work to start, as fractions."""

    begin: int
    parts: Mapping[str, float]
    targets: Mapping[str, float]
    starts: int

    @property
    def deviation(self) -> float:
        """The largest difference between part and target, in points."""
        return largest(deviations(self.parts, self.targets).values()) or 0.0


@dataclass(slots=True)
class Course:
    """What became of a history: samples `STEP` apart."""

    history: UnevenHistory
    samples: list[Sample] = field(default_factory=list)

    def windows(self) -> list[Window]:
        """Those over which parts are compared."""
        size, found, steady = WINDOW // STEP, [], self._steady()
        for first in range(0, len(self.samples) - size, APART):
            last = first + size
            names = _working(self.samples[first])
            starts = self.samples[last].starts - self.samples[first].starts
            settled = self.samples[first].at - steady[first] >= SETTLED
            if len(names) > 1 and settled and steady[last] == steady[first] and starts >= STARTS:
                found.append(self._window(first, last, names, starts))
        return found

    def _steady(self) -> list[int]:
        """At each sample: since when who has work to start, and the shares, are the same."""
        found, since, before = [], 0, frozenset[str]()
        changes = [at for at, _ in self.history.changes] + [self.history.since]
        for sample in self.samples:
            now = _working(sample)
            if now != before or any(sample.at - STEP < at <= sample.at for at in changes):
                since = sample.at
            before = now
            found.append(since)
        return found

    def _window(self, first: int, last: int, names: Iterable[str], starts: int) -> Window:
        begin, end = self.samples[first].at, self.samples[last].at
        used, due = (self.between(key, begin, end) for key in ("used", "due"))
        parts, targets = ({name: of[name] / sum(of.values()) for name in names} for of in (used, due))
        return Window(begin, parts, targets, starts)

    def between(self, key: Literal["used", "due"], begin: int, end: int) -> dict[str, float]:
        """By department, what was used or due between two instants, ms of PE time."""
        a, b = (getattr(self.samples[at // STEP], key) for at in (begin, end))
        return {name: b[name] - a.get(name, 0.0) for name in b}

    def part(self, name: str, begin: int, end: int) -> float:
        """A department's part of what all used between two instants."""
        used = self.between("used", begin, end)
        return used[name] / sum(used.values())


def _working(sample: Sample) -> frozenset[str]:
    return frozenset(name for name, waiting in sample.waiting.items() if waiting)


# ---------------------------------------------------------------- running
def run(history: UnevenHistory, rule: str = "deficit", charge: str = "cpu") -> Course:
    """Runs a history under one of the stock rules."""
    lengths: dict[Seq, int] = {}
    journal = _Counting()
    sim = Simulation(journal, lambda request: Run(wall=lengths[request.seq]), START, pes=history.pes)
    shares = "".join(f"create group {name} share={share}\n" for name, share in history.shares.items())
    _tell(sim, QUEUE.format(charge=charge, rule=rule) + shares)
    plan: list[tuple[int, HandedIn | str]] = [(batch.at, batch) for batch in history.batches]
    todo = sorted([*plan, *history.changes], key=lambda each: each[0])
    course = Course(history)
    due = dict.fromkeys(history.shares, 0.0)
    for at in range(0, history.until + 1, STEP):
        before = sim.now
        while todo and todo[0][0] <= at:
            when, what = todo.pop(0)
            sim.run(Instant(START + when))
            if isinstance(what, str):
                _tell(sim, what)
            else:
                _hand_in(sim, what, lengths)
        sim.run(Instant(START + at))
        _add_due(sim, due, sim.now - before)
        course.samples.append(_sample(sim, journal, at, due))
    return course


def _tell(sim: Simulation, text: str) -> None:
    for parsed in parse_text(text):
        assert isinstance(parsed.command, cm.Command)
        sim.ask(parsed.command)


def _hand_in(sim: Simulation, batch: HandedIn, lengths: dict[Seq, int]) -> None:
    first = sim.site.next_seq
    lengths.update((first + n, length) for n, length in enumerate(batch.lengths))
    spec = Spec(
        owner=f"{batch.group}u", uid=1000, name="job", queue="night", script="", environment="",
        workdir="/home", account=batch.group, ask=Ask(pes=batch.pes),
    )  # fmt: skip
    count = len(batch.lengths)
    items = (cm.Submission(spec, "#!/bin/sh\n", "", spec.owner, line) for line in range(1, count + 1))
    ids = sim.ask(cm.Submit(tuple(items)))["ids"]
    assert [request_named(each, sim.site.names) for each in ids] == list(range(first, first + len(ids)))


def _add_due(sim: Simulation, due: dict[str, float], span: int) -> None:
    balance = balance_of(sim.site)
    level = balance.groups.copy()
    level.advance(sim.now, balance.terms)
    rate = sum(work.rate for work in level.work.values()) / 1000
    for name, target in level.targets(balance.terms).items():
        due[name] = due.get(name, 0.0) + target * rate * span


class _Counting(MemoryJournal):
    """Counts what departments have used and how many requests were started."""

    def __init__(self) -> None:
        super().__init__()
        self.used: dict[str, float] = {}
        self.starts = 0

    def commit(self, batch: Batch, site: Site) -> None:
        """As a journal does."""
        for request, event in site.touched.ended.values():
            if isinstance(event, ev.Ended):
                more = event.used.wall * request.spec.ask.pes
                self.used[request.group] = self.used.get(request.group, 0.0) + more
        self.starts += sum(isinstance(each.event, ev.Starting) for each in batch.events)
        super().commit(batch, site)


def _sample(sim: Simulation, journal: _Counting, at: int, due: Mapping[str, float]) -> Sample:
    used, waiting = dict(journal.used), dict[str, int]()
    for seq, (_, so_far) in sim.executor.use(sim.now).items():
        request = sim.site.requests[seq]
        used[request.group] = used.get(request.group, 0.0) + so_far.wall * request.spec.ask.pes
    for columns in sim.site.waiting.values():
        for number, count in enumerate(columns.by_pair().tolist()):
            group = sim.site.numbers.pairs.names[number].partition(":")[0]
            waiting[group] = waiting.get(group, 0) + count
    return Sample(at, {**dict.fromkeys(due, 0.0), **used}, dict(due), waiting, journal.starts)


# ---------------------------------------------------------------- the three scenarios
def _many(at: int, group: str, count: int) -> HandedIn:
    """Requests of ten minutes."""
    return HandedIn(at, group, (10 * MINUTE,) * count)


def after_a_hog(nights: int = 5, first: str = "d2") -> UnevenHistory:
    """d1 (60 %) runs alone for some nights, then idles; d2 (30) and d3 (10) compete for 9 hours. ``first``:
    who of them hands in an hour earlier."""
    alone = tuple(_many(n * DAY, "d1", 9 * 6 * 8) for n in range(nights))
    begin = nights * DAY
    others = [_many(begin - (HOUR if name == first else 0), name, 700) for name in ("d2", "d3")]
    batches = tuple(sorted([*alone, *others], key=lambda batch: batch.at))
    changes = ((begin - 2 * HOUR, "stop queue night"), (begin, "start queue night"))
    return UnevenHistory(
        f"after {nights} nights of d1 alone, {first} hands in first",
        {"d1": 60, "d2": 30, "d3": 10}, batches, begin + 9 * HOUR, changes, since=begin,
    )  # fmt: skip


def comes_back() -> UnevenHistory:
    """d1 (60 %) has no work for 4.7 hours while d2 (30) and d3 (10) have, then hands in."""
    idle = 282 * MINUTE
    batches = _many(0, "d1", 48), _many(0, "d2", 700), _many(0, "d3", 700), _many(idle, "d1", 700)
    shares = {"d1": 60, "d2": 30, "d3": 10}
    return UnevenHistory("d1 comes back", shares, batches, idle + 8 * HOUR, since=idle)


def share_changed() -> UnevenHistory:
    """The share of d3 is changed from 10 to 40 in the middle of the night."""
    batches = tuple(_many(0, name, 900) for name in ("d1", "d2", "d3"))
    change = (4 * HOUR, "set group d3 share=40")
    return UnevenHistory(
        "d3's share is changed", {"d1": 60, "d2": 30, "d3": 10}, batches, 12 * HOUR, (change,),
        since=4 * HOUR,
    )  # fmt: skip


SCENARIOS: Sequence[Callable[[], UnevenHistory]] = (after_a_hog, comes_back, share_changed)


# ---------------------------------------------------------------- histories drawn at random
def drawn(seed: int, hours: int = 24) -> UnevenHistory:
    """Uneven on purpose: three to six departments with shares from 1 to 60, work in bursts of very different
    lengths and numbers, hours without any, shares that change."""
    rng = Random(seed)
    names = [f"d{n}" for n in range(1, rng.randint(3, 6) + 1)]
    shares = {name: rng.choice((1, 4, 10, 15, 24, 29, 40, 60)) for name in names}
    typical = {name: rng.choice((3, 6, 10, 12)) * MINUTE for name in names}
    batches: list[HandedIn] = []
    for name in names:
        at = rng.choice((0, 0, rng.randrange(6) * HOUR))
        while at < hours * HOUR:
            work = rng.choice((1, 3, 8, 16)) * HOUR * 8 * rng.uniform(0.2, 1.0)
            lengths = _lengths(rng, work, typical[name])
            batches.append(HandedIn(at, name, lengths))
            at += round(rng.choice((2, 5, 9, 14)) * HOUR * rng.uniform(0.5, 1.5))
    changes = tuple(
        (rng.randrange(hours) * HOUR, f"set group {rng.choice(names)} share={rng.choice((2, 20, 50))}")
        for _ in range(rng.randrange(3))
    )
    batches.sort(key=lambda batch: batch.at)
    return UnevenHistory(f"drawn {seed}", shares, tuple(batches), hours * HOUR, tuple(sorted(changes)))


def _lengths(rng: Random, work: float, typical: int) -> tuple[int, ...]:
    found = []
    while work > 0:
        length = min(25 * MINUTE, max(30_000, round(rng.lognormvariate(0, 0.6) * typical)))
        found.append(length)
        work -= length
    return tuple(found)
