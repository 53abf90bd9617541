"""A pass by job class over 4,096 PEs with 1,000 waiting, beside the same rule in plain Python, PE by PE."""

import time
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

from bench_passes import BEFORE, NOW, happen

from nqspy.core.no_exits import NoExits
from nqspy.core.passes import run_pass
from nqspy.model.events import Change, MachineFound, SettingsChanged, Starting, Submitted
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Ask, Spec
from nqspy.model.site import Site

PES, WAITING = 4_096, 1_000
PART = 0.1
"""What the pass may take of the plain version's time."""
COST = (1 + 2) / (1 + 4)
"""Cost of a PE of production, of priority 2, for a bumper of priority 4."""
CLASSES = {
    "interactive": {"priority": 4, "wait": 0, "do_not_disturb": 10_000},
    "production": {"priority": 2, "wait": 1_800_000, "do_not_disturb": 10_000},
    "standby": {"priority": 1, "wait": None, "do_not_disturb": 3_000},
}


class PlainJob(NamedTuple):
    """Its class and PEs; those that it holds."""

    kind: str
    width: int
    seq: int
    held: Sequence[int] = ()


def crowded_site(seed: int = 1) -> tuple[Site, list[PlainJob], list[PlainJob]]:
    """A machine that is full, who holds it, and who waits."""
    rng, site = Random(seed), Site()  # noqa: S311 - no secret
    happen(site, MachineFound(tuple(range(PES)), 0, "bench"))
    happen(
        site,
        SettingsChanged(
            (
                Change("set", "domain/application/placement", "contiguous"),
                *(Change("create", f"class/{name}", values) for name, values in CLASSES.items()),
                Change("create", "queue/apps", {"enabled": True, "started": True, "order": "class"}),
            )
        ),
    )
    running, first, seq = list[PlainJob](), 0, 0
    while first < PES:
        seq, width = seq + 1, min(PES - first, rng.choice((16, 32, 64, 128, 256)))
        pes = tuple(range(first, first + width))
        running.append(PlainJob("production", width, seq, pes))
        happen(site, _submitted(seq, "production", width), BEFORE)
        happen(site, Starting(Seq(seq), 1, pes), BEFORE)
        first += width
    kinds, widths = list(CLASSES), (8, 16, 64, 128, 512)
    waiting = [PlainJob(rng.choice(kinds), rng.choice(widths), seq + n) for n in range(1, WAITING + 1)]
    for job in waiting:
        happen(site, _submitted(job.seq, job.kind, job.width), Instant(NOW - 60_000))
    return site, running, waiting


def _submitted(seq: int, kind: str, width: int) -> Submitted:
    owner = f"u{seq % 9}"
    spec = Spec(owner, 1000, "job", "apps", "", "", "/", ask=Ask(pes=width), job_class=kind)
    return Submitted(Seq(seq), spec, "apps", "queued")


def plain(running: Sequence[PlainJob], waiting: Sequence[PlainJob]) -> range | None:
    """The same decision PE by PE: the cheapest row for the first bumper; whether the others fit."""
    holder: list[PlainJob | None] = [None] * PES
    for job in running:
        for pe in job.held:
            holder[pe] = job
    turns = sorted(waiting, key=lambda job: (-int(str(CLASSES[job.kind]["priority"])), job.seq))
    bumper, best = turns[0], None
    for begin in range(PES - bumper.width + 1):
        there = {job.seq: job for job in holder[begin : begin + bumper.width] if job is not None}
        costs = (COST * len(job.held) for job in there.values())
        found = sum(costs), len(there), begin
        best = found if best is None or found < best else best
    for job in turns[1:]:
        free = 0
        for pe in range(PES):
            free = free + 1 if holder[pe] is None else 0
            if free == job.width:
                break
    return None if best is None else range(best[2], best[2] + bumper.width)


def bench_bumper(figure: Callable[..., Any], turns: int = 5) -> Iterator[Any]:
    """The least of some turns of each, and that both clear the same PEs."""
    site, running, waiting = crowded_site()
    ours, floor = [], []
    for _ in range(turns):
        began = time.process_time()
        plan = run_pass(site, NOW, NoExits(), {})
        ours.append(time.process_time() - began)
        began = time.process_time()
        row = plain(running, waiting)
        floor.append(time.process_time() - began)
    bumped = {action.seq for action in plan.actions if action.kind == "suspend"}  # type: ignore[attr-defined]
    assert row is not None
    assert bumped == {job.seq for job in running if not set(row).isdisjoint(job.held)}
    took, least = 1000 * min(ours), 1000 * min(floor)
    name = f"the same rule PE by PE ({len(bumped)} jobs give way in both)"
    yield figure(
        f"a pass by class, {WAITING} waiting, {PES} PEs", took, "ms", least, name, f"<= {PART} x",
        took <= PART * least,
    )  # fmt: skip
