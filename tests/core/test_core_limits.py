"""Limits of queues, complexes and the site, caps of groups, and units of consumables; with the reasons of the
requests that they block."""

from itertools import chain
from math import log

import pytest
from core.harness import spec_of
from core.story import Story
from msgspec.structs import replace

from nqspy.core import consumables
from nqspy.core.asked import violation
from nqspy.core.draft import Draft
from nqspy.core.gate.limits import LIMITS
from nqspy.core.passes import explain
from nqspy.core.startable import changes
from nqspy.model.events import Change, MachineFound, Submitted
from nqspy.model.ids import HOUR
from nqspy.model.machine import Device
from nqspy.model.queues import RunningLimits
from nqspy.model.reasons import ReasonCode
from nqspy.model.tree import declared
from nqspy.shares import balance_of


def test_each_setting_of_a_limit_has_its_rule():
    assert {limit.setting for limit in chain(*LIMITS)} == set(declared(RunningLimits))


MW = 8 << 20
M8 = "machine 8; queue night"
USER = "limit_reached user 1 queue~night anne"
STORIES = {
    "the user limit lets others pass": f"""{M8} user_limit=1; submit anne, anne, ben; starts anne ben
        why anne2 {USER} who=queue~night; short no""",
    "all that it holds have it as their reason": f"""{M8} user_limit=1; submit anne, anne, anne; starts anne
        why anne2 {USER}; why anne3 {USER}""",
    "the group limit lets other groups pass": f"""{M8} group_limit=1
        submit anne group=d1, ben group=d1, cleo group=d2; starts anne cleo
        why ben limit_reached group 1 queue~night d1""",
    "memory counts as requested, and small requests pass large ones": f"""{M8} memory_limit=115mw
        submit anne mem=90mw, ben mem=90mw, cleo mem=4mw; starts anne cleo
        why ben memory_short memory {115 * MW} queue~night {21 * MW} {90 * MW}""",
    "the PE limit": f"""{M8} pe_limit=4; submit anne pes=3, ben pes=2, cleo; starts anne cleo
        why ben pes_short PE 4 queue~night 0 2""",
    "no end helps one that asks for more than a limit": f"""{M8} pe_limit=4 memory_limit=10mw
        submit anne pes=2 mem=1mw, ben pes=6 mem=1mw, cleo mem=20mw; starts anne
        why ben too_wide PE 4 queue~night 6; why cleo too_large memory {10 * MW} queue~night {20 * MW}""",
    "what does not fit is passed over": f"""{M8}; submit anne pes=7, ben pes=2, ben pes=8, cleo
        starts anne cleo; why ben no_pe_free 2 8 - -; why ben2 no_pe_free; short yes""",
    "a want of PEs says what is free and how many wait ahead": f"""{M8}
        submit anne pes=3, ben pes=8, cleo pes=6; starts anne; why ben few_pes_free 8 5 8 - - -
        why cleo few_pes_free 6 5 8 - - - who=machine ahead=1""",
    "more PEs than the machine has, which says nothing about those behind": f"""{M8} user_limit=1
        submit ben pes=9, anne, anne; starts anne; why ben above_machine 9 8; why anne2 {USER}; short no""",
    "the run limit": """machine 8; queue night run_limit=2; submit anne, ben, cleo, dora; starts anne ben
        why dora limit_reached run 2 queue~night '' who=queue~night; short no; end anne; starts cleo""",
    "a request without a memory limit counts as its queue's limit": """machine 8
        queue night memory_limit=115mw max_memory=100mw; submit anne, ben; picks anne
        set queue/night/per_request/memory_limit -; picks anne ben""",
    "PEs are the lowest free numbers": """machine 6; queue mpp; run anne pes=2, ben, cleo pes=3; pes anne 0-1
        pes ben 2; pes cleo 3-5; end anne cleo; run dora pes=3, emil; pes dora 0-1,3; pes emil 4""",
    "a full machine": """machine 1; queue night user_limit=1; run anne, anne, ben; starts -; short yes
        why ben no_pe_free 1 1 - -; why anne2 LIMIT who=queue~night; why anne -""",
    "one that an operator suspended keeps its PEs and counts": """machine 2; queue night run_limit=1
        run anne, ben; suspend anne op; starts -; why ben LIMIT""",
    "one that is held": "queue night; submit anne; hold anne; starts -; why anne HELD who=owner",
    "one that asks for no memory starts while a limit is exceeded": """machine 3
        queue night memory_limit=100mb; run anne mem=90mb; set queue/night/memory_limit 1048576
        submit ben, cleo mem=1kb; starts ben; why cleo LIMIT""",
} | {
    f"a limit of nothing: {word}": f"""{M8} {word}_limit=0; submit anne; starts -
        why anne limit_shut {word} 0 queue~night"""
    for word in ("user", "run")
} | {
    f"complexes and the whole site have the same limits: {limit}": f"""machine 8; queue a; queue b
        create complex/both queues=(a,b) {limit}=1; submit anne mem=1b queue=a, anne mem=1b queue=b
        picks anne; why anne2 LIMIT who=complex~both; set complex/both/{limit} -; limit {limit}=1; picks anne
        why anne2 LIMIT who=global; limit {limit}=-; picks anne anne2"""
    for limit in ("run_limit", "user_limit", "group_limit", "memory_limit", "pe_limit")
}  # fmt: skip
HALF = 24 * HOUR


