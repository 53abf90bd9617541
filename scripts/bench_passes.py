"""Measures passes with many waiting requests, in this process, compared with numpy computing the four factors
and their argmax over the same arrays."""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from bench_tools import apply

from nqspy.core.no_exits import NoExits
from nqspy.core.passes import run_pass
from nqspy.model.actions import Reserving
from nqspy.model.arrays import ArraySpec
from nqspy.model.events import (
    Change,
    Decided,
    Ended,
    Event,
    MachineFound,
    Recorded,
    Reserved,
    SettingsChanged,
    Starting,
    Submitted,
)
from nqspy.model.ids import Instant, array_key
from nqspy.model.requests import Ask, Spec, Used
from nqspy.model.site import Site
from nqspy.ports import Answer
from nqspy.userexit.guard import Guard

NOW = Instant(1_800_000_000_000)
BEFORE = Instant(NOW - 20_000_000)
USERS, GROUPS = 40, 5


class RefuseAll(NoExits):
    """A jobselect exit that refuses every candidate."""

    def has(self, hook: str) -> bool:
        """True for jobselect only."""
        return hook == "jobselect"

    def jobselect(self, request: Any, view: Any) -> Answer | None:
        """Refuse the candidate."""
        return Answer("refuse", "not tonight", "bench")


def site_of(count: int, pes: int = 2, user_limit: int | None = None, array: ArraySpec | None = None) -> Site:
    """Return a site with a queue of ``count`` waiting requests (arrays, if ``array`` is given)."""
    site = Site()
    happen(site, MachineFound(tuple(range(pes)), 0, "bench"))
    values = {"enabled": True, "started": True, "user_limit": user_limit}
    changes = [Change("create", f"group/d{n}", {"share": n + 1}) for n in range(GROUPS)]
    factors = [
        Change("set", f"sched_factor/{name}", n)
        for name, n in (("share", 20), ("cpu", 6), ("memory", 1), ("time", 10))
    ]
    happen(site, SettingsChanged((Change("create", "queue/q", values), *changes, *factors)))
    rng = np.random.default_rng(1)
    cpu, memory = rng.integers(1, 3_600_000, count).tolist(), rng.integers(1, 1 << 30, count).tolist()
    for n in range(count):
        spec = Spec(
            f"u{n % USERS}",
            0,
            "job",
            "q",
            "",
            "",
            "/",
            group=f"d{n % GROUPS}",
            ask=Ask(cpu=cpu[n], memory=memory[n]),
            array=array,
        )
        seq = n + 1 if array is None else array_key(n + 1)
        happen(site, Submitted(seq, spec, "q", "queued"), Instant(NOW - 10_000_000 + n * 50))
    return site


def happen(site: Site, event: Event, at: Instant = BEFORE) -> None:
    apply(site, Recorded(site.n + 1, at, event))


def _occupy(site: Site, owners: int) -> None:
    """Add a running request of each user, so that a user limit of 1 blocks all others."""
    for n in range(owners):
        happen(site, Starting(n + 1, 1, (n,)))


def _told(site: Site) -> Site:
    """Return the site as the engine leaves it for the next pass: with what the last one found startable."""
    plan = run_pass(site, BEFORE, NoExits())
    happen(site, Decided(plan.as_of, ready=plan.ready))
    return site


def _floor(site: Site) -> Callable[[], int]:
    """Return a function with numpy's bare work: four factors, their weighted sum, argmax."""
    columns = site.waiting["q"]
    date, cpu, memory, pair = (
        np.array(a) for a in (columns.date, columns.cpu, columns.memory, columns.group)
    )
    values = np.linspace(0.1, 1.0, GROUPS)

    def work() -> int:
        waited = NOW - date
        time_ = waited / waited.max()
        cpu_ = 1.0 - cpu / cpu.max()
        memory_ = 1.0 - memory / memory.max()
        share = values[pair]
        return int((20 * (share / share.max()) + 6 * cpu_ + memory_ + 10 * time_).argmax())

    return work


