"""Moldable requests in the engine: late plans, limits at the desk, alterations, other courses of a night."""

import pytest
from engine.harness import Centre, item, signed
from engine.test_engine_late_plans import Late
from engine.test_engine_replay import course

from nqspy.engine.inputs import Decision
from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.actions import Plan, Start

MINUTE = 60_000
SIZES = "anne sizes=1,2,4 walls=40:00,20:00,10:00"


def by_size(request) -> Run:
    """It takes nearly the time that is its limit."""
    return Run(wall=request.spec.ask.wall - MINUTE)


@pytest.fixture
def centre() -> Centre:
    return Centre(pes=4, lengths=by_size)


def sizes(centre: Centre) -> list[int]:
    return [len(event.pes) for event in centre.events(ev.Starting)]


@pytest.mark.parametrize(
    ("pes", "runs"),
    [((0,), True), ((0, 1), True), ((0, 1, 2), False), ((1, 1), False), ((3, 4), False), ((), False)],
)
def test_a_plan_of_another_process_starts_it_on_one_of_its_sizes_alone(pes, runs):
    centre = Late(pes=4)
    centre.submit("anne sizes=1,2 walls=40:00,20:00")
    plan = Plan(signed(Start(1, 1, pes)), as_of=centre.site.n)
    centre.later_plans.plans.clear()
    centre.sim.feed([Decision(plan)])
    assert centre.state(1) == ("running" if runs else "queued")
    if runs:
        assert centre.request(1).spec.ask.wall == {1: 40, 2: 20}[len(pes)] * MINUTE


def test_it_is_ended_at_the_limit_of_its_size_and_charged_for_its_pes(centre):
    centre.sim.executor._lengths = lambda request: Run(wall=60 * MINUTE)
    (anne,) = centre.submit(SIZES)
    centre.later(minutes=5)
    assert centre.request(anne).run.rate == 4 * 1000
    centre.later(minutes=6)
    end = centre.end_of(anne)
    assert (end.end_reason, end.used.wall) == ("wall_limit", 10 * MINUTE)


def test_a_queue_takes_it_when_one_size_fits_and_refuses_it_when_none_does(centre):
    centre.qmgr("set per_request pe_limit=2 batch\nset per_request wall_limit=1200 batch")
    centre.submit(SIZES)
    assert sizes(centre) == [2]
    refusal = centre.refused(cm.Submit((item("anne sizes=1,4 walls=40:00,10:00", centre.sim.now),)))
    assert "wall time 2400 s is above the limit of 1200 s" in str(refusal)


def test_operators_give_it_one_number_of_pes_or_another_time(centre):
    centre.qmgr("stop queue batch")
    one, other = centre.submit(SIZES, SIZES)
    centre.qmgr(f"modify request {one} pe_limit=2")
    spec = centre.request(one).spec
    assert (spec.mold, spec.ask.pes, spec.ask.wall) == (None, 2, 20 * MINUTE)
    centre.qmgr(f"modify request {other} wall_limit=900")
    assert centre.request(other).spec.mold.walls == ()
    assert centre.request(other).spec.ask.wall == 15 * MINUTE


def test_one_number_of_pes_has_the_time_that_its_speedup_says_or_that_comes_with_it(centre):
    """A = 8 without variance: two hours on one PE, a quarter of that on four."""
    centre.qmgr("stop queue batch")
    lone, four, other = centre.submit(*["anne sizes=4,8 speedup=8:0 wall=2:00:00"] * 3)
    for seq, values in (
        (lone, {"ask/pes": 1}),
        (four, {"ask/pes": 4}),
        (other, {"ask/pes": 4, "ask/wall": 50 * MINUTE}),
    ):
        centre.ask(cm.ModifyRequest((str(seq),), values))
    asked = [centre.request(seq).spec.ask for seq in (lone, four, other)]
    assert [(each.pes, each.wall) for each in asked] == [
        (1, 120 * MINUTE),
        (4, 30 * MINUTE),
        (4, 50 * MINUTE),
    ]
    assert all(centre.request(seq).spec.mold is None for seq in (lone, four, other))


def test_another_course_of_a_night_takes_as_long_as_its_other_size(centre):
    (anne,) = centre.submit(SIZES)
    centre.later(hours=1)
    assert centre.end_of(anne).used.wall == 9 * MINUTE
    centre.submit("ben wall=2:00")  # the journal goes on so long
    centre.later(hours=1)
    _, would = course(centre, "set machine pes=2")
    start = next(each for each in would.made if isinstance(each.event, ev.Starting))
    end = next(each for each in would.made if isinstance(each.event, ev.Ended))
    assert len(start.event.pes) == 2
    assert end.event.used.wall == 18 * MINUTE, "twice as long on half the PEs, by her times"
    assert end.at - start.at == 18 * MINUTE
