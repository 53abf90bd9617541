"""Running requests pushed together so that one that waits fits (seed 002, 5.2, figure 6): one a cycle, the
cheapest first, and none in vain."""

from itertools import pairwise

import pytest
from engine.harness import ROOT, Centre, asked, exits_of, signed, submit
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core import domains
from nqspy.core.fallback.compact import Slider, first_slide
from nqspy.engine.inputs import Decision
from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.actions import Migrate, Plan
from nqspy.model.ids import Instant, Seq
from nqspy.model.observations import ObservedResource

SITE = """
set machine pes=16
set domain application placement=first_block balance_heartbeat=10
create batch_queue batch priority=10
set queue batch order=fcfs
enable queue batch
start queue batch
set default batch_request queue batch
"""
BEGIN = "2026-03-02T20:00:00+01:00"
FIGURE = "a pes=4, x pes=2, b pes=2, y pes=2, c pes=2, z pes=2, d pes=2"
"""Figure 6: when x, y and z have ended, three holes of two PEs each are left between the others."""


def lengths(request):
    return Run(60_000 if request.name in ("x", "y", "z") else 3_600_000, 0, unlimited=True)


def fragmented(text=SITE, extra="", **more):
    """Return a site a minute after the requests of the figure began, and their numbers by name."""
    centre = Centre(text + extra, at=BEGIN, lengths=lengths, **more)
    lines = [each.split() for each in FIGURE.split(", ")]
    found = centre.submit(*(f"anne name={name} {pes}" for name, pes in lines))
    centre.later(seconds=95)
    return centre, dict(zip("axbyczd", found, strict=True))


