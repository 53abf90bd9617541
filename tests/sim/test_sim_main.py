"""The simulator: how time passes, and what is asked while it does."""

import gc
import tracemalloc
from collections import Counter
from unittest.mock import Mock

import pytest
from engine.harness import ANNE, PLAIN, Centre, item

from nqspy.engine import loop
from nqspy.engine.inputs import CommandAsked
from nqspy.engine.virtual import executor
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.errors import Refusal
from nqspy.model.ids import Instant
from nqspy.store.memory import PassingJournal


def test_time_jumps_from_one_happening_to_the_next_and_stops_when_nothing_is_left():
    centre = Centre(length=600)
    start = centre.sim.now
    centre.submit("anne", "anne", "anne")
    assert centre.sim.run() == start + 1_200_000
    assert not centre.site.requests


def test_a_simulation_without_an_end_gives_up_on_what_waits_for_a_person():
    centre = Centre(PLAIN + 'define shift night when=("0 21 * * *")\nset run_limit=1 batch\nend\n')
    centre.submit("anne held")
    assert centre.sim.run() - centre.sim.site.requests[1].submitted < 10 * 86_400_000


def test_commands_come_at_their_instant_and_refusals_are_raised():
    centre = Centre(length=60)
    centre.submit("anne held")
    centre.sim.heap.push(centre.sim.now + 5000, CommandAsked(cm.ReleaseRequests(("1",)), ANNE))
    centre.later(seconds=4)
    assert centre.state(1) == "held"
    centre.later(seconds=1)
    assert centre.state(1) == "running"
    with pytest.raises(Refusal):
        centre.ask(cm.PurgeQueue("batch"), ANNE)


def test_a_journal_with_a_history_is_gone_on_with():
    first = Centre(length=60)
    first.submit("anne held")
    second = Centre("", journal=first.journal, at="2026-03-02T22:00:00+01:00")
    second.ask(cm.ReleaseRequests(("1",)))
    second.later(seconds=700)
    assert [e.seq for e in second.events(ev.Ended)] == [1]
    second.is_sound()


# ---------------------------------------------------------------- errors, memory
class _Broken:
    """A decider with a bug."""

    def ask(self, site, now, samples):
        raise ZeroDivisionError("a bug")

    def follow(self, events):
        """Do nothing: it reads the site itself."""


def test_a_bug_in_a_pass_ends_the_simulation_with_its_cause():
    centre = Centre(length=60)
    centre.engine.decider = _Broken()
    with pytest.raises(ZeroDivisionError, match="a bug"):
        centre.submit("anne")


def test_a_bug_in_a_handler_ends_the_simulation_with_its_cause(monkeypatch):
    centre = Centre(length=60)
    monkeypatch.setitem(loop.HANDLERS, cm.PurgeQueue, Mock(side_effect=ZeroDivisionError("another bug")))
    with pytest.raises(ZeroDivisionError, match="another bug"):
        centre.ask(cm.PurgeQueue("batch"))


def test_hands_that_break_down_end_the_simulation_with_their_cause():
    centre = Centre(lengths=lambda request: {}[request.seq])
    with pytest.raises(KeyError):
        centre.submit("anne")


def _allocated_by_us() -> int:
    """Return the bytes that our lines have allocated: other threads of a test run have memory too."""
    ours = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/nqspy/*")])
    return sum(each.size for each in ours.statistics("filename"))


def test_nothing_of_what_has_ended_stays_in_memory(monkeypatch):
    """Between the 300th request and the 1,500th. What the interpreter itself keeps for later use differs
    from run to run (60 to 100 KB, some hundred tuples), so objects of ours are counted besides."""
    monkeypatch.setattr(executor, "LEAST", 20)
    told = Counter[str]()
    centre = Centre(
        length=60, journal=PassingJournal(lambda events: told.update(e.event.kind for e in events))
    )
    command = cm.Submit((item("anne", centre.sim.now),))
    arrivals = ((Instant(centre.sim.now + 60_000 * n), CommandAsked(command, ANNE)) for n in range(1500))
    centre.sim.heap.stream(arrivals)
    tracemalloc.start()
    centre.later(minutes=300)
    gc.collect()
    before, ours = _allocated_by_us(), _objects_of_ours()
    centre.sim.run()
    gc.collect()
    more = _allocated_by_us() - before
    tracemalloc.stop()
    assert told["ended"] == 1500
    assert _objects_of_ours() - ours < 100, "an object is kept of each that has ended"
    assert more < 1200 * 160, "a request kept of each that has ended would be more"


def _objects_of_ours() -> int:
    return sum(str(type(each).__module__).startswith("nqspy") for each in gc.get_objects())


def test_what_was_told_long_ago_is_forgotten():
    told = executor.Recent()
    for n in range(5 * executor.LEAST):
        told.append(n)
    told.extend(range(3))
    assert len(told) <= 2 * executor.LEAST
    assert told[-4:] == [5 * executor.LEAST - 1, 0, 1, 2]


def test_a_journal_that_keeps_nothing_cannot_be_begun_again_from():
    centre = Centre(journal=PassingJournal())
    with pytest.raises(RuntimeError, match="no state"):
        centre.sim.restart()
