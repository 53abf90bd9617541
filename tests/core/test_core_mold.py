"""Moldable requests: the pass starts them on the size with the earliest expected end."""

import pytest
from core.story import Story

SIZES = "sizes=2,4,8 walls=40:00,20:00,10:00"


PLAIN = "machine 8; queue night order=fcfs"
EASY = "machine 8; queue night order=fcfs reserve=1"
NONE = f"{EASY}; set queue/night/backfill none"
ENDS_SOONER = "why anne ends_sooner 2 8 600000 2400000"
STORIES = {
    "on an empty machine the size that ends soonest": f"""{PLAIN}; run anne {SIZES}
        size anne 8 10; lacked anne""",
    "what fits, and the sizes that did not": f"""{PLAIN}; run ben pes=5 wall=30:00, anne {SIZES}
        size anne 2 40; lacked anne 8:NO_PES 4:NO_PES""",
    "more PEs that do not make it faster are left to others": f"""{PLAIN}
        submit anne sizes=2,4,8 speedup=4:0 wall=40:00, ben pes=4 wall=1:00; starts anne ben
        size anne 4 10""",
    "without times its work divides evenly": f"{PLAIN}; run anne sizes=2,4,8 wall=40:00; size anne 8 40",
    "without any time the most PEs": f"{PLAIN}; run ben pes=3, anne sizes=2,4,8; pes anne 3-6",
    "not even its least size is free": f"""{PLAIN}; run ben pes=7 wall=30:00
        submit anne sizes=2,3,4 wall=40:00; starts -; why anne few_pes_free 2-4 1 8 - - -""",
    "limits count the chosen size": f"""{PLAIN}; set queue/night/pe_limit 6
        submit anne {SIZES}, ben pes=3 wall=1:00; starts anne; size anne 4 20; lacked anne 8:NEVER
        why ben LIMIT""",
    "only sizes and times that the queue takes": f"""{PLAIN}; set queue/night/per_request/pe_limit 4
        set queue/night/per_request/wall_limit 1800000; run anne {SIZES}; size anne 4 20; lacked anne""",
    "scheduled now it takes the size that fits": f"""{PLAIN}; set queue/night/run_limit 0
        submit anne {SIZES}; starts -; schedule anne now; go; size anne 8 10""",
    "each takes the size that suits what is left": f"""{PLAIN}; set queue/night/reserve all
        run ben pes=6 wall=10:00
        submit anne sizes=4,8 walls=8:00,4:00, cleo sizes=2,4,8 walls=30:00,14:00,7:00; starts -
        reserved anne 10 cleo 14; sized anne 8; sized cleo 8""",
    "with a reservation it waits for a size that ends sooner": f"""{EASY}; run ben pes=6 wall=5:00
        submit anne {SIZES}; starts -; reserved anne 5; sized anne 8; {ENDS_SOONER}""",
    "a limit of all holds the sizes that its queue takes": f"""{NONE}; set queue/night/reserve 0
        set queue/night/per_request/wall_limit 720000; limit pe_limit=5; run ben pes=2 wall=10:00
        submit anne sizes=2,4 walls=13:00,3:00, cleo wall=1:00; starts -; why anne pes_short
        why cleo in_line 2.ymp night""",
    "the reason holds as time goes by": f"""{NONE}; run ben pes=6 wall=5:00; run anne {SIZES}; {ENDS_SOONER}
        later 1; submit cleo pes=4 wall=1:00; starts -; later 1; submit cleo pes=4 wall=1:00; starts -
        {ENDS_SOONER}""",
    "beside a limit that holds others": f"""{EASY}; limit user_limit=1
        run ben pes=5 wall=5:00, cleo wall=1:00; run anne {SIZES}; {ENDS_SOONER}
        later 1; submit cleo wall=1:00; starts -; {ENDS_SOONER}""",
    "and while no size is free": f"""{EASY}; run ben pes=7 wall=5:00; submit anne {SIZES}; starts -
        why anne few_pes_free; later 1; submit cleo pes=2 wall=1:00; starts -; why anne few_pes_free""",
    "for no size for which a shift would have stopped its queue": f"""{EASY}; run ben pes=6 wall=5:00
        closes night 5; submit anne {SIZES}; starts anne; size anne 2 40""",
    "at once if waiting would not pay": f"""{EASY}; run ben pes=6 wall=35:00; run anne {SIZES}
        size anne 2 40""",
    "what passes it does not delay the reserved size": f"""{EASY}; run ben pes=6 wall=5:00
        submit anne {SIZES}, cleo pes=2 wall=6:00, dora pes=2 wall=4:00; starts dora; later 4; end dora; go
        later 1; end ben; go; size anne 8 10""",
    "what is free before its time": f"""{EASY}; run ben pes=4 wall=30:00, cleo pes=4 wall=8:00
        run anne {SIZES}; reserved anne 8; sized anne 4; later 1; end ben; go; reserved anne 8; sized anne 8
        later 1; end cleo; go; size anne 8 10""",
    "only one with a reservation waits for another size": f"""{EASY}; run ben pes=6 wall=5:00
        submit cleo pes=8 wall=1:00, anne sizes=1,2,8 walls=5:00,4:00,1:00; starts anne; size anne 2 4""",
    "with exits no pass comes before its time": f"""{EASY}; asks forcing; run ben pes=6 wall=5:00
        submit anne {SIZES}; starts -; wake 5""",
    "run again it gets another size": f"""{PLAIN}; run anne {SIZES}; size anne 8 10; requeue anne
        submit ben pes=5 wall=1:00; schedule ben next; starts ben anne; size anne 2 40""",
    "each index of an array gets a size of its own": f"""{PLAIN}
        array anne 4 sizes=2,3,5 walls=5:00,3:00,1:00; go; size anne[1] 5 1; size anne[2] 3 3""",
    "exits are asked about it once, and may force it": f"""{PLAIN}; set queue/night/run_limit 1
        asks forcing anne=force; run ben pes=3 wall=30:00, anne {SIZES}; size anne 4 20; asked ben anne""",
} | {
    f"one that a limit of its owner holds lets others pass: {asked}": f"""{NONE}; set queue/night/reserve all
        set queue/night/user_limit 1; run ben pes=4 wall=1:00:00, anne pes=3 wall=1:00:00
        submit anne {asked}, cleo wall=1:00; starts cleo; why anne2 limit_reached"""
    for asked in ("pes=2 wall=2:00", "sizes=2,4 walls=2:00,1:00")
} | {
    f"no reservation moves to {more} PEs that others need": f"""{PLAIN} reserve=all user_limit=1
        run anne pes=2, dora wall=10:00, cleo pes=5 wall=10:00
        run dora pes=4 wall=30:00, ben pes=7 wall=1:00, erin wall=9:00, fred sizes=1,{more} walls=20:00,5:00
        reserved dora2 10 ben ? erin 10 fred 19; sized fred 1; later 1; end cleo; starts erin
        reserved dora2 10 fred 10; sized fred 1; at 10; end dora erin; starts dora2 fred; size fred 1 20"""
    for more in (2, 3)  # 3 PEs are not free at minute 19; 2 are, but ben's room is kept all the time
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_sizes(house, title):
    Story(house).play(STORIES[title])