def capped(house, limit=25, pes=8):
    """Set a group cap of d3 (per cent of eight PEs, held and used); d1 has no cap."""
    house.machine(pes=pes).queue("night").group("d1", 1).group("d3", 1)
    return house.set("group/d3/limit", limit)


CAPPED = "machine 8; queue night; create group/d1 share=1; create group/d3 share=1 limit="
STORIES |= {
    "a group never holds more than its part": f"""{CAPPED}25
        submit anne group=d3, anne group=d3, anne group=d3, ben group=d1, ben group=d1, ben group=d1
        starts anne anne2 ben ben2 ben3; why anne3 cap_short 25 2 8 2 1 1; end anne; starts anne3""",
    "a part of a PE counts as one, and 0 lets nothing start": f"""{CAPPED}1
        submit anne group=d3, anne group=d3; starts anne; set group/d3/limit 0; end anne; starts -
        set group/d3/limit -; starts anne2""",
    "it holds for all groups below together": """machine 8; queue night; create group/ymp share=1 limit=50
        create group/d1 share=1 parent=ymp; create group/d2 share=1 parent=ymp limit=12.5
        submit anne group=d1 pes=3, ben group=d2; starts anne ben
        submit anne group=d1, ben group=d2; starts -
        why anne2 cap_short 50 4 8 4 1 1; why ben2 cap_short 12.5 1 8 1 1 1""",
    "smaller requests pass one above it": f"""{CAPPED}25; submit anne group=d3 pes=3, anne group=d3
        starts anne2; why anne cap_never 25 2 8 1 3""",
    "those that it holds come last": f"{CAPPED}0; submit anne group=d3, ben group=d1; line night ben anne",
    "idle departments leave their part to their siblings at two levels": """machine 1; queue night
        create group/ymp share=60; create group/t3d share=30; create group/default share=10
        create group/d1 share=3 parent=ymp; create group/d2 share=1 parent=ymp
        submit anne group=d2, ben group=t3d; entitled d2=0.6667 t3d=0.3333 ymp=0.6667
        submit cleo group=d1, dora group=default; entitled d1=0.45 d2=0.15 t3d=0.3""",
    "running work counts and held work does not": """machine 1; queue night; create group/d1 share=1
        create group/d2 share=1; create group/default share=0; run anne group=d1; submit ben group=d2
        hold ben; entitled d1=1; release ben; entitled d1=0.5; end anne; entitled d2=1""",
    "force passes a cap as it passes a run limit": f"""{CAPPED}0
        submit anne group=d3, ben group=d3, cleo group=d3; schedule cleo now; asks forcing ben=force
        starts cleo ben; why anne cap_never who=group~d3""",
    "it spans domains": """machine 4; create domain/wide pes=(2-3); queue day domain=wide; queue night
        create group/d1 share=3 limit=50; submit anne group=d1 queue=day, anne group=d1 queue=day
        submit anne group=d1; starts anne anne2; why anne3 cap_short 50 2 4 2 1 1""",
    "a whole queue that it holds": f"""{CAPPED}0; submit anne group=d3, anne group=d3, anne group=d3
        starts -; why anne cap_never; why anne3 cap_never""",
}  # fmt: skip


