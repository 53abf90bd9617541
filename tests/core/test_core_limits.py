"""Limits of queues, complexes and the whole site; PEs; and what is said of those they keep back."""

from itertools import chain

import pytest
from core.harness import spec_of
from core.story import Story
from msgspec.structs import replace

from nqspy.core.asked import violation
from nqspy.core.gate.limits import LIMITS
from nqspy.core.passes import explain
from nqspy.model.events import Submitted
from nqspy.model.queues import RunningLimits
from nqspy.model.tree import declared


def test_each_setting_of_a_limit_has_its_rule():
    assert {limit.setting for limit in chain(*LIMITS)} == set(declared(RunningLimits))


def reached(kind, most, name):
    """A limit of queue night that is reached."""
    return {"code": "LIMIT", "who": "queue night", "kind": "limit_reached",
            "values": (kind, most, "queue night", name)}  # fmt: skip


USER = reached("user", 1, "anne")
MW = 8 << 20
LIMITED = {
    "the user limit lets others pass": ({"user_limit": 1}, "anne, anne, ben", [1, 3], {2: USER}),
    "all that it holds have it as their reason": (
        {"user_limit": 1}, "anne, anne, anne", [1], {2: USER, 3: USER}
    ),
    "the group limit lets other groups pass": (
        {"group_limit": 1}, "anne group=d1, ben group=d1, cleo group=d2", [1, 3],
        {2: reached("group", 1, "d1")},
    ),
    "a limit of nothing": (
        {"user_limit": 0}, "anne", [], {1: {"kind": "limit_shut", "values": ("user", 0, "queue night")}}
    ),
    "a run limit of nothing": (
        {"run_limit": 0}, "anne", [], {1: {"kind": "limit_shut", "values": ("run", 0, "queue night")}}
    ),
    "memory counts as requested, and small requests pass large ones": (
        {"memory_limit": "115mw", "max_memory": "100mw"}, "anne mem=90mw, ben mem=90mw, cleo mem=4mw", [1, 3],
        {2: {"code": "LIMIT", "kind": "memory_short",
             "values": ("memory", 115 * MW, "queue night", 21 * MW, 90 * MW)}},
    ),
    "the PE limit": (
        {"pe_limit": 4}, "anne pes=3, ben pes=2, cleo", [1, 3],
        {2: {"kind": "pes_short", "values": ("PE", 4, "queue night", 0, 2)}},
    ),
    "no end helps one that asks for more than a limit": (
        {"pe_limit": 4, "memory_limit": "10mw", "max_memory": "100mw"},
        "anne pes=2 mem=1mw, ben pes=6 mem=1mw, cleo mem=20mw", [1],
        {2: {"kind": "too_wide", "values": ("PE", 4, "queue night", 6)},
         3: {"kind": "too_large", "values": ("memory", 10 * MW, "queue night", 20 * MW)}},
    ),
    "what does not fit is passed over": (
        {}, "anne pes=7, ben pes=2, ben pes=8, cleo", [1, 4],
        {2: {"kind": "no_pe_free", "values": (2, 8, None, None)}, 3: {"kind": "no_pe_free"}},
    ),
    "a want of PEs says what is free and how many wait ahead": (
        {}, "anne pes=3, ben pes=8, cleo pes=6", [1],
        {2: {"kind": "few_pes_free", "values": (8, 5, 8, None, None, None)},
         3: {"code": "NO_PES", "who": "machine", "values": (6, 5, 8, None, None, None), "ahead": 1}},
    ),
    "more PEs than the machine has, which says nothing about those behind": (
        {"user_limit": 1}, "ben pes=9, anne, anne", [2],
        {1: {"code": "NEVER", "kind": "above_machine", "values": (9, 8)}, 3: USER},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LIMITED)
def test_limits_and_pes_of_a_queue(house, case):
    limits, lines, starts, reasons = LIMITED[case]
    house.machine(pes=8).queue("night", **limits).submit(*lines.split(", "))
    told = house.go()
    assert told.starts == starts
    assert told.short_of_pes is any(house.why(seq).code == "NO_PES" for seq in reasons)
    for seq, reason in reasons.items():
        assert house.why(seq).matches(**reason)


STORIES = {
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
    f"complexes and the whole site have the same limits: {limit}": f"""machine 8; queue a; queue b
        create complex/both queues=(a,b) {limit}=1; submit anne mem=1b queue=a, anne mem=1b queue=b
        picks anne; why anne2 LIMIT who=complex~both; set complex/both/{limit} -; limit {limit}=1; picks anne
        why anne2 LIMIT who=global; limit {limit}=-; picks anne anne2"""
    for limit in ("run_limit", "user_limit", "group_limit", "memory_limit", "pe_limit")
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_limits(house, title):
    Story(house).play(STORIES[title])


def test_the_next_date_is_when_to_look_again(house):
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
        ({"cpu": "700"}, "normal: CPU time 700 s is above the limit of 600 s"),
        ({"cpu": "unlimited"}, "normal: CPU time unlimited is above the limit of 600 s"),
        ({"mem": "40mw"}, "normal: memory 320mb is above the limit of 256mb"),
        ({"pes": "5"}, "normal: 5 PEs are above the limit of 4"),
        ({"wall": "2:00:00"}, "normal: wall time 7200 s is above the limit of 3600 s"),
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
    assert "more than the machine's 8" in (violation(house.site, spec_of("anne", pes="9"), queue) or "")
