"""Moldable requests in the engine, and effects of a request's PEs, whoever changes them."""

from typing import Any

import pytest
from engine.harness import ANNE, PLAIN, ROOT, Centre, caller_of, item, seq_of, signed
from engine.story import play
from engine.test_engine_late_plans import Late
from engine.test_engine_properties import what_if
from engine.test_engine_submit import Door
from msgspec.structs import replace

from nqspy.engine.inputs import Decision
from nqspy.engine.virtual.attempts import Run
from nqspy.executors import variables
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.actions import Plan, Start
from nqspy.model.requests import Request
from nqspy.model.shapes import Layout
from nqspy.ports import SubmitAnswer
from nqspy.report.pbs_attributes import resource_list

MINUTE = 60_000
SIZES = "anne sizes=1,2,4 walls=40:00,20:00,10:00"


def by_size(request) -> Run:
    """Run a request for almost its time limit, or for an hour if it is named long."""
    return Run(wall=60 * MINUTE if request.name == "long" else request.spec.ask.wall - MINUTE)


TWICE = "sizes=4,8 speedup=8:0 wall=2:00:00"
"""Speedup with A = 8 and no variance: two hours on one PE, a quarter of that on four."""
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
    centre.submit("ben wall=2:00")  # so the journal reaches this far
    centre.later(hours=1)
    _, would = what_if(centre, "set machine pes=2")
    start = next(each for each in would.made if isinstance(each.event, ev.Starting))
    end = next(each for each in would.made if isinstance(each.event, ev.Ended))
    assert len(start.event.pes) == 2
    assert end.event.used.wall == 18 * MINUTE, "twice as long on half the PEs, by her times"
    assert end.at - start.at == 18 * MINUTE


# ---------------------------------------------------------------- what follows from the PEs
SELECT = Layout("select=1:ncpus=4:mpiprocs=4", 1, 4, 4)
NODES = Layout("nodes=1:ppn=4", 1, 4, 4)
ONE_TASK = Layout(ranks=1, cpus=4, threads=4)
FOUR_TASKS = Layout(ranks=4, cpus=4)
LAYOUTS = {
    "select": ("nqs", SELECT), "nodes": ("nqs", NODES), "ncpus": ("nqs", None),
    "slurm -c 4": ("slurm", ONE_TASK), "slurm -n 4": ("slurm", FOUR_TASKS),
}  # fmt: skip


def _handed_in(centre: Centre, dialect: Any, layout: Layout | None, words: str = "anne pes=4 held") -> int:
    given = item(words, centre.sim.now)
    given = replace(given, spec=replace(given.spec, dialect=dialect, layout=layout))
    return seq_of(centre.ask(cm.Submit((given,)), caller_of("anne"))["ids"][0])


def _told(request: Request, pes: int, centre: Centre) -> dict[str, str]:
    start = Start(request.seq, 1, tuple(range(pes)))
    found = variables.defaults(request, start) | variables.of_dialect(request, start, centre.site)
    return found | {"hosts": str(variables.hosts(request, start, centre.site)[1])}


@pytest.mark.parametrize("change", ["modify", {"ask/pes": 2}, {"ask/pes": 2, "layout": None}, None])
@pytest.mark.parametrize("array", ["", " array=1-3"])
@pytest.mark.parametrize(("dialect", "layout"), LAYOUTS.values(), ids=LAYOUTS)
def test_threads_ranks_and_selection_follow_the_pes(
    change: Any, array: str, dialect: str, layout: Layout | None
) -> None:
    door = Door(lambda r: SubmitAnswer(changes={"pes": 2}))
    centre = Centre(PLAIN, pes=8, **({} if change else {"exits": door}))
    seq = _handed_in(centre, dialect, layout, f"anne pes=4 held{array}")
    if change == "modify":
        centre.qmgr(f"modify request {centre.id(seq).partition('.')[0]} pe_limit=2")
    elif change is not None:
        centre.ask(cm.ModifyRequest((centre.id(seq),), change), ANNE)
    request = centre.request(seq)
    variables, listed = _told(request, 2, centre), resource_list(request.spec)
    assert (variables["NCPUS"], listed["ncpus"], listed["select"]) == ("2", 2, "1:ncpus=2")
    assert "nodes" not in listed
    tasks = variables.get("SLURM_NTASKS", "2")
    assert (variables["OMP_NUM_THREADS"], variables["hosts"]) == ("2", tasks)
    if layout == ONE_TASK:
        assert (tasks, variables["SLURM_CPUS_PER_TASK"]) == ("1", "2")
    if layout == FOUR_TASKS:
        assert tasks == "2"
    centre.is_sound()


def test_another_layout_is_taken_as_it_is_and_other_changes_leave_it() -> None:
    centre = Centre(PLAIN, pes=8)
    seq = _handed_in(centre, "nqs", SELECT)
    centre.qmgr(f"modify request {seq} wall_limit=900")
    centre.qmgr(f"modify request {seq} pe_limit=4")
    assert centre.request(seq).spec.layout == SELECT
    layout = {"text": "select=2:ncpus=1", "chunks": 2, "ranks": 2, "cpus": 1}
    centre.ask(cm.ModifyRequest((centre.id(seq),), {"ask/pes": 2, "layout": layout}), ROOT)
    assert centre.request(seq).spec.layout == Layout(**layout)  # type: ignore[arg-type]


def test_a_layout_for_one_number_of_pes_is_none_for_several() -> None:
    centre = Centre(PLAIN, pes=8)
    for layout in (SELECT, ONE_TASK):
        seq = _handed_in(centre, "slurm", layout)
        centre.ask(cm.ModifyRequest((centre.id(seq),), {"mold": {"sizes": [2, 8]}}), ANNE)
        assert centre.request(seq).spec.layout is None
        centre.qmgr(f"modify request {seq} pe_limit=3")
        assert _told(centre.request(seq), 3, centre)["NCPUS"] == "3"