def moves(centre):
    """Return (seconds since the begin, number, first PE) of each move."""
    recorded = [each for each in centre.journal.events() if isinstance(each.event, ev.Migrated)]
    begin = Instant(centre.sim.now - centre.sim.now % 3_600_000)
    return [((each.at - begin) // 1000, each.event.seq, each.event.pes[0]) for each in recorded]


# ---------------------------------------------------------------- figure 6


def test_two_moves_on_two_cycles_let_one_that_waits_start():
    centre, of = fragmented()
    centre.later(minutes=5)
    assert not moves(centre), "nobody waits"
    assert centre.engine.plan.wake_at is None, "and nobody looks again"
    [wide] = centre.submit("ben name=wide pes=6")
    assert centre.state(wide) == "queued"
    centre.later(seconds=30)
    assert moves(centre) == [(400, of["b"], 4), (410, of["c"], 6)]
    assert centre.request(wide).pes == tuple(range(8, 14))
    assert centre.times(ev.Starting)[wide] == centre.times(ev.Migrated)[of["c"]]
    assert centre.request(of["b"]).pes == (4, 5)
    [row] = domains.rows(centre.site)
    assert (row["balance_heartbeat_s"], row["balance_rest_s"]) == (10, 0)
    assert "balance_heartbeat=10 " in domains.text(centre.site)
    assert centre.request(of["b"]).run.migrated == centre.times(ev.Migrated)[of["b"]]
    centre.later(minutes=5)
    assert len(moves(centre)) == 2
    assert centre.engine.plan.wake_at is None
    centre.is_sound()


def test_one_move_is_enough_for_a_narrower_one():
    centre, of = fragmented()
    [one] = centre.submit("ben pes=4")
    centre.later(minutes=1)
    assert moves(centre) == [(100, of["b"], 4)]
    assert centre.request(one).pes == (6, 7, 8, 9)


def test_what_ends_meanwhile_saves_the_second_move():
    centre, of = fragmented()
    [wide] = centre.submit("ben pes=6")
    centre.later(seconds=7)
    assert len(moves(centre)) == 1
    centre.ask(cm.Delete((centre.id(of["c"]),), force=True))
    centre.later(minutes=1)
    assert centre.state(wide) == "running"
    assert len(moves(centre)) == 1


@pytest.mark.parametrize(
    "extra",
    [
        "set domain application balance_heartbeat=none",
        "set domain application features=(health, swap)",
        "set domain application placement=lowest",
        "set queue batch user_limit=4",
    ],
)
def test_nothing_moves_where_it_is_not_wanted_or_would_not_help(extra):
    centre, _ = fragmented(extra=extra + "\n")
    centre.submit("anne pes=6", "anne pes=7")
    centre.later(minutes=5)
    assert not moves(centre)


def test_nothing_moves_for_one_that_needs_more_than_all_idle_pes():
    centre, _ = fragmented()
    [wide] = centre.submit("ben pes=7")
    centre.later(minutes=5)
    assert not moves(centre)
    assert centre.engine.plan.wake_at is None
    assert centre.state(wide) == "queued"


def test_once_the_patience_of_the_first_is_over_only_it_counts():
    patient = "set queue batch backfill=patient patience=60\n"
    centre, of = fragmented(extra=patient)
    centre.submit("ben pes=7")
    centre.later(seconds=65)
    [six] = centre.submit("anne pes=6")
    centre.later(minutes=5)
    assert not moves(centre), "the first needs more than the idle PEs and lets none pass"
    [narrow] = centre.submit("anne pes=1")
    centre.later(minutes=1)
    assert {centre.state(narrow), centre.state(six)} == {"queued"}
    centre.qmgr("set queue batch patience=unlimited")
    centre.later(minutes=1)
    assert centre.state(narrow) == "running"

    centre, of = fragmented(extra=patient)
    centre.submit("ben pes=7")
    [six] = centre.submit("anne pes=6")
    centre.later(seconds=30)
    assert [seq for _, seq, _ in moves(centre)] == [of["b"], of["c"]], "before, one that passes it counts too"
    assert centre.state(six) == "running"


def test_one_that_would_delay_a_reserved_start_does_not_count():
    centre, of = fragmented(extra="set queue batch reserve=1\n")
    for name, hours in zip("abcd", (20, 1, 20, 20), strict=True):
        centre.qmgr(f"modify request {of[name]} wall_limit={hours}:00:00")
    centre.submit("ben pes=8 wall=1:00:00", "anne pes=6 wall=10:00:00")
    centre.later(minutes=5)
    assert not moves(centre), "when b ends, the first needs all that is idle"
    [short] = centre.submit("anne pes=6 wall=10:00")
    centre.later(seconds=30)
    assert [seq for _, seq, _ in moves(centre)] == [of["b"], of["c"]]
    assert centre.state(short) == "running"


def test_one_with_a_reserved_start_counts():
    centre, _ = fragmented(extra="set queue batch reserve=1\n")
    [first] = centre.submit("ben pes=6")
    centre.later(seconds=30)
    assert centre.state(first) == "running"
    assert len(moves(centre)) == 2


def test_one_that_an_exit_refuses_does_not_count(tmp_path):
    exits = exits_of(
        tmp_path / "exits",
        refuse="""
from nqspy.userexit import refuse, userexit


@userexit
def jobselect(request, view):
    return refuse("not today") if request.owner == "ben" else None
""",
    )
    centre, _ = fragmented(exits=exits)
    centre.submit("ben pes=4")
    centre.later(minutes=1)
    assert not moves(centre)
    centre.submit("anne pes=4")
    centre.later(minutes=1)
    assert len(moves(centre)) == 1


def test_one_that_moved_rests():
    centre, of = fragmented(extra="set domain application balance_rest=2:00\n")
    [narrow, wide] = centre.submit("ben pes=4 name=x", "ben pes=10")
    centre.later(seconds=10)
    assert moves(centre) == [(100, of["b"], 4)]
    centre.ask(cm.Delete((centre.id(of["a"]),), force=True))
    centre.later(minutes=1)  # 0-3 and 6-9 are idle: only a move of b lets one of 8 PEs start
    centre.ask(cm.Delete((centre.id(wide),)))
    [eight] = centre.submit("ben pes=8")
    assert centre.state(narrow) == "ended"
    centre.later(seconds=30)
    assert len(moves(centre)) == 1
    centre.later(seconds=40)
    assert moves(centre)[1:] == [(220, of["b"], 0)]
    assert centre.state(eight) == "running"


def test_one_that_gives_way_in_the_same_pass_is_not_moved():
    centre = Centre(f"{SITE}create probe nfs tcp=nfs:2049 running=requeue\n", at=BEGIN, lengths=lengths)
    lines = [each.split() for each in FIGURE.split(", ")]
    needs = {"b": "needs=nfs", "c": "needs=nfs"}
    found = centre.submit(*(f"anne name={name} {pes} {needs.get(name, '')}" for name, pes in lines))
    centre.later(seconds=100 - 1)
    at = Instant(centre.sim.now + 1_000)
    centre.sim.see(at, ObservedResource("nfs", "broken", "stale file handle"))
    centre.sim.heap.push(at, asked(submit("ben pes=4", centre)))
    centre.later(seconds=30)
    assert not moves(centre)
    assert {centre.state(seq) for seq in found[2:5:2]} == {"queued"}
    centre.is_sound()


BY_CLASS = """
create class production priority=2 do_not_disturb=2:00
create class still priority=2 do_not_disturb=unlimited
set queue batch order=class
"""


def test_the_do_not_disturb_time_of_a_class_is_kept():
    centre, of = fragmented(extra=BY_CLASS)
    [four] = centre.submit("ben pes=4")
    centre.later(minutes=2)
    assert not moves(centre)
    assert centre.engine.plan.wake_at == centre.request(of["b"]).run.started + 2 * 2 * 60_000
    centre.later(minutes=1)
    assert moves(centre) == [(240, of["b"], 4)]
    assert centre.state(four) == "running"


def test_one_of_a_class_that_is_never_disturbed_never_moves():
    centre = Centre(SITE + BY_CLASS, at=BEGIN, lengths=lengths)
    lines = [each.split() for each in FIGURE.split(", ")]
    still = dict.fromkeys("bc", "class=still")
    centre.submit(*(f"anne name={name} {pes} {still.get(name, '')}" for name, pes in lines))
    centre.later(seconds=95)
    centre.submit("ben pes=4")
    centre.later(minutes=20)
    assert not moves(centre)
    assert centre.engine.plan.wake_at is None


# ---------------------------------------------------------------- around it


def test_a_move_costs_the_progress_that_the_simulation_says():
    centre, of = fragmented(migration=30_000)
    centre.submit("ben pes=4")
    centre.later(hours=2)
    ends = {each.event.seq: each.at for each in centre.journal.events() if isinstance(each.event, ev.Ended)}
    begin = centre.times(ev.Starting)
    assert ends[of["b"]] - begin[of["b"]] == 3_630_000
    assert ends[of["c"]] - begin[of["c"]] == 3_600_000


def test_a_restart_in_the_middle_changes_nothing():
    centre, of = fragmented()
    [wide] = centre.submit("ben pes=6")
    centre.later(seconds=7)
    centre.sim.restart()
    centre.is_sound()
    centre.later(seconds=1)
    centre.sim.restart()
    assert [seq for _, seq, _ in moves(centre)] == [of["b"]], "one a cycle, over restarts too"
    centre.later(seconds=20)
    assert moves(centre) == [(100, of["b"], 4), (110, of["c"], 6)]
    assert centre.state(wide) == "running"


@pytest.mark.parametrize(
    ("name", "pes", "stands"),
    [
        ("b", (4, 5), True),
        ("b", (5, 6), True),  # partly its own
        ("b", (3, 4), False),  # one of a
        ("b", (4, 8), False),  # with a gap
        ("b", (4, 5, 6), False),
        ("b", (), False),
        ("b", (16, 17), False),
        ("wide", (4, 5), False),  # it waits
        ("x", (4, 5), False),  # it has ended
    ],
)
def test_only_a_move_that_still_fits_is_carried_out(name, pes, stands):
    centre, of = fragmented(extra="set domain application balance_heartbeat=1000:00:00\n")
    [of["wide"]] = centre.submit("ben pes=6")
    engine = centre.engine
    engine.decider = Late(engine.decider)
    engine._dirty = True
    centre.sim.feed([])
    forged = [each for each in signed(Migrate(of[name], 1, pes)) if each.by == "compact"]
    centre.sim.feed([Decision(Plan(actions=tuple(forged), as_of=centre.site.n))])
    assert (len(centre.events(ev.Migrated)) == 1) == stands
    assert not stands or centre.request(of[name]).pes == pes


class Late:
    """A decider whose plans come later."""

    def __init__(self, decider):
        self._decider = decider

    def __getattr__(self, name):
        return getattr(self._decider, name)

    def ask(self, site, now, samples):
        return None


def test_a_heartbeat_without_effect_is_said():
    centre = Centre(SITE, at=BEGIN)
    for line in ("placement=lowest", "depth=2"):
        answer = centre.ask(centre.command(f"set domain application {line}"), ROOT)
        assert any("balance_heartbeat" in each for each in answer["warnings"])


# ---------------------------------------------------------------- for any sizes

ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6), st.booleans()), min_size=1, max_size=9)
"""Requests in a row: PEs of the hole before each, its PEs, and True if it may be moved."""


