"""Caps of groups: what they may hold and use at most, and what the share tree gives while others are idle."""

from math import log

import pytest
from core.story import Story

from nqspy.model.ids import HOUR
from nqspy.model.reasons import ReasonCode
from nqspy.shares import balance_of

HALF = 24 * HOUR


def capped(house, limit=25, pes=8):
    """d3 may hold and use so many percent of eight PEs; d1 may all it can."""
    house.machine(pes=pes).queue("night").group("d1", 1).group("d3", 1)
    return house.set("group/d3/limit", limit)


def has_used(house, group, part):
    """The group has used that part of what its cap allows."""
    whole = 0.25 * 8 * HALF / log(2)
    seq = house.run(f"anne group={group}")[0]
    house.end(seq, cpu=str(round(part * whole / 1000)))


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
    assert (reason.kind, reason.values) == ("cap_decays", (25, 249_298_000, "CPU time", 498_595_000))
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
    assert told.reason(three).matches(kind="cap_runs", who="group d3")
    assert told.plan.wake_at is None, "only the end of what runs can help"
    house.end(one, cpu="1")
    assert house.go().starts == [three]
