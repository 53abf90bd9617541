"""Moldable requests in the engine: late plans, limits at the desk, alterations, other courses of a night."""

import pytest
from engine.harness import Centre, signed
from engine.story import play
from engine.test_engine_late_plans import Late
from engine.test_engine_replay import course

from nqspy.engine.inputs import Decision
from nqspy.engine.virtual.attempts import Run
from nqspy.model import events as ev
from nqspy.model.actions import Plan, Start

MINUTE = 60_000
SIZES = "anne sizes=1,2,4 walls=40:00,20:00,10:00"


def by_size(request) -> Run:
    """It takes nearly the time that is its limit; one named long takes an hour."""
    return Run(wall=60 * MINUTE if request.name == "long" else request.spec.ask.wall - MINUTE)


TWICE = "sizes=4,8 speedup=8:0 wall=2:00:00"
"""A = 8 without variance: two hours on one PE, a quarter of that on four."""
STORIES = {
    "it is ended at the limit of its size and charged for its PEs": f"""submit {SIZES} name=long; later 5m
        has 1 run.rate=4000; later 6m; end 1 wall_limit; ran 1 600""",
    "a queue takes it when one size fits": f"""qmgr set per_request pe_limit=2 batch
        qmgr set per_request wall_limit=1200 batch; submit {SIZES}; pes 1 0-1
        refuse anne sizes=1,4 walls=40:00,10:00 -> above_limit""",
    "operators give it one number of PEs or another time": f"""qmgr stop queue batch; submit {SIZES}, {SIZES}
        qmgr modify request 1 pe_limit=2; has 1 spec.mold=null spec.ask.pes=2 spec.ask.wall=1200000
        qmgr modify request 2 wall_limit=900; has 2 spec.mold.walls=[] spec.ask.wall=900000""",
    "one number of PEs has the time of its speedup or that comes with it": f"""qmgr stop queue batch
        submit anne {TWICE}, anne {TWICE}, anne {TWICE}; modify 1 ask.pes=1; modify 2 ask.pes=4
        modify 3 ask.pes=4 ask.wall=3000000; has 1 spec.mold=null spec.ask.pes=1 spec.ask.wall=7200000
        has 2 spec.mold=null spec.ask.pes=4 spec.ask.wall=1800000
        has 3 spec.mold=null spec.ask.pes=4 spec.ask.wall=3000000""",
}


@pytest.mark.parametrize("title", STORIES)
def test_stories(title):
    play(STORIES[title], pes=4, lengths=by_size)


@pytest.fixture
def centre() -> Centre:
    return Centre(pes=4, lengths=by_size)


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
