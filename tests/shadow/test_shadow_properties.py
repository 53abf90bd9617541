"""In random worlds the scheduler never differs from the rules as the shadow has them from the manual, and the
shadow finds each alteration of a journal."""

from core.harness import House
from core.properties.worlds import QUEUE, REQUEST, asked_for, built, course, live, worlds
from examples import examples
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from shadow.test_shadow import judged

from nqspy.model import events as ev

OWN = st.sampled_from([0, 0, 0, 0, 1, -3])


def told(verdict):
    return [(each.seq, each.before, each.text) for each in verdict.differences]


@settings(max_examples=examples(150), deadline=None)
@given(worlds())
def test_no_start_differs_from_the_rules_and_nobody_is_left_who_could_start(world):
    live(world, 12, lambda plan: None)
    verdict = judged(world.house.events)
    assert not told(verdict)
    assert {text[:6] for text in verdict.partly} <= {"shares", "two st"}


PLAIN = {"order": "fcfs", "backfill": "limit", "backfill_order": "order"}
PLAIN |= {"user_limit": None, "pe_limit": None}
SMALL = {"queue": "front", "owner": "anne", "early": 0, "after": 0, "gpu": 0, "mem": 1}
SECOND_TURN = [  # when the first ends early the second does, so that the last must go before the third
    (SMALL | {"pes": 5, "wall": 5, "early": 4}, 0),
    (SMALL | {"pes": 2, "wall": 3}, 0),
    (SMALL | {"pes": 4, "wall": 1}, 0),
    (SMALL | {"pes": 1, "wall": 5, "queue": "back", "after": 1}, 0),
]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(QUEUE, min_size=3, max_size=3), st.lists(st.tuples(REQUEST, OWN), min_size=2, max_size=18))
@example([PLAIN | {"reserve": None}, PLAIN | {"reserve": 0}, PLAIN | {"reserve": 0}], SECOND_TURN)
def test_nor_do_promised_starts_nor_who_passes_them(queues, requests):
    house, each = built(queues), [asked | {"p": own} for asked, own in requests]
    for _ in course(house, each, lambda one: asked_for(one) + f" p={one['p']}", House.end):
        pass
    assert not told(judged(house.events))


@settings(max_examples=examples(100), deadline=None)
@given(worlds(), st.data())
def test_a_start_that_is_left_out_of_a_journal_is_found(world, data):
    live(world, 12, lambda plan: None)
    events = world.house.events
    starts = [each.event.seq for each in events if isinstance(each.event, ev.Starting)]
    assume(starts)
    missing = data.draw(st.sampled_from(starts))
    gone = (ev.Starting, ev.Started, ev.Ended)
    events = [each for each in events if not (isinstance(each.event, gone) and each.event.seq == missing)]
    found = judged(events).differences
    assert found, "nobody missed it"
    waits = world.house.site.settings.queues[queue_of(events, missing)].name
    assert waits in {queue_of(events, each.seq) for each in found}


def queue_of(events, seq):
    return next(e.event.queue for e in events if isinstance(e.event, ev.Submitted) and e.event.seq == seq)


@settings(max_examples=examples(100), deadline=None)
@given(worlds(), st.data())
def test_so_is_a_start_on_other_pes(world, data):
    live(world, 12, lambda plan: None)
    events = world.house.events
    starts = [place for place, each in enumerate(events) if isinstance(each.event, ev.Starting)]
    assume(starts)
    place = data.draw(st.sampled_from(starts))
    start = events[place].event
    wrong = replace(start, pes=tuple(pe + 1 for pe in start.pes))
    altered = [*events[:place], replace(events[place], event=wrong), *events[place + 1 :]]
    assert (start.seq, events[place].at) in {(each.seq, each.at) for each in judged(altered).differences}
