"""Where a pass has found that nobody who comes can start, those that follow decide the same as if they had
looked at everything (`House.run_pass` compares each)."""

from core.course import MINUTE, course
from core.harness import House
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.model import events as ev
from nqspy.model.requests import Used
from nqspy.model.shifts import UpcomingStop

QUEUES = ("front", "back", "apart")
REQUEST = st.fixed_dictionaries(
    {
        "queue": st.sampled_from(QUEUES),
        "owner": st.sampled_from(["anne", "ben", "cleo group=d1"]),
        "pes": st.sampled_from([1, 1, 2, 3, 6]),
        "wall": st.integers(1, 12),
        "early": st.sampled_from([0, 1, 6]),
        "after": st.sampled_from([0, 0, 1, 2]),
        "gpu": st.sampled_from([0, 0, 0, 1, 2]),
        "p": st.sampled_from([0, 0, 0, 0, 1, -3]),
    }
)
QUEUE = st.fixed_dictionaries(
    {
        "order": st.sampled_from(["fcfs", "fcfs", "fcfs", "sjf", "priority"]),
        "backfill": st.sampled_from(["none", "none", "limit"]),
        "reserve": st.sampled_from([0, 0, 1, None]),
        "backfill_order": st.sampled_from(["order", "order", "shortest"]),
        "pe_limit": st.sampled_from([None, None, 6]),
        "user_limit": st.sampled_from([None, None, 1]),
        "run_limit": st.sampled_from([None, None, 2]),
    }
)


def built(queues: list[dict], capped: bool) -> House:
    house = House().machine(pes=9)
    house.change(ev.Change("create", "consumable/gpu", {"units": ("0", "1")}))
    house.change(ev.Change("create", "domain/wide", {"pes": ("6-8",)}))
    house.group("d1", 1)
    if capped:
        house.set("group/d1/limit", 30.0)
    for priority, (name, wanted) in enumerate(zip(QUEUES, queues, strict=True)):
        house.queue(name, priority=priority, **wanted)
    return house.set("queue/apart/domain", "wide")


def asked_for(each: dict) -> str:
    return f" p={each['p']}" + (f" gpu={each['gpu']}" if each["gpu"] else "")


def ends(house: House, seq: int) -> None:
    run = house.request(seq).run
    house._event(ev.Ended(seq, run.number, "exit", 0, used=Used(0, house.now - run.started)))


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(QUEUE, min_size=3, max_size=3), st.lists(REQUEST, min_size=2, max_size=25), st.booleans())
def test_a_pass_that_decides_the_same_again_is_a_pass(queues, requests, capped):
    house = built(queues, capped)
    for _ in course(house, requests, asked_for, ends):
        pass


def test_who_comes_behind_one_that_waits_is_not_looked_at():
    house = House().machine(pes=4)
    house.queue("strict", order="fcfs", backfill="none")
    first, wide, narrow = house.submit("anne pes=3 wall=10:00", "ben pes=2 wall=1:00", "anne wall=1:00")
    assert house.go().starts == [first]
    (late,) = house.submit("cleo wall=1:00")
    assert house.go().starts == []
    assert house.decided_again == 1
    assert house.why(late).text.startswith("2.ymp waits in front of it")
    house.later(ms=MINUTE)
    ends(house, first)
    assert house.go().starts == [wide, narrow, late]
    assert house.decided_again == 1


def test_whom_his_owner_puts_before_the_one_that_waits_is_looked_at():
    house = House().machine(pes=4)
    house.queue("strict", order="fcfs", backfill="none")
    house.submit("anne pes=3 wall=10:00", "ben pes=2 wall=1:00")
    house.go()
    (urgent,) = house.submit("ben p=1 wall=1:00")
    assert house.go().starts == [urgent]
    assert house.decided_again == 0


def test_who_comes_to_a_queue_whose_last_start_filled_the_machine_is_told_what_a_whole_pass_tells_him():
    house = House().machine(pes=6)
    house.queue("front", order="fcfs", priority=1).queue("back", order="fcfs", priority=2)
    house.submit("anne pes=5 wall=9:00", queue="front")
    house.go()
    house.submit("anne pes=2 wall=1:00", queue="back")
    narrow, waiting = house.submit("ben wall=9:00", "cleo wall=1:00", queue="front")
    assert house.go().starts == [narrow]
    (late,) = house.submit("dora wall=1:00", queue="front")
    assert house.go().starts == []
    assert house.decided_again == 1
    told = {house.why(seq).text for seq in (waiting, late)}
    assert told == {"it asks for 1 PE, none of 6 PEs is free"}, "nobody is looked at, so nobody is counted"


def test_who_comes_to_a_queue_whose_last_start_went_past_a_promise_is_told_what_a_whole_pass_tells_him():
    house = House().machine(pes=8).change(ev.Change("create", "consumable/gpu", {"units": ("0", "1")}))
    house.queue("easy", order="fcfs", reserve=1)
    house.submit("anne pes=6 wall=4:00", "ben gpu=2 pes=3 wall=1:00", "cleo wall=1:00")
    _, brief = house.go().starts
    long, short, last = house.submit("ben gpu=1 wall=5:00", "cleo pes=2 wall=2:00", "dora wall=1:00")
    house.later(ms=MINUTE)
    ends(house, brief)
    assert house.go().starts == [short]
    for again in (0, 1):  # the pass that started one had looked at another, in front of it
        (late,) = house.submit("dora wall=1:00")
        assert house.go().starts == []
        assert house.decided_again == again
        assert [house.why(seq).ahead for seq in (long, last, late)] == [0, 2, 2]


def test_whom_a_promise_keeps_back_beside_those_at_their_limits_is_told_what_a_whole_pass_tells_him():
    house = House().machine(pes=7).change(ev.Change("create", "consumable/gpu", {"units": ("0",)}))
    house.queue("limited", user_limit=1, priority=1)
    house.queue("strict", order="fcfs", backfill="none", reserve=1)
    house.submit("ben gpu=1 wall=10:00", "ben gpu=1 pes=5 wall=1:00", queue="strict")
    house.go()
    wide, _, long = house.submit("cleo pes=6 wall=3:00", "cleo", "anne pes=4 wall=12:00", queue="limited")
    assert house.go().starts == [wide]
    house.go()
    house.submit("ben", queue="strict")
    assert house.go().starts == []
    assert house.decided_again >= 1
    assert house.why(long).text == "user limit 1 of queue limited is reached for cleo"


def test_whom_a_shift_that_drains_keeps_back_by_now_is_told_so():
    house = House().machine(pes=2)
    house.queue("night", order="fcfs", backfill="none")
    house.submit("anne pes=2 wall=2:00", "ben wall=3:00")
    at = house.now + 3 * MINUTE
    house.site.upcoming_stops = {"night": UpcomingStop(at, "day", "drain", "8:00")}
    house.site.closings = {"night": at}
    house.go()
    house.submit("cleo wall=1:00")
    house.later(seconds=1)
    assert house.go().starts == []
    assert house.decided_again == 0
    assert house.why(2).text.startswith("its wall limit of 3:00 goes beyond 8:00")
