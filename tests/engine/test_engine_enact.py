"""What a plan's actions do, one after the other."""

from core.harness import House

from nqspy.engine.enact import enact
from nqspy.model import events as ev
from nqspy.model.actions import Kill, Plan, Requeue, Start
from nqspy.model.cause import SCHEDULER


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
    assert [order.seq for order in enact(here.site, plan, here._event, stands)] == [2]
    assert seen == [(1, []), (2, []), (1, [2])]


def test_who_shall_run_again_is_ended_by_the_hands_first():
    here = house()
    here.go()
    events = []
    [order] = enact(here.site, Plan((Requeue(1, 1, SCHEDULER, "why"),)), events.append)
    assert order == Kill(1, 1, "requeued", here.site.settings.server.grace)
    [event] = events
    assert (type(event), event.rerun, event.text) == (ev.Deleting, True, "why")
