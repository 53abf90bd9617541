"""Who has work that could start: what can never start under a cap or a limit is none."""

import pytest

from nqspy.core.draft import Draft
from nqspy.core.startable import changes
from nqspy.model.reasons import ReasonCode
from nqspy.model.shifts import UpcomingStop
from nqspy.shares import balance_of


def works(house):
    """The groups with startable requests, as a pass that starts nothing tells it."""
    house.tell_startable()
    return {pair.partition(":")[0] for pair, pes in balance_of(house.site).startable().items() if pes}


def two(house, **limits):
    """Two departments; the queue ``aux``, which d6 uses, has these limits."""
    house.machine(pes=8).queue("night").queue("aux", **limits).group("d1", 1).group("d6", 1)
    house.submit("anne group=d1", queue="night")
    return house


def test_what_asks_for_more_than_its_cap_leaves_is_no_work_and_is_told_so(house):
    two(house).set("group/d6/limit", 20)
    wide = house.submit("dora group=d6 pes=3")[0]
    assert works(house) == {"d1"}
    house.run_pass()
    assert house.why(wide).matches(
        code=ReasonCode.NEVER,
        who="group d6",
        text="limit 20% of group d6 is 2 of 8 PEs, it holds 0, this asks for 3: "
        "it cannot start under this limit",
    )
    house.submit("emil group=d6 pes=2")
    assert works(house) == {"d1", "d6"}, "one that fits is work"


def test_a_cap_above_that_is_too_narrow_is_named_before_one_that_is_full(house):
    two(house).group("d7", 1, "d6").set("group/d6/limit", 25).set("group/d7/limit", 50)
    wide = house.set("queue/aux/memory_limit", 1).submit("dora group=d7 pes=3 mem=1mw")[0]
    assert works(house) == {"d1"}
    house.run_pass()
    assert house.why(wide).matches(code=ReasonCode.NEVER, who="group d6")
    assert "it cannot start under this limit" in house.why(wide).text


@pytest.mark.parametrize("limit", ["run_limit", "user_limit", "group_limit"])
@pytest.mark.parametrize("holder", ["queue", "complex", "global"])
def test_where_a_limit_of_0_lets_nothing_run_there_is_no_work(house, holder, limit):
    two(house)
    house.submit("dora group=d6")
    if holder == "complex":
        house.complex("both", "aux")
    path = {"queue": "queue/aux", "complex": "complex/both", "global": "global"}[holder]
    house.set(f"{path}/{limit}", 0)
    assert works(house) == ({"d1"} if holder != "global" else set())
    house.set(f"{path}/{limit}", 1)
    assert works(house) == {"d1", "d6"}


@pytest.mark.parametrize(
    ("limit", "value", "asks"), [("pe_limit", 2, "pes=3"), ("memory_limit", "1mw", "mem=2mw")]
)
def test_what_asks_for_more_than_a_limit_is_no_work(house, limit, value, asks):
    two(house, **{limit: value})
    house.submit(f"dora group=d6 {asks}")
    assert works(house) == {"d1"}
    house.submit("dora group=d6 pes=1 mem=1mw")
    assert works(house) == {"d1", "d6"}


def test_who_waits_for_a_run_limit_that_others_reach_has_work(house):
    two(house, run_limit=1)
    house.run("anne group=d1")
    house.submit("dora group=d6")
    assert works(house) == {"d6"}


def test_what_a_draining_shift_keeps_back_is_no_work_though_its_queue_was_narrowed_since(house):
    two(house, max_wall="2:00:00")
    long = house.submit("dora group=d6 wall=2:00:00", queue="aux")[0]
    house.set("queue/aux/per_request/wall_limit", 3_600_000)
    house.site.upcoming_stops["aux"] = UpcomingStop(house.now + 5_400_000, "day", "drain", "06:00")
    house.run_pass()
    assert house.why(long).matches(code=ReasonCode.SHIFT)
    assert works(house) == {"d1"}
    house.submit("dora group=d6", queue="aux")
    assert works(house) == {"d1", "d6"}, "without a wall limit of its own its queue's counts"


def test_of_one_who_waits_and_can_start_nothing_a_pass_says_so_once(house):
    """Who follows the journal would count all that is queued for work."""
    two(house, memory_limit=1)
    house.submit("dora group=d6 mem=1mw", queue="aux")
    house.tell_startable()
    assert dict(balance_of(house.site).startable()) == {"d1:anne": 1, "d6:dora": 0}
    assert not changes(Draft(house.site, house.now, house.door, {}))
    assert "g:d6" not in house.site.accounts, "nobody is noted for it"
