"""What a plan's actions do, one after the other."""

from core.harness import House, promised

from nqspy.engine.enact import enact
from nqspy.model import events as ev
from nqspy.model.actions import Kill, Plan, Requeue, Start
from nqspy.model.cause import SCHEDULER
from nqspy.model.ids import Seq


def house() -> House:
    """One with two requests that wait."""
    house = House()
    house.queue("q")
    house.submit("anne", "ben")
    return house


def test_each_action_is_asked_when_what_was_before_it_has_happened():
    here, seen = house(), []

    def stands(action):
        seen.append((action.seq, sorted(here.site.started)))
        return action.seq != 1

    plan = Plan((Start(1, 1, (0,)), Start(2, 1, (1,)), Start(1, 1, (0,))))
    assert [order.seq for order in enact(here.site, plan, here.now, here._event, stands)] == [2]
    assert seen == [(1, []), (2, []), (1, [2])]


def test_who_shall_run_again_is_ended_by_the_hands_first():
    here = house()
    here.go()
    events = []
    [order] = enact(here.site, Plan((Requeue(1, 1, SCHEDULER, "why"),)), here.now, events.append)
    assert order == Kill(1, 1, "requeued", here.site.settings.server.grace)
    [event] = events
    assert (type(event), event.rerun, event.text) == (ev.Deleting, True, "why")


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
    assert told.starts[start.seq].late == "nqsd was away or busy at that time, or the clock was set"


def test_a_start_within_a_moment_of_its_promise_is_not_late():
    _, start, *_ = begun_after(seconds=1)
    assert isinstance(start, ev.Starting)
