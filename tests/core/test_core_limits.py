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
