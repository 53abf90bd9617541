"""The shadow on reservations that move while a pass goes on: no difference where the rules were kept, and the
name of the request that was left."""

import pytest
from core.story import Story
from shadow.look import LEFT
from shadow.test_shadow import found, setting, submission

UNITS = "machine 6; create consumable/gpu units=(0,1,2)"


def test_a_request_that_gains_by_an_early_start_in_another_queue_must_have_its_turn(house):
    Story(house).play(f"""{UNITS}; queue front priority=1 order=fcfs; queue behind order=fcfs reserve=all
        run anne gpu=3 wall=5:00, anne pes=5 wall=5:00; run anne pes=2 wall=3:00, anne pes=4 gpu=1 wall=1:00
        later 1; end anne2; run ben wall=5:00 queue=front""")
    assert found(house.events) == []
    left = [each for each in house.events if submission(5)(each.event) or getattr(each.event, "seq", 0) != 5]
    assert found(left) == [(5, LEFT)]


def test_where_none_passes_a_promise_bars_those_that_were_promised_a_later_start(house):
    Story(house).play(f"""{UNITS}; queue night order=fcfs backfill=none reserve=all user_limit=1
        run anne gpu=2 wall=10:00, ben gpu=1 wall=10:00
        run ben pes=4 gpu=2 wall=1:00, cleo pes=5 gpu=1 wall=3:00
        reserved ben2 10 cleo 11; later 1; end ben; starts -""")
    assert found(house.events) == []
    assert found(setting("queue/night/backfill", "limit")(house.events)) == [(4, LEFT)], "others may pass"


STORIES = {
    "in its own queue none gains by what comes early after its turn": f"""{UNITS}
        queue night order=fcfs reserve=all
        run anne gpu=3 wall=12:00, anne pes=3 wall=5:00, anne pes=2 wall=5:00
        run anne pes=2 gpu=1 wall=7:00, anne pes=4 wall=3:00, anne wall=2:00; later 1; end anne anne3
        starts anne6; reserved anne4 7""",
    "one that -p puts back behind a moldable one": f"""{UNITS}; queue night order=sjf pe_limit=4
        submit anne wall=10:00, ben sizes=1,5 walls=13:00,2:36, ben p=-3 pes=3 wall=8:00; starts ben ben2
        later 13; end ben; starts anne""",
    "one that waits for another size blocks": f"""{UNITS}; queue night order=fcfs backfill=none reserve=1
        run anne pes=3 wall=1:00; submit anne sizes=1,4 walls=3:00,1:00, ben wall=1:00; starts -; later 1
        end anne; starts anne2 ben""",
    "one that can never start on a size of its queue blocks none": f"""{UNITS}
        queue night order=fcfs backfill=none max_wall=5:00; limit pe_limit=5; run anne pes=4 wall=1:00
        submit anne sizes=2,6 walls=9:00,1:00, ben wall=1:00; starts ben""",
    "one held by a reservation without a time blocks": f"""{UNITS}; create domain/wide pes=(4-5)
        queue strict order=fcfs backfill=none domain=wide; queue low order=fcfs reserve=1
        run ben pes=3, cleo pes=4 gpu=1 wall=9:00
        submit anne gpu=3 wall=9:00 queue=strict, ben wall=9:00 queue=strict; starts -""",
    "one of several sizes stands where its shortest time puts it": """machine 4; queue night order=sjf
        run anne pes=3 wall=1:00:00; submit ben sizes=1,4 walls=40:00,5:00, cleo wall=20:00; starts ben
        pes ben 3""",
    "the shortest is tried first without reservations": """machine 2
        queue night order=fcfs backfill_order=shortest; run anne wall=1:00:00
        submit ben pes=2 wall=5:00, cleo wall=40:00, dora wall=1:00; starts dora""",
    "one that a limit of its owner holds blocks none": """machine 6
        queue front order=fcfs backfill=none user_limit=1; submit anne, anne, anne pes=6, ben
        starts anne ben""",
} | {
    f"one instant and -p: {order}": f"""{UNITS}; queue night order={order}
        run anne pes=5 wall=2:00, anne gpu=3 wall=9:00
        submit anne pes=5 wall=2:00, anne p=1 gpu=1 wall=2:00, anne pes=5 wall=2:00, cleo pes=5 wall=2:00
        later 2; end anne; go"""
    for order in ("fcfs", "sjf")
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_no_difference_where_the_rules_were_kept(house, title):
    Story(house).play(STORIES[title])
    assert found(house.events) == []