def two(limits: str = "") -> str:
    """Set up two departments, and these limits of queue ``aux``, which d6 uses."""
    return f"""machine 8; queue night; queue aux {limits}; create group/d1 share=1; create group/d6 share=1
        submit anne group=d1 queue=night"""


STORIES |= {
    "more than a cap leaves": f"""{two()}; set group/d6/limit 20; submit dora group=d6 pes=3; works d1
        picks anne; why dora cap_never 20 2 8 0 3 who=group~d6; submit emil group=d6 pes=2; works d1 d6""",
    "a cap above that is too narrow is named before one that is full": f"""{two()}
        create group/d7 share=1 parent=d6 limit=50; set group/d6/limit 25; set queue/aux/memory_limit 1
        submit dora group=d7 pes=3 mem=1mw; works d1; picks anne; why dora cap_never who=group~d6""",
    "one that waits for a run limit that others reach is work": f"""{two("run_limit=1")}
        run anne group=d1; submit dora group=d6; works d6""",
    "what a draining shift keeps back, though its queue was narrowed since": f"""{two("max_wall=2:00:00")}
        submit dora group=d6 wall=2:00:00; set queue/aux/per_request/wall_limit 3600000; stops aux 90 drain
        picks anne; why dora SHIFT; works d1; submit dora group=d6; works d1 d6""",
} | {
    f"a limit of 0 lets nothing run: {path}/{limit}": f"""{two()}; create complex/both queues=(aux)
        submit dora group=d6; set {path}/{limit} 0; works {left}; set {path}/{limit} 1; works d1 d6"""
    for path, left in (("queue/aux", "d1"), ("complex/both", "d1"), ("global", "-"))
    for limit in ("run_limit", "user_limit", "group_limit")
} | {
    f"more than a limit: {limit}": f"""{two(limit)}; submit dora group=d6 {asked}; works d1
        submit dora group=d6 mem=1mw; works d1 d6"""
    for limit, asked in (("pe_limit=2", "pes=3"), ("memory_limit=1mw", "mem=2mw"))
}  # fmt: skip


def make(house, name, **settings):
    """Create a consumable."""
    return house.change(Change("create", f"consumable/{name}", settings))


@pytest.fixture
def lab(house):
    """Return a site with eight PEs, four GPUs and a queue."""
    return make(house.machine(pes=8), "gpu", units=("0", "1", "2", "3")).queue("batch")


def units(house, seq):
    """Return the units of a running request by consumable."""
    return {name: list(each) for name, each in house.request(seq).units}