def _median(work: Callable[[], object], runs: int = 15) -> float:
    taken = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def bench_passes(figure: Callable[..., Any], count: int) -> Iterator[Any]:
    """Yield figures of three passes: one request can start; a user limit blocks all; an exit refuses all."""
    name = "numpy: four factors and argmax"
    one = _told(site_of(count, pes=1))
    floor = _median(_floor(one))
    plan = run_pass(one, NOW, NoExits())
    assert len(plan.starts) == 1
    ours = _median(lambda: run_pass(one, NOW, NoExits()))
    yield figure(
        f"pass, {count} waiting: one can start", ours, "ms", floor, name, "<= 4 x", ours <= 4 * floor
    )

    limited = site_of(count, pes=USERS + 2, user_limit=1)
    _told(limited)
    _occupy(limited, USERS)
    assert not run_pass(limited, NOW, NoExits()).starts
    floor = _median(_floor(limited))
    ours = _median(lambda: run_pass(limited, NOW, NoExits()))
    yield figure("... a user limit keeps all back", ours, "ms", floor, name, "<= 4 x", ours <= 4 * floor)

    refused = run_pass(one, NOW, RefuseAll())
    assert not refused.starts
    assert len(refused.reasons.own) == 1000
    ours = _median(lambda: run_pass(one, NOW, RefuseAll()))
    small = _told(site_of(1000, pes=1))
    offers = _median(lambda: run_pass(small, NOW, RefuseAll()))
    floor = _median(_floor(one))
    name = f"4 x {name} + 1,000 offers ({offers:.1f} ms)"
    yield figure("... an exit refuses all", ours, "ms", 4 * floor + offers, name,
                 "<= 1 x", ours <= 4 * floor + offers)  # fmt: skip
    yield figure("a call of an exit under its guard", _guarded(), "us", _bare(), "the bare call", "<= 10 us",
                 _guarded() <= 10)  # fmt: skip


HELD, EVERY = 60, 7
"""PEs held for an hour, and the period of requests that ask for as many: more than are free."""


def promising(count: int, reserve: int | None) -> Site:
    """Return a site of 100 PEs, 60 of them held, with a queue of requests of up to ten minutes that reserves
    so many starts (None: all), after the pass that made all reservations."""
    site = Site()
    happen(site, MachineFound(tuple(range(100)), 0, "bench"))
    values = {"enabled": True, "started": True, "order": "fcfs", "reserve": reserve}
    happen(site, SettingsChanged((Change("create", "queue/q", values),)))
    for n in range(count):
        ask = Ask(pes=HELD if n % EVERY == 0 else 41, wall=600_000 if n else 3_600_000)
        spec = Spec(f"u{n % USERS}", 0, "job", "q", "", "", "/", ask=ask)
        happen(site, Submitted(n + 1, spec, "q", "queued"), Instant(BEFORE + n))
    happen(site, Starting(1, 1, tuple(range(HELD))), Instant(NOW - 60_000))
    while (plan := run_pass(site, NOW, NoExits())).actions:
        for action in plan.actions:
            assert isinstance(action, Reserving)
            happen(site, Reserved(action.starts, action.as_of, action.causes), NOW)
    happen(site, Decided(plan.as_of, ready=plan.ready), NOW)
    return site


def bench_promises(figure: Callable[..., Any], count: int) -> Iterator[Any]:
    """Yield figures of a pass for new requests in which nothing starts: without reservations, with one, with
    as many as allowed. Not judged: the first pass after another event, which lays out anew, and one after an
    end, which goes through all reservations."""
    without, one, most = (promising(count, reserve) for reserve in (0, 1, None))
    floor = _median(lambda: _came_one(without))
    for site, said in ((one, "one promised start"), (most, f"{len(most.reserved)} promised starts")):
        ours = _median(lambda site=site: _came_one(site))
        name = f"pass, {count} waiting: {said}"
        yield figure(name, ours, "ms", floor, "the same without promises", "<= 5 x", ours <= 5 * floor)
    anew = _median(lambda: _laid_out_anew(most))
    yield figure("... laid out anew", anew, "ms", floor, "the same without promises", "", None)
    for site in (without, most):
        happen(site, Ended(1, 1, "exit", 0, used=Used(0, 60_000)), NOW)
    floor, ended = (_median(lambda site=site: run_pass(site, NOW, NoExits()), 5) for site in (without, most))
    yield figure("... one has ended", ended, "ms", floor, "the same without promises", "", None)


def _came_one(site: Site) -> None:
    """Submit one request of 41 PEs, and run a pass for it, which must start nothing."""
    spec = Spec("u1", 0, "job", "q", "", "", "/", ask=Ask(pes=41, wall=600_000))
    happen(site, Submitted(site.next_seq, spec, "q", "queued"), NOW)
    assert not run_pass(site, NOW, NoExits()).starts


def _laid_out_anew(site: Site) -> None:
    site.memos.clear()
    run_pass(site, NOW, NoExits())


CALLS = 2_000


def _guarded() -> float:
    """Return the microseconds of an empty call under the guard."""
    guard = Guard()

    def work() -> None:
        for _ in range(CALLS):
            with guard:
                guard.call(len, ((),), 50)

    return _median(work) * 1000 / CALLS


def _bare() -> float:
    def work() -> None:
        for _ in range(CALLS):
            len(())

    return _median(work) * 1000 / CALLS