def layout(row):
    """Return holes (sizes by first PE) and sliders of such a row."""
    holes, sliders, at = {}, [], 0
    for n, (hole, count, free) in enumerate(row):
        holes |= {at: hole} if hole else {}
        at += hole
        if free:
            sliders.append(Slider(Seq(n), at, count, Instant(0)))
        at += count
    return holes, sliders


def slid(holes, sliders, slide):
    """Return holes and sliders after a slide, PE by PE."""
    [mover] = [each for each in sliders if each.seq == slide.seq]
    idle = {pe for base, size in holes.items() for pe in range(base, base + size)}
    idle |= {*range(mover.base, mover.base + mover.count)}
    target = {*range(slide.base, slide.base + slide.count)}
    assert target <= idle, "it takes PEs of another"
    idle -= target
    firsts = sorted(pe for pe in idle if pe - 1 not in idle)
    made = {pe: next(n for n in range(1, 999) if pe + n not in idle) for pe in firsts}
    others = [each for each in sliders if each is not mover]
    return made, [*others, Slider(mover.seq, slide.base, mover.count, Instant(0))]


@given(ROWS, st.integers(1, 30))
def test_slides_are_made_only_if_they_end_in_a_hole_that_is_wide_enough(row, wanted):
    holes, sliders = layout(row)
    while max(holes.values(), default=0) < wanted:
        slide = first_slide(holes, sliders, wanted)
        if slide is None:
            assert holes == layout(row)[0], "the first were made in vain"
            break
        before = sum(size * size for size in holes.values())
        cheaper = [each.count for each in sliders if each.base in {b + s for b, s in holes.items()}
                   and each.base + each.count in holes]  # fmt: skip
        assert slide.count == min(cheaper)
        holes, sliders = slid(holes, sliders, slide)
        assert sum(size * size for size in holes.values()) > before
    else:
        assert first_slide(holes, sliders, wanted) is None, "nothing is needed any more"


