"""Whatever follows from the PEs of a request changes with them, whoever changes them."""

from typing import Any

import pytest
from engine.harness import ANNE, PLAIN, ROOT, Centre, caller_of, item, seq_of
from engine.test_engine_submit import Door
from msgspec.structs import replace

from nqspy.executors import variables
from nqspy.model import commands as cm
from nqspy.model.actions import Start
from nqspy.model.requests import Request
from nqspy.model.shapes import Layout
from nqspy.ports import SubmitAnswer
from nqspy.report.pbs_attributes import resource_list

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


def _by_modify(centre: Centre, seq: int) -> None:
    centre.qmgr(f"modify request {centre.id(seq).partition('.')[0]} pe_limit=2")


def _by_owner(centre: Centre, seq: int) -> None:
    centre.ask(cm.ModifyRequest((centre.id(seq),), {"ask/pes": 2}), ANNE)


def _by_qalter(centre: Centre, seq: int) -> None:
    centre.ask(cm.ModifyRequest((centre.id(seq),), {"ask/pes": 2, "layout": None}), ANNE)


@pytest.mark.parametrize("change", [_by_modify, _by_owner, _by_qalter, None])
@pytest.mark.parametrize("array", ["", " array=1-3"])
@pytest.mark.parametrize(("dialect", "layout"), LAYOUTS.values(), ids=LAYOUTS)
def test_threads_ranks_and_selection_follow_the_pes(
    change: Any, array: str, dialect: str, layout: Layout | None
) -> None:
    door = Door(lambda r: SubmitAnswer(changes={"pes": 2}))
    centre = Centre(PLAIN, pes=8, **({} if change else {"exits": door}))
    seq = _handed_in(centre, dialect, layout, f"anne pes=4 held{array}")
    if change is not None:
        change(centre, seq)
    request = centre.request(seq)
    told, listed = _told(request, 2, centre), resource_list(request.spec)
    assert (told["NCPUS"], listed["ncpus"], listed["select"]) == ("2", 2, "1:ncpus=2")
    assert "nodes" not in listed
    tasks = told.get("SLURM_NTASKS", "2")
    assert (told["OMP_NUM_THREADS"], told["hosts"]) == ("2", tasks)
    if layout == ONE_TASK:
        assert (tasks, told["SLURM_CPUS_PER_TASK"]) == ("1", "2")
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
