"""What a plan's actions do, one after the other."""

from core.harness import House, promised

from nqspy.engine.enact import MISSED
from nqspy.model import events as ev
from nqspy.model.ids import Seq


def begun_after(**away) -> list[ev.Event]:
    """What the journal has when one that was promised a start could have it in time, and nobody looks for so
    long after that."""
    house = House()
    house.machine(pes=8).queue("night", order="fcfs", reserve=1)
    house.submit("anne pes=6 wall=10:00")
    house.go()
    (wide,) = house.submit("ben pes=8 wall=5:00")
    house.go()
    assert promised(house, wide) == 10
    house.end(Seq(1))
    house.later(minutes=10, **away)
    before = len(house.events)
    assert house.go().starts == [wide]
    assert house.request(wide).reservation is None
    return [each.event for each in house.events[before:]]


def test_a_start_that_nobody_looked_for_in_time_is_told_with_its_cause():
    _, told, start, *_ = begun_after(seconds=16)
    assert told.starts[start.seq].late == MISSED


def test_a_start_within_a_moment_of_its_promise_is_not_late():
    _, start, *_ = begun_after(seconds=1)
    assert isinstance(start, ev.Starting)
