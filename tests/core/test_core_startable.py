"""Groups with work that could start: what can never start under a cap or a limit is none."""

import pytest
from core.story import Story

from nqspy.core.draft import Draft
from nqspy.core.startable import changes
from nqspy.shares import balance_of


def two(limits: str = "") -> str:
    """Two departments; the queue ``aux``, which d6 uses, has these limits."""
    return f"""machine 8; queue night; queue aux {limits}; create group/d1 share=1; create group/d6 share=1
        submit anne group=d1 queue=night"""


STORIES = {
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


@pytest.mark.parametrize("title", STORIES)
def test_work_that_could_start(house, title):
    Story(house).play(STORIES[title])


def test_a_pass_reports_once_an_owner_that_waits_and_can_start_nothing(house):
    Story(house).play(f"{two('memory_limit=1')}; submit dora group=d6 mem=1mw")
    house.tell_startable()
    assert dict(balance_of(house.site).startable()) == {"d1:anne": 1, "d6:dora": 0}
    assert not changes(Draft(house.site, house.now, house.door, {}))
    assert "g:d6" not in house.site.accounts, "nobody is noted for it"
