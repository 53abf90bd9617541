"""Caps of groups: what they may hold and use at most, and what the share tree gives while others are idle."""

from math import log

import pytest
from core.harness import force
from core.story import Story

from nqspy.model.ids import HOUR
from nqspy.model.reasons import ReasonCode
from nqspy.shares import FairShare, balance_of

HALF = 24 * HOUR


def books(house):
    return FairShare(house.site, house.now, house.samples)


def capped(house, limit=25, pes=8):
    """d3 may hold and use so many percent of eight PEs; d1 may all it can."""
    house.machine(pes=pes).queue("night").group("d1", 1).group("d3", 1)
    return house.set("group/d3/limit", limit)


def has_used(house, group, part):
    """The group has used that part of what its cap allows."""
    whole = 0.25 * 8 * HALF / log(2)
    seq = house.run(f"anne group={group}")[0]
    house.end(seq, cpu=str(round(part * whole / 1000)))


# ---------------------------------------------------------------- the share tree in a pass


def test_idle_departments_leave_their_part_to_their_siblings_at_two_levels(house):
    house.machine(pes=1).queue("night")
    house.group("ymp", 60).group("t3d", 30).group("default", 10)
    house.group("d1", 3, "ymp").group("d2", 1, "ymp").submit("anne group=d2", "ben group=t3d")
    share = books(house).share
    assert (share(group="d2"), share(group="t3d")) == pytest.approx((2 / 3, 1 / 3))
    assert share(group="ymp") == pytest.approx(2 / 3)
    house.submit("cleo group=d1", "dora group=default")
    share = books(house).share
    assert (share(group="d1"), share(group="d2"), share(group="t3d")) == pytest.approx((0.45, 0.15, 0.3))


def test_running_work_counts_and_held_work_does_not(house):
    house.machine(pes=1).queue("night").group("d1", 1).group("d2", 1).group("default", 0)
    running = house.run("anne group=d1")[0]
    held = house.submit("ben group=d2")[0]
    house.hold(held)
    assert books(house).share(group="d1") == 1
    house.release(held)
    assert books(house).share(group="d1") == 0.5
    house.end(running)
    assert books(house).share(group="d2") == 1


def test_what_the_exit_sees_is_what_the_group_is_entitled_to_now(house):
    house.machine(pes=1).queue("night", share=20, time=1).group("d1", 1).group("d2", 3).group("default", 0)
    seen = {}

    def shrpri(owner, group, view):
        seen[group] = view.share(group=group)
        return 1.0

    house.exits(shrpri=shrpri)
    house.submit("anne group=d1")
    house.run_pass()
    assert seen == {"d1": 1.0}
    house.submit("ben group=d2")
    house.run_pass()
    assert seen == {"d1": 0.25, "d2": 0.75}


# ---------------------------------------------------------------- PEs held


CAPPED = "machine 8; queue night; create group/d1 share=1; create group/d3 share=1 limit="
STORIES = {
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
    "a whole queue that it holds": f"""{CAPPED}0; submit anne group=d3, anne group=d3, anne group=d3
        starts -; why anne cap_never; why anne3 cap_never""",
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_caps(house, title):
    Story(house).play(STORIES[title])


def test_a_cap_of_0_over_what_runs_leaves_the_accounts_whole(house):
    capped(house)
    running = house.run("anne group=d3", "ben group=d1")
    house.set("group/d3/limit", 0).later(minutes=5).submit("cleo group=d1")
    assert house.go().starts
    assert balance_of(house.site).groups.targets(balance_of(house.site).terms) == {"d1": 1, "d3": 0}
    house.later(minutes=5).end(running[0], wall="10:00")


def test_force_goes_past_a_cap_as_past_a_run_limit(house):
    capped(house, limit=0)
    house.exits(jobselect=lambda request, view: force() if request.name == "urgent" else None)
    plain, urgent, now = house.submit("anne group=d3", "anne group=d3 name=urgent", "anne group=d3")
    house.schedule(now, "now")
    assert set(house.go().starts) == {urgent, now}
    assert house.run_pass().reason(plain).who == "group d3"


# ---------------------------------------------------------------- use


def test_a_group_that_used_its_part_is_not_started_further_until_enough_is_forgotten(house):
    capped(house)
    has_used(house, "d3", 2.0)
    waits, other = house.submit("anne group=d3", "ben group=d1")
    told = house.go()
    assert told.starts == [other]
    reason = told.reason(waits)
    assert reason.matches(code=ReasonCode.LIMIT, who="group d3")
    # 25 % of 8 PEs and 24 h: 2 x 24 h / ln 2 = 69:14:58; it has used twice that.
    assert reason.text == (
        "limit 25% of group d3 is 69:14:58 of decayed CPU time, it has 138:29:55 with what runs: "
        "past use must decay"
    )
    assert reason.until == told.plan.wake_at == pytest.approx(house.now + HALF, abs=60_000)
    house.later(told.plan.wake_at - house.now - 60_000)
    assert house.run_pass().starts == []
    house.later(61_000)
    assert house.go().starts == [waits]


def test_what_runs_and_what_this_pass_starts_counts_as_used(house):
    capped(house, limit=50)
    half = round(0.5 * 8 * HALF / log(2) / 1000)
    one, two, three = house.submit(*[f"anne group=d3 cpu={half // 2 + 1}"] * 3)
    told = house.go()
    assert told.starts == [one, two]
    assert told.reason(three).who == "group d3"
    assert told.reason(three).text.endswith("with what runs: some of what runs must end")
    assert told.plan.wake_at is None, "only the end of what runs can help"
    house.end(one, cpu="1")
    assert house.go().starts == [three]
