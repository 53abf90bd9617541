"""The shadow on reservations that move while a pass goes on: no difference where the rules were kept, and the
name of the request that was left."""

import pytest
from core.harness import House, promised
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


def test_nobody_gains_in_his_own_queue_by_what_comes_early_after_his_turn(units):
    units.queue("night", order="fcfs", reserve=None)
    units.run("anne gpu=3 wall=12:00", "anne pes=3 wall=5:00", "anne pes=2 wall=5:00")
    long, _, short = units.run("anne pes=2 gpu=1 wall=7:00", "anne pes=4 wall=3:00", "anne wall=2:00")
    after_a_minute(units, 1, 3)
    assert units.go().starts == [short]
    assert promised(units, long) == 7, "promises are gone through once, in order"
    assert found(units.events) == []


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


@pytest.mark.parametrize("order", ["fcfs", "sjf"])
def test_those_whom_one_instant_and_their_owners_word_put_behind_one_are_not_told_from_others(units, order):
    units.queue("night", order=order).run("anne pes=5 wall=2:00", "anne gpu=3 wall=9:00")
    units.submit(
        "anne pes=5 wall=2:00", "anne p=1 gpu=1 wall=2:00", "anne pes=5 wall=2:00", "cleo pes=5 wall=2:00"
    )
    units.later(minutes=2).end(1).go()
    assert found(units.events) == []


def test_whom_his_word_puts_back_behind_a_moldable_one_stands_there_by_its_time_as_it_waited(units):
    units.queue("night", order="sjf").set("queue/night/pe_limit", 4)
    (last,) = units.submit("anne wall=10:00")
    sizes = "sizes=1,5 walls=13:00,2:36"
    moldable, behind = units.submit(f"ben {sizes}", "ben p=-3 pes=3 wall=8:00")
    assert units.go().starts == [moldable, behind]
    assert found(units.events) == []
    units.later(minutes=13).end(moldable)
    assert units.go().starts == [last]


def test_where_nobody_passes_one_that_waits_for_another_size_may_be_in_front(units):
    units.queue("night", order="fcfs", backfill="none", reserve=1).run("anne pes=3 wall=1:00")
    moldable, behind = units.submit("anne sizes=1,4 walls=3:00,1:00", "ben wall=1:00")
    assert units.go().starts == [], "on four PEs it ends sooner, and nobody passes it"
    after_a_minute(units, 1)
    assert units.go().starts == [moldable, behind]
    assert found(units.events) == []


def test_one_that_could_never_start_on_a_size_that_its_queue_takes_stands_in_front_of_nobody(units):
    units.queue("night", order="fcfs", backfill="none", max_wall="5:00").limit(pe_limit=5)
    units.run("anne pes=4 wall=1:00")
    _, narrow = units.submit("anne sizes=2,6 walls=9:00,1:00", "ben wall=1:00")
    assert units.go().starts == [narrow]
    assert found(units.events) == []


def test_where_nobody_passes_one_kept_back_by_a_promise_without_a_time_may_be_in_front(units):
    units.change(ev.Change("create", "domain/wide", {"pes": ("4-5",)}))
    units.queue("strict", order="fcfs", backfill="none").set("queue/strict/domain", "wide")
    units.queue("low", order="fcfs", reserve=1)
    units.run("ben pes=3", "cleo pes=4 gpu=1 wall=9:00", queue="low")
    units.submit("anne gpu=3 wall=9:00", "ben wall=9:00", queue="strict")
    assert units.go().starts == [], "the first waits for what is kept, and nobody passes it"
    assert found(units.events) == []
