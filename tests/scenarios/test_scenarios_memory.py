"""Memory at the computing centre (seed 003, 5.3): the four rules of the exit large_memory over random nights,
and what the standard limits do in its place."""

import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenarios.computing_centre import ROOT, Site, moment

from nqspy.engine.virtual.processors import TimeShared
from nqspy.model import events as ev

MW = 8 * 1024**2
NIGHT = "2026-03-02T21:00:00+01:00"
GROUPS = ("d1", "d2", "d4")


# ---------------------------------------------------------------- the four rules
@st.composite
def nights(draw):
    """hmax (Mw), nproc, PEs, and lists: memory (Mw) and seconds of each request, by department."""
    request = st.tuples(st.integers(1, 100), st.integers(60, 7200))
    lists = {group: draw(st.lists(request, max_size=12)) for group in GROUPS}
    return draw(st.integers(60, 120)), draw(st.integers(2, 8)), draw(st.integers(2, 12)), lists


class Rules:
    """Looks at every start of a journal: what runs then, and whether a rule is broken."""

    def __init__(self, site: Site, hmax: int, nproc: int) -> None:
        self.hmax, self.nproc, self.running = hmax * MW, nproc, {}
        self.large_starts: dict[str, list[int]] = {}
        self.specs = {e.seq: e.spec for e in site.events(ev.Submitted)}
        for event in site.events(ev.Starting, ev.Ended):
            if isinstance(event, ev.Ended):
                del self.running[event.seq]
            else:
                self.start(event.seq)

    def is_large(self, seq: int) -> bool:
        return self.specs[seq].ask.memory > self.hmax / self.nproc

    def start(self, seq: int) -> None:
        self.running[seq] = self.specs[seq].ask.memory
        assert len(self.running) <= self.nproc + 2
        assert sum(self.running.values()) <= 2 * self.hmax
        assert sum(memory for s, memory in self.running.items() if self.is_large(s)) <= self.hmax
        if self.is_large(seq):
            self.large_starts.setdefault(self.specs[seq].group, []).append(seq)


@settings(max_examples=30)
@given(nights())
def test_the_four_rules_hold_at_every_start_of_any_night(night):
    hmax, nproc, pes, lists = night
    more = f"set machine pes={pes}\nset exit large_memory hmax={hmax}mw nproc={nproc} budget=60"
    seconds = {f"{g}-{n}": s for g, each in lists.items() for n, (_, s) in enumerate(each)}
    site = Site(lambda r: seconds[r.name], pes=nproc, more=more)
    handed = {
        group: site.list_of(
            group, *(f"name={group}-{n} mem={min(mw, hmax)}mw" for n, (mw, _) in enumerate(each))
        )
        for group, each in lists.items()
        if each
    }
    site.until("2026-03-06T18:00:00+01:00")
    rules = Rules(site, hmax, nproc)
    for group, seqs in handed.items():
        large = [seq for seq in seqs if rules.is_large(seq)]
        assert rules.large_starts.get(group, []) == large, "in their own order, and each of them one day"
    assert not site.site.requests, "nothing is left"


# ---------------------------------------------------------------- the standard limits (5.3.1)
FIFO = """
disable exit dependency
disable exit shrpri
disable exit large_memory
set sched_factor share 0 cpu 0 memory 0 time 1
set machine pes=10
"""
"""To be typed after 21:00: the night shift says otherwise."""

SITE = "set machine pes=10\nset exit large_memory hmax=115mw nproc=8"


def a_night(commands: str = FIFO, seconds=lambda r: 600, **options) -> tuple[Site, TimeShared]:
    """21:00 has come on a Y-MP with eight CPUs, nothing runs yet, and this is typed."""
    shared = TimeShared(8, 128 * MW)
    site = Site(seconds, pes=8, processors=shared, **options)
    site.until(NIGHT)
    site.qmgr(commands)
    return site, shared


def running(site: Site) -> list[int]:
    return sorted(site.site.started)


def test_with_the_exit_it_is_started_at_once_and_finds_room():
    site, _ = a_night(SITE, lambda request: 400 + 37 * request.seq)  # no two end together
    site.list_of("d1", *(f"name=s{n} mem=12mw" for n in range(9)))
    [large] = site.list_of("d1", "name=large mem=100mw")
    assert site.state(large) == "running"
    for _ in range(12):  # small ones keep coming, always more than can run
        site.list_of("d2", *("mem=12mw" for _ in range(9)))
        site.later(minutes=10)
    assert site.state(large) == "ended"
    assert site.end_of(large).used.wall <= 2 * 770 * 1000, "it came into memory when the first ones ended"


def test_with_one_hmax_a_late_request_of_a_user_waits_for_a_large_one_while_processors_idle():
    for commands, state in ((FIFO + "set global memory_limit=115mw", "queued"), (SITE, "running")):
        site, _ = a_night(commands)
        site.list_of("d1", "name=large mem=100mw", "name=small mem=12mw")
        [late] = site.submit("anne cpu=300 mem=8mw")
        assert site.request(late).queue == "normal"
        assert (site.state(late), len(running(site))) == (state, 2 if state == "queued" else 3)
        if state == "queued":
            assert "memory limit" in site.engine.plan.reasons.own[late].text


IN_ORDER = """
from nqspy.userexit import hold_line, userexit

@userexit
def jobselect(request, view):
    left = 115 * 8 * 1024**2 - sum(other.memory for other in view.running())
    return hold_line("in order") if request.memory > left else None
"""


@pytest.fixture
def forced(tmp_path):
    """The exits, and one that enforces plain order within 1 Hmax."""
    shutil.copytree(ROOT / "exits", tmp_path / "exits")
    path = tmp_path / "exits" / "in_order.py"
    path.write_text(IN_ORDER)
    path.chmod(0o644)
    return tmp_path / "exits"


def three_at_the_head(site: Site) -> tuple[list[int], list[int]]:
    return tuple(
        site.list_of("d1", *(f"name={mw}-{n} mem={mw}mw" for n in range(count)))
        for count, mw in ((3, 96), (30, 4))
    )


def test_three_large_requests_at_the_head_leave_the_processors_to_the_small_ones():
    """5.3.2: only one of them can be in memory; the small ones behind them fill the processors."""
    site, _ = a_night(SITE)
    large, small = three_at_the_head(site)
    assert running(site) == [large[0], *small[:9]]
    site.later(minutes=5)
    assert [seq for seq in large if site.state(seq) == "running"] == large[:1]
    begun = site.sim.executor.spent(site.sim.now)
    site.later(minutes=20)
    assert (site.sim.executor.spent(site.sim.now) - begun) / (8 * 20 * 60_000) == pytest.approx(1.0)
    site.later(hours=1)
    assert [seq for seq in site.starts() if seq in large] == large


def test_where_plain_order_is_enforced_all_processors_but_one_are_idle(forced):
    site, _ = a_night("disable exit large_memory\nset machine pes=10", folder=forced)
    large, _ = three_at_the_head(site)
    assert running(site) == large[:1]
    site.until("2026-03-02T21:19:00+01:00")
    assert running(site) == large[1:2], "the next large one; none of the small ones"
    spent = site.sim.executor.spent(site.sim.now)
    assert spent / (8 * (site.sim.now - moment(NIGHT))) == pytest.approx(1 / 8)
