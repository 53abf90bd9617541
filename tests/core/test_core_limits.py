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


def test_one_that_waits_for_pes_is_told_how_many_it_asks_for_and_how_many_wait_ahead_of_it(house):
    house.machine(pes=12).queue("night")
    first, second, third = house.submit("anne pes=3", "ben pes=12", "cleo pes=10")
    assert house.go().starts == [first]
    assert house.why(second).matches(kind="few_pes_free", values=(12, 9, 12, None, None, None))
    assert house.why(third).matches(
        code="NO_PES", who="machine", text="it asks for 10 PEs, 9 of 12 PEs are free; 1 ahead of it"
    )


def test_the_user_limit_lets_others_pass(house):
    house.machine(pes=8).queue("night", user_limit=1)
    first, second, ben = house.submit("anne", "anne", "ben")
    told = house.run_pass()
    assert told.starts == [first, ben]
    assert told.reason(second).matches(
        code="LIMIT", who="queue night", text="user limit 1 of queue night is reached for anne"
    )


def test_the_group_limit_lets_other_groups_pass(house):
    house.machine(pes=8).queue("night", group_limit=1)
    first, second, other = house.submit("anne group=d1", "ben group=d1", "cleo group=d2")
    told = house.run_pass()
    assert told.starts == [first, other]
    assert told.reason(second).matches(kind="limit_reached", values=("group", 1, "queue night", "d1"))


@pytest.mark.parametrize("limit", ["run", "user", "group"])
def test_a_limit_of_nothing_says_so(house, limit):
    [seq] = house.machine(pes=8).queue("night", **{f"{limit}_limit": 0}).submit("anne")
    told = house.run_pass()
    assert told.starts == []
    assert told.reason(seq).text == f"{limit} limit 0 of queue night lets nothing run"


def test_a_request_larger_than_a_limit_is_told_that_no_end_helps(house):
    house.machine(pes=8).queue("mpp", pe_limit=4, memory_limit="10mw", max_memory="100mw")
    small, wide, large = house.submit("anne pes=2 mem=1mw", "ben pes=6 mem=1mw", "cleo mem=20mw")
    told = house.run_pass()
    assert small in told.starts
    assert told.reason(wide).matches(kind="too_wide", values=("PE", 4, "queue mpp", 6))
    text = "memory limit 80mb of queue mpp leaves 80mb even when nothing runs, it counts 160mb"
    assert explain(house.site, [large], told.plan.reasons)[large].text == text


def test_memory_is_counted_as_requested_and_small_requests_pass_large_ones(house):
    house.machine(pes=8).queue("night", memory_limit="115mw", max_memory="100mw")
    big, huge, small = house.submit("anne mem=90mw", "ben mem=90mw", "cleo mem=4mw")
    told = house.run_pass()
    assert told.starts == [big, small]
    assert told.reason(huge).matches(code="LIMIT", who="queue night")
    assert told.reason(huge).matches(
        kind="memory_short", values=("memory", 964689920, "queue night", 176160768, 754974720)
    )


def test_a_request_without_a_memory_limit_counts_as_its_queues_limit(house):
    house.machine(pes=8).queue("limited", memory_limit="115mw", max_memory="100mw")
    first, second = house.submit("anne", "ben")
    assert house.run_pass().starts == [first]
    house.set("queue/limited/per_request/memory_limit", None)
    assert house.run_pass().starts == [first, second]


def test_the_pe_limit(house):
    house.machine(pes=8).queue("mpp", pe_limit=4)
    three, two, one = house.submit("anne pes=3", "ben pes=2", "cleo pes=1")
    told = house.run_pass()
    assert told.starts == [three, one]
    assert told.reason(two).matches(kind="pes_short", values=("PE", 4, "queue mpp", 0, 2))


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


def test_a_limit_of_nothing_lets_nothing_start(house):
    anne = house.machine(pes=8).queue("night", user_limit=0).submit("anne")[0]
    told = house.run_pass()
    assert told.starts == []
    assert told.reason(anne).matches(code="LIMIT")


def test_pes_are_the_lowest_free_numbers(house):
    a, b, c = house.machine(pes=6).queue("mpp").submit("anne pes=2", "ben pes=1", "cleo pes=3")
    told = house.go()
    assert [told.pes(seq) for seq in (a, b, c)] == [(0, 1), (2,), (3, 4, 5)]
    d, e = house.end(a).end(c).submit("dora pes=3", "emil pes=1")
    told = house.go()
    assert [told.pes(seq) for seq in (d, e)] == [(0, 1, 3), (4,)]


def test_what_does_not_fit_is_passed_over(house):
    house.machine(pes=4).queue("mpp")
    wide, wider, narrow = house.submit("anne pes=3", "ben pes=4", "cleo pes=1")
    told = house.go()
    assert told.starts == [wide, narrow]
    assert told.short_of_pes
    assert told.reason(wider).matches(code="NO_PES", text="it asks for 4 PEs, none of 4 PEs is free")


def test_requests_that_fit_no_gap_do_not_stop_the_search(house):
    house.machine(pes=3).queue("mpp")
    assert house.submit("anne pes=2")
    house.go()
    waiting = house.submit(*["ben pes=2"] * 3, "cleo pes=1")
    told = house.run_pass()
    assert told.starts == [waiting[3]]
    assert told.short_of_pes


def test_more_pes_than_the_machine_has_is_never(house):
    giant, small = house.machine(pes=4).queue("mpp").submit("anne pes=5", "ben")
    told = house.run_pass()
    assert told.starts == [small]
    assert told.reason(giant).matches(code="NEVER", text="5 PEs are more than the machine's 4")
    assert not told.short_of_pes


def test_a_full_machine_says_who_waits_for_a_pe(house):
    first, mine, ben = house.machine(pes=1).queue("night", user_limit=1).run("anne", "anne", "ben")
    told = house.run_pass()
    assert told.short_of_pes
    assert told.reason(ben).matches(code="NO_PES", text="it asks for 1 PE, none of 1 PEs is free")
    why = explain(house.site, [first, mine, ben], told.plan.reasons)
    assert why[mine].matches(code="LIMIT", who="queue night")
    assert first not in why


def test_where_limits_keep_all_back_nobody_is_short_of_pes(house):
    house.machine(pes=1).queue("night", user_limit=1).run("anne", "anne")
    assert not house.run_pass().short_of_pes


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


def test_a_giant_says_nothing_about_those_behind_it(house):
    house.machine(pes=4).queue("mpp", user_limit=1)
    giant, first, second = house.submit("ben pes=5", "anne", "anne")
    told = house.run_pass()
    assert told.starts == [first]
    assert told.reason(giant).matches(code="NEVER")
    assert told.reason(second).matches(code="LIMIT")
    assert house.standing().line() == [first, second, giant]


def test_a_queue_that_limits_close_names_the_oldest_kept_back(house):
    house.machine(pes=4).queue("night", user_limit=1).run("anne")
    seqs = house.submit("anne", "anne")
    told = house.run_pass()
    text = "user limit 1 of queue night is reached for anne"
    assert told.reason(seqs[0]).matches(code="LIMIT", text=text)
    assert told.reason(seqs[1]).matches(code="LIMIT", text=text)


def test_one_that_asks_for_no_memory_starts_while_a_memory_limit_is_exceeded(house):
    house.machine(pes=3).queue("night", memory_limit="100mb").run("anne mem=90mb")
    none, some = house.set("queue/night/memory_limit", 1 << 20).submit("ben", "cleo mem=1kb")
    assert house.go().starts == [none]
    assert house.why(some).code == "LIMIT"