LAB = "machine 8; create consumable/gpu units=(0,1,2,3); queue batch"
STORIES |= {
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
        why cleo few_units_free 2 gpu 0 4 1.ymp,~4.ymp '' '' who=consumable~gpu""",
    "units that are offline are given to none, and their holder goes on": f"""{LAB}; run anne gpu=2
        set consumable/gpu/offline (1,2); submit ben gpu=1, cleo gpu=1; starts ben; units anne gpu=0,1
        units ben gpu=3; why cleo few_units_free 1 gpu 0 4 1.ymp,~2.ymp '' 1,~2; end anne; starts cleo
        units cleo gpu=0; submit dora gpu=3; starts -; why dora units_offline 3 gpu 2 4 1,~2""",
    "a suspended request keeps its units even if others have its PEs": f"""{LAB}; run anne gpu=3
        suspend anne swap; submit ben gpu=2; picks; why ben few_units_free 2 gpu 1 4 1.ymp '' ''""",
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
def test_limits(house, title):
    Story(house).play(STORIES[title])


def test_the_next_pass_is_at_the_next_date(house):
    house.queue("night")
    later = house.now + 5_000
    spec = replace(spec_of("anne"), eligible=later, queue="night")
    house._event(Submitted(1, spec, "night", "waiting"))
    plan = house.run_pass().plan
    assert (plan.starts, plan.wake_at) == ([], later)
    assert explain(house.site, [1], plan.reasons)[1].matches(code="DATE", until=later)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"cpu": "700"}, "normal: CPU time 11 min 40 s is above the limit of 10 min"),
        ({"cpu": "unlimited"}, "normal: CPU time unlimited is above the limit of 10 min"),
        ({"mem": "40mw"}, "normal: memory 320mb is above the limit of 256mb"),
        ({"pes": "5"}, "normal: 5 PEs are above the limit of 4"),
        ({"wall": "2:00:00"}, "normal: wall time 2 h is above the limit of 1 h"),
        ({"cpu": "600", "mem": "32mw", "pes": "4"}, None),
        ({}, None),
    ],
)
def test_what_a_request_may_ask_for(house, asked, text):
    house.machine(pes=8).queue("normal", max_cpu="10:00", max_memory="32mw", max_pe=4, max_wall="1:00:00")
    queue = house.site.settings.queues["normal"]
    assert violation(house.site, spec_of("anne", **asked), queue) == text


def test_a_queue_without_limits_takes_anything_that_the_machine_has(house):
    queue = house.machine(pes=8).queue("free").site.settings.queues["free"]
    assert violation(house.site, spec_of("anne", cpu="unlimited", mem="9tb"), queue) is None
    assert "9 PEs" in (violation(house.site, spec_of("anne", pes="9"), queue) or "")


def test_a_cap_of_0_over_what_runs_leaves_the_accounts_whole(house):
    capped(house)
    running = house.run("anne group=d3", "ben group=d1")
    house.set("group/d3/limit", 0).later(minutes=5).submit("cleo group=d1")
    assert house.go().starts
    assert balance_of(house.site).groups.targets(balance_of(house.site).terms) == {"d1": 1, "d3": 0}
    house.later(minutes=5).end(running[0], wall="10:00")


def test_a_group_that_used_its_part_is_not_started_further_until_enough_is_forgotten(house):
    capped(house)
    allowed = 0.25 * 8 * HALF / log(2)
    house.end(house.run("anne group=d3")[0], cpu=str(round(2 * allowed / 1000)))
    waits, other = house.submit("anne group=d3", "ben group=d1")
    result = house.go()
    assert result.starts == [other]
    reason = result.reason(waits)
    assert reason.matches(code=ReasonCode.LIMIT, who="group d3")
    # 25 % of 8 PEs and 24 h: 2 x 24 h / ln 2 = 69:14:58; it has used twice that.
    assert (reason.kind, reason.values) == ("cap_decays", (25, 249_298_000, "CPU time", 498_595_000))
    assert reason.until == result.plan.wake_at == pytest.approx(house.now + HALF, abs=60_000)
    house.later(result.plan.wake_at - house.now - 60_000)
    assert house.run_pass().starts == []
    house.later(61_000)
    assert house.go().starts == [waits]


def test_what_runs_and_what_this_pass_starts_counts_as_used(house):
    capped(house, limit=50)
    half = round(0.5 * 8 * HALF / log(2) / 1000)
    one, two, three = house.submit(*[f"anne group=d3 cpu={half // 2 + 1}"] * 3)
    result = house.go()
    assert result.starts == [one, two]
    assert result.reason(three).matches(kind="cap_runs", who="group d3")
    assert result.plan.wake_at is None, "only the end of what runs can help"
    house.end(one, cpu="1")
    assert house.go().starts == [three]


def test_a_pass_reports_once_an_owner_that_waits_and_can_start_nothing(house):
    Story(house).play(f"{two('memory_limit=1')}; submit dora group=d6 mem=1mw")
    house.tell_startable()
    assert dict(balance_of(house.site).startable()) == {"d1:anne": 1, "d6:dora": 0}
    assert not changes(Draft(house.site, house.now, house.door, {}))
    assert "g:d6" not in house.site.accounts, "nobody is noted for it"


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


def test_the_order_of_a_queue_is_known_however_few_units_there_are(lab):
    a, b = lab.submit("anne gpu=4", "ben gpu=4")
    lab.exits(elected=lambda request, view: [])
    order = lab.standing()
    assert [order.of(lab.request(seq)).position for seq in (a, b)] == [1, 2]
