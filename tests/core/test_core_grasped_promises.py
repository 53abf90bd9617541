"""Managers who grasp at what was promised: they may break a promise, and that is told with its cause; nobody
else waits for what can never be."""

import pytest
from core.harness import START, promised

from nqspy.model.ids import Instant
from nqspy.model.reasons import ReasonCode

MINUTE = 60_000


@pytest.fixture
def easy(house):
    """Eight PEs, six of which are held for ten minutes; one that wants all of them is promised a start."""
    house.machine(pes=8).queue("night", order="fcfs", reserve=1, priority=9).queue("other")
    house.run("anne pes=6 wall=10:00", "ben pes=8 wall=5:00", queue="night")
    assert promised(house, 2) == 10
    return house


def test_who_asks_for_more_than_a_smaller_machine_has_loses_its_promise_and_blocks_nobody(easy):
    (long,) = easy.machine(pes=7).submit("cleo pes=1 wall=11:00", queue="other")
    assert easy.go().starts == [long]
    assert promised(easy, 2) is None
    [told] = [each.event.causes for each in easy.events if getattr(each.event, "causes", None)]
    assert told == {2: "as things are it can never start"}
    assert easy.why(2).code is ReasonCode.NEVER


def test_for_those_of_a_stopped_queue_nothing_is_kept_and_their_promise_stands(easy):
    (long,) = easy.set("queue/night/started", False).submit("cleo pes=2 wall=11:00", queue="other")
    assert easy.go().starts == [long]
    assert promised(easy, 2) == 10
    (longer,) = easy.set("queue/night/started", True).submit("dora pes=1 wall=30:00", queue="other")
    assert easy.go().starts == []
    easy.later(minutes=10).end(1)
    assert easy.go().starts == []
    assert easy.request(2).reservation.late == "what it needs is held by 3.ymp"
    assert easy.why(longer).code is ReasonCode.RESERVED


def test_a_queue_that_is_stopped_when_a_promise_is_due_is_told_as_the_cause(easy):
    assert easy.set("queue/night/started", False).go().plan.wake_at == Instant(START + 10 * MINUTE)
    easy.later(minutes=10).end(1)
    assert easy.go().starts == []
    assert easy.request(2).reservation.late == "queue night is stopped"
    easy.later(minutes=60).set("queue/night/started", True)
    assert easy.go().starts == [2]


@pytest.mark.parametrize("limited", ["queue/night/run_limit", "complex/both/run_limit"])
def test_a_lower_limit_that_closes_its_queue_is_told_when_the_promise_is_due(house, limited):
    house.machine(pes=8).queue("night", order="fcfs", reserve=1).complex("both", "night")
    house.run("anne pes=4 wall=10:00", "cleo pes=2 wall=30:00", "ben pes=6 wall=5:00", queue="night")
    assert promised(house, 3) == 10
    house.set(limited, 1).later(minutes=10).end(1)
    assert house.go().starts == []
    assert house.request(3).reservation.late == "what it needs is held by 2.ymp"
    house.later(minutes=20).end(2)
    assert house.go().starts == [3]


@pytest.mark.parametrize(
    "settings", [{"reserve": 0}, {"reserve": None}, {"backfill": "none"}, {"backfill": "contract"}]
)
def test_other_rules_for_those_who_come_change_nothing_for_who_was_promised_a_start(easy, settings):
    for name, value in settings.items():
        easy.set(f"queue/night/{name}", value)
    (long,) = easy.submit("cleo pes=2 wall=11:00", queue="other")
    assert easy.go().starts == []
    assert easy.why(long).code is ReasonCode.RESERVED
    easy.later(minutes=10).end(1)
    assert easy.go().starts == [2]
    assert promised(easy, 2) is None
