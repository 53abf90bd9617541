"""Limits of queues, complexes and the whole site; PEs; and what is said of those they keep back."""

from itertools import chain

import pytest
from core.harness import spec_of

from nqspy.core.asked import violation
from nqspy.core.gate.limits import LIMITS
from nqspy.core.passes import explain
from nqspy.model.queues import RunningLimits
from nqspy.model.tree import declared


def test_each_setting_of_a_limit_has_its_rule():
    assert {limit.setting for limit in chain(*LIMITS)} == set(declared(RunningLimits))


def test_the_run_limit_of_a_queue(house):
    seqs = house.machine(pes=8).queue("night", run_limit=2).submit("anne", "ben", "cleo", "dora")
    told = house.go()
    assert told.starts == seqs[:2]
    assert told.reason(seqs[3]).matches(code="LIMIT", who="queue night")
    assert told.reason(seqs[3]).matches(kind="limit_reached", values=("run", 2, "queue night", ""))
    assert not told.short_of_pes
    house.end(seqs[0])
    assert house.go().starts == [seqs[2]]


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


def test_a_request_without_a_memory_limit_counts_as_its_queues_limit(house):
    house.machine(pes=8).queue("limited", memory_limit="115mw", max_memory="100mw")
    first, second = house.submit("anne", "ben")
    assert house.run_pass().starts == [first]
    house.set("queue/limited/per_request/memory_limit", None)
    assert house.run_pass().starts == [first, second]


@pytest.mark.parametrize(
    "limit", ["run_limit", "user_limit", "group_limit", "memory_limit", "pe_limit"]
)  # fmt: skip
def test_complexes_and_the_whole_site_have_the_same_limits(house, limit):
    house.machine(pes=8).queue("a").queue("b").complex("prime-time", "a", "b", **{limit: 1})
    first, second = house.submit("anne mem=1b queue=a", "anne mem=1b queue=b")
    told = house.run_pass()
    assert told.starts == [first]
    assert told.reason(second).matches(code="LIMIT", who="complex prime-time")
    told = house.set(f"complex/prime-time/{limit}", None).limit(**{limit: 1}).run_pass()
    assert told.starts == [first]
    assert told.reason(second).matches(code="LIMIT", who="global")
    house.limit(**{limit: None})
    assert house.run_pass().starts == [first, second]


def test_pes_are_the_lowest_free_numbers(house):
    a, b, c = house.machine(pes=6).queue("mpp").submit("anne pes=2", "ben pes=1", "cleo pes=3")
    told = house.go()
    assert [told.pes(seq) for seq in (a, b, c)] == [(0, 1), (2,), (3, 4, 5)]
    d, e = house.end(a).end(c).submit("dora pes=3", "emil pes=1")
    told = house.go()
    assert [told.pes(seq) for seq in (d, e)] == [(0, 1, 3), (4,)]


def test_a_full_machine_says_who_waits_for_a_pe(house):
    first, mine, ben = house.machine(pes=1).queue("night", user_limit=1).run("anne", "anne", "ben")
    told = house.run_pass()
    assert told.short_of_pes
    assert told.reason(ben).matches(code="NO_PES", text="it asks for 1 PE, none of 1 PEs is free")
    why = explain(house.site, [first, mine, ben], told.plan.reasons)
    assert why[mine].matches(code="LIMIT", who="queue night")
    assert first not in why


def test_suspended_requests_keep_their_pes_and_count_against_limits(house):
    from nqspy.model.events import Suspended

    anne, ben = house.machine(pes=2).queue("night", run_limit=1).run("anne", "ben")
    house._event(Suspended(anne, 1, "op"))
    told = house.run_pass()
    assert told.starts == []
    assert told.reason(ben).matches(code="LIMIT")


def test_a_held_request_is_explained(house):
    anne = house.queue("night").submit("anne")[0]
    house.hold(anne)
    why = explain(house.site, [anne, 99], house.run_pass().plan.reasons)
    assert why[anne].matches(code="HELD", who="owner", text="held by anne")
    assert 99 not in why


def test_the_next_date_is_when_to_look_again(house):
    from msgspec.structs import replace

    from nqspy.model.events import Submitted

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


def test_one_that_asks_for_no_memory_starts_while_a_memory_limit_is_exceeded(house):
    house.machine(pes=3).queue("night", memory_limit="100mb").run("anne mem=90mb")
    none, some = house.set("queue/night/memory_limit", 1 << 20).submit("ben", "cleo mem=1kb")
    assert house.go().starts == [none]
    assert house.why(some).code == "LIMIT"