JOBS = st.lists(
    st.tuples(st.integers(0, 90), st.integers(1, 8), st.integers(5, 200)), min_size=8, max_size=25
)
"""Requests: seconds after the one before, PEs, seconds that it runs."""


@settings(max_examples=examples(25), deadline=None)
@given(JOBS, st.sampled_from([1, 7, 10]), st.sampled_from([0, 25]), st.booleans())
def test_any_work_moves_once_a_cycle_and_for_somebody(jobs, beat, rest, patient):
    extra = f"set domain application balance_heartbeat={beat} balance_rest={rest}\n"
    extra += "set queue batch backfill=patient patience=60\n" if patient else ""
    centre = Centre(
        SITE + extra, at=BEGIN, lengths=lambda each: Run(1000 * int(each.name), 0, unlimited=True)
    )
    for after, pes, seconds in jobs:
        centre.later(seconds=after)
        centre.submit(f"anne name={seconds} pes={pes}")
    centre.later(hours=2)
    assert not centre.site.requests
    pes, waiting, cycles, last = {}, {}, [], {}
    for recorded in centre.journal.events():
        match recorded.event:
            case ev.Submitted(seq, spec=spec):
                waiting[seq] = spec.ask.pes
            case ev.Starting(seq, pes=given):
                pes[seq] = given
                del waiting[seq]
            case ev.Migrated(seq, pes=given):
                idle = 16 - sum(map(len, pes.values()))
                assert any(asked <= idle for asked in waiting.values())
                others = [pe for other, held in pes.items() if other != seq for pe in held]
                assert not {*given} & {*others}
                assert given == tuple(range(given[0], given[0] + len(pes[seq])))
                assert recorded.at - last.get(seq, -(10**9)) >= 1000 * rest
                pes[seq], last[seq] = given, recorded.at
                cycles.append(recorded.at // (1000 * beat))
            case ev.Ended(seq):
                del pes[seq]
    assert all(one < other for one, other in pairwise(cycles)), "two moves in a cycle"
    centre.is_sound()
