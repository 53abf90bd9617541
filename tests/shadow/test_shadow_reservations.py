"""The shadow on reservations that move while a pass goes on: no difference where the rules were kept, and the
name of the request that was left."""

import pytest
from core.harness import House, promised
from core.story import Story
from msgspec.structs import replace
from shadow.judge import Shadow

from nqspy.model import events as ev
from nqspy.model.site import Site

LEFT = "it was left waiting, and nothing kept it from starting"


def found(events: list[ev.Recorded]) -> list[tuple[int, str]]:
    verdict = Shadow(Site(host="ymp"), pause=None).take_all(events)
    return [(each.seq, each.text) for each in verdict.differences]


@pytest.fixture
def units() -> House:
    """Six PEs, three GPUs."""
    return House().machine(pes=6).change(ev.Change("create", "consumable/gpu", {"units": ("0", "1", "2")}))


def after_a_minute(house: House, *ended: int) -> None:
    house.later(minutes=1)
    for seq in ended:
        house.end(seq)


def test_who_gains_by_a_start_that_comes_early_in_another_queue_must_have_his_turn(units):
    units.queue("front", priority=1, order="fcfs").queue("behind", order="fcfs", reserve=None)
    units.run("anne gpu=3 wall=5:00", "anne pes=5 wall=5:00")
    units.run("anne pes=2 wall=3:00", "anne pes=4 gpu=1 wall=1:00")
    after_a_minute(units, 2)
    (narrow,) = units.run("ben wall=5:00", queue="front")
    assert found(units.events) == []
    left = [each for each in units.events if getattr(each.event, "seq", 0) != narrow or _is_submission(each)]
    assert found(left) == [(narrow, LEFT)]


def _without_bar(event):
    if not isinstance(event, ev.SettingsChanged):
        return event
    made = (replace(each, value=_lenient(each.value)) for each in event.changes)
    return replace(event, changes=tuple(made))


def _lenient(value):
    return value | {"backfill": "limit"} if isinstance(value, dict) and "backfill" in value else value


def _is_submission(recorded: ev.Recorded) -> bool:
    return isinstance(recorded.event, ev.Submitted)


def test_where_nobody_passes_a_promise_bars_those_that_were_promised_a_later_start(units):
    units.queue("night", order="fcfs", backfill="none", reserve=None, user_limit=1)
    units.run("anne gpu=2 wall=10:00", "ben gpu=1 wall=10:00")
    first, second = units.run("ben pes=4 gpu=2 wall=1:00", "cleo pes=5 gpu=1 wall=3:00")
    assert [promised(units, seq) for seq in (first, second)] == [10, 11]
    after_a_minute(units, 2)
    assert units.go().starts == [], "the second would have ended long before the first is to start"
    assert found(units.events) == []
    lenient = [replace(each, event=_without_bar(each.event)) for each in units.events]
    assert found(lenient) == [(second, LEFT)], "where others may pass it had to start"


UNITS = "machine 6; create consumable/gpu units=(0,1,2)"
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
def test_no_difference_where_the_rules_were_kept(title):
    house = House()
    Story(house).play(STORIES[title])
    assert found(house.events) == []
