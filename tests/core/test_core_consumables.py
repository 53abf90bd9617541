"""Consumables in a pass: units are given by name, held like PEs, and waited for."""

import pytest
from core.story import Story

from nqspy.core import consumables
from nqspy.model.events import Change, MachineFound
from nqspy.model.machine import Device


def make(house, name, **settings):
    """A consumable."""
    return house.change(Change("create", f"consumable/{name}", settings))


@pytest.fixture
def lab(house):
    """Eight PEs, four GPUs, a queue."""
    return make(house.machine(pes=8), "gpu", units=("0", "1", "2", "3")).queue("batch")


def units(house, seq):
    """Units of one that runs, by consumable."""
    return {name: list(each) for name, each in house.request(seq).units}


LAB = "machine 8; create consumable/gpu units=(0,1,2,3); queue batch"
STORIES = {
    "each has units of its own until its end": f"""{LAB}; run anne gpu=2, ben gpu=1; units anne gpu=0,1
        units ben gpu=2; end anne; run cleo gpu=2; units cleo gpu=0,1""",
    "more than there are": f"{LAB}; submit anne gpu=5; starts -; why anne above_units 5 gpu 4",
    "round robin goes on behind the last unit": """machine 8
        create consumable/gpu count=4 policy=round_robin; queue batch; run anne gpu=1, ben gpu=2
        end anne ben; run cleo gpu=2; units cleo gpu=3,0""",
    "more than a limit ever allows": f"""{LAB}; set queue/batch/consumable_limit (gpu=1); submit anne gpu=2
        starts -; why anne units_above_limit""",
    "two consumables together or none": f"""{LAB}; create consumable/matlab count=1
        submit anne gpu=1 matlab=1, ben gpu=1 matlab=1; starts anne; units anne gpu=0 matlab=0
        why ben few_units_free""",
    "one that lacks units is passed over and told which requests hold them": f"""{LAB}; run anne gpu=3, ben
        submit cleo gpu=2, dora gpu=1, emma; picks dora emma
        why cleo few_units_free 2 gpu 0 4 1.ymp,~4.ymp '' who=consumable~gpu""",
    "units that are offline are given to none, and their holder goes on": f"""{LAB}; run anne gpu=2
        set consumable/gpu/offline (1,2); submit ben gpu=1, cleo gpu=1; starts ben; units anne gpu=0,1
        units ben gpu=3; why cleo few_units_free 1 gpu 0 4 1.ymp,~2.ymp 1,~2; end anne; starts cleo
        units cleo gpu=0; submit dora gpu=3; starts -; why dora units_offline 3 gpu 4 2 1,~2""",
    "a suspended request keeps its units even if others have its PEs": f"""{LAB}; run anne gpu=3
        suspend anne swap; submit ben gpu=2; picks; why ben few_units_free 2 gpu 1 4 1.ymp ''""",
    "limits on units of a queue, a user and a group": f"""{LAB}; set queue/batch/consumable_limit (gpu=3)
        submit anne gpu=2, ben gpu=2; starts anne; why ben units_limited gpu 3 queue~batch 1 '' 2
        set queue/batch/consumable_limit (); set global/consumable_user_limit (gpu=2)
        submit anne gpu=1, cleo; starts ben cleo; why anne2 units_limited global~gpu~user 2 - 0 anne 1
        end ben; set global/consumable_user_limit (); set queue/batch/consumable_group_limit (gpu=2)
        starts -; why anne2 units_limited gpu~group 2 queue~batch 0 default 1; submit emma gpu=1 group=d1
        starts emma""",
    "units are free once the processes have ended": f"""{LAB}; run anne gpu=4; exiting anne
        units anne gpu=0,1,2,3; run ben gpu=4; units ben gpu=0,1,2,3; end anne; units ben gpu=0,1,2,3
        requeue ben; units ben; starts ben""",
} | {
    f"no operator gives a unit twice: {word}": f"""{LAB}; run anne gpu=4; submit ben gpu=1
        schedule ben {word}; starts -; why ben NO_UNITS"""
    for word in ("now", "first", "next")
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_units(house, title):
    Story(house).play(STORIES[title])


def test_the_nearest_units_are_those_of_the_pes_node(house):
    devices = tuple(
        Device("nvidia", str(n), (f"/dev/nvidia{n}",), cpus)
        for n, cpus in enumerate(((0, 1), (0, 1), (2, 3), (2, 3)))
    )
    house._event(MachineFound((0, 1, 2, 3), 0, "ymp", devices=devices))
    make(house, "gpu", units=("auto",), policy="nearest", env="CUDA_VISIBLE_DEVICES").queue("batch")
    far, near, both = house.run("anne pes=2", "ben pes=1 gpu=1", "cleo pes=1 gpu=2")
    assert house.request(near).pes == (2,)
    assert units(house, near) == {"gpu": ["2"]}
    assert units(house, both) == {"gpu": ["0", "3"]}
    assert far in house.site.started


def test_auto_units_are_those_of_one_vendor(house):
    devices = (Device("nvidia", "0"), Device("nvidia", "1"), Device("amd", "0"))
    house._event(MachineFound((0, 1), 0, "ymp", devices=devices))
    make(house, "gpu", units=("auto",), env="ROCR_VISIBLE_DEVICES")
    make(house, "card", units=("auto",))
    assert [row["units"] for row in consumables.rows(house.site)] == [["0"], []]
    assert "env=" in consumables.text(house.site, ("card",))
    assert "found AMD 0" in consumables.text(house.site, ("gpu",))


def test_exits_see_what_is_asked_for(lab):
    seen = []
    lab.exits(jobselect=lambda request, view: seen.append(request.consumables))
    lab.submit("anne gpu=2 matlab=1", "ben")
    make(lab, "matlab", count=1)
    lab.run_pass()
    assert seen == [{"gpu": 2, "matlab": 1}, {}]


def test_the_order_of_a_queue_is_told_however_few_units_there_are(lab):
    a, b = lab.submit("anne gpu=4", "ben gpu=4")
    lab.exits(elected=lambda request, view: [])
    order = lab.standing()
    assert [order.of(lab.request(seq)).position for seq in (a, b)] == [1, 2]
