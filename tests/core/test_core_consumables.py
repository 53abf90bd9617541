"""Consumables in a pass: units are given by name, held like PEs, and waited for."""

import pytest
from core.story import Story

from nqspy.core import consumables
from nqspy.model.events import Change, Exiting, MachineFound, Requeued, Suspended
from nqspy.model.machine import Device
from nqspy.model.reasons import ReasonCode


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
} | {
    f"no operator gives a unit twice: {word}": f"""{LAB}; run anne gpu=4; submit ben gpu=1
        schedule ben {word}; starts -; why ben NO_UNITS"""
    for word in ("now", "first", "next")
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_units(house, title):
    Story(house).play(STORIES[title])


def test_one_that_lacks_units_is_passed_over_and_told_who_holds_them(lab):
    a, b = lab.run("anne gpu=3", "ben")
    waits, fits, other = lab.submit("cleo gpu=2", "dora gpu=1", "emma")
    told = lab.run_pass()
    assert told.starts == [fits, other]
    reason = told.reason(waits)
    assert (reason.code, reason.who) == (ReasonCode.NO_UNITS, "consumable gpu")
    assert reason.text == f"it asks for 2 gpu, 0 of 4 are free; held by {a}.ymp, {fits}.ymp"
    assert b in lab.site.started


def test_units_that_are_offline_are_given_to_nobody_and_their_holder_goes_on(lab):
    (a,) = lab.run("anne gpu=2")
    b, c = lab.set("consumable/gpu/offline", ("1", "2")).submit("ben gpu=1", "cleo gpu=1")
    told = lab.go()
    assert units(lab, a) == {"gpu": ["0", "1"]}
    assert units(lab, b) == {"gpu": ["3"]}
    assert (
        told.reason(c).text == f"it asks for 1 gpu, 0 of 4 are free; held by {a}.ymp, {b}.ymp; offline: 1, 2"
    )
    lab.end(a).go()
    assert units(lab, c) == {"gpu": ["0"]}
    (wide,) = lab.submit("dora gpu=3")
    assert lab.run_pass().reason(wide).matches(kind="units_offline", values=(3, "gpu", 4, 2, "1, 2"))


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
    assert "env= must name the vendor" in consumables.text(house.site, ("card",))
    assert "found AMD 0" in consumables.text(house.site, ("gpu",))


def test_a_suspended_request_keeps_its_units_even_where_others_have_its_pes(lab):
    (a,) = lab.run("anne gpu=3")
    lab._event(Suspended(a, 1, "swap", True, "memory is short"))
    (b,) = lab.submit("ben gpu=2")
    told = lab.run_pass()
    assert lab.request(a).pes_released
    assert told.starts == []
    assert f"held by {a}.ymp" in told.reason(b).text


def test_units_are_free_once_the_processes_have_ended_and_told_of_still(lab):
    (a,) = lab.run("anne gpu=4")
    lab._event(Exiting(a, 1))
    assert units(lab, a) == {"gpu": ["0", "1", "2", "3"]}
    (b,) = lab.run("ben gpu=4")
    assert lab.site.units["gpu"] == dict.fromkeys("0123", b)
    lab.end(a)
    assert lab.site.units["gpu"] == dict.fromkeys("0123", b)
    lab._event(Requeued(b, 1, "rerun"))
    assert lab.site.units == {}
    assert lab.request(b).units == ()


def test_limits_on_units_of_a_queue_a_user_and_a_group(lab):
    a, b = lab.set("queue/batch/consumable_limit", ("gpu=3",)).submit("anne gpu=2", "ben gpu=2")
    told = lab.go()
    assert a in lab.site.started
    assert told.reason(b).matches(kind="units_limited", values=("gpu", 3, "queue batch", 1, "", 2))
    lab.set("queue/batch/consumable_limit", ()).set("global/consumable_user_limit", ("gpu=2",))
    c, d = lab.submit("anne gpu=1", "cleo")
    told = lab.go()
    assert {b, d} <= set(lab.site.started)
    assert told.reason(c).matches(kind="units_limited", values=("global gpu user", 2, None, 0, "anne", 1))
    lab.end(b).set("global/consumable_user_limit", ())
    told = lab.set("queue/batch/consumable_group_limit", ("gpu=2",)).go()
    assert told.reason(c).matches(
        kind="units_limited", values=("gpu group", 2, "queue batch", 0, "default", 1)
    )
    (e,) = lab.run("emma gpu=1 group=d1")
    assert e in lab.site.started


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
