"""The simulator: how time passes, and what is asked while it does."""

import pytest
from engine.harness import ANNE, PLAIN, Centre

from nqspy.engine.virtual.executor import Run
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.errors import Refusal
from nqspy.model.ids import Instant


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
    centre.sim.at(Instant(centre.sim.now + 5000), cm.ReleaseRequests(("1",)), ANNE)
    centre.later(seconds=4)
    assert centre.state(1) == "held"
    centre.later(seconds=1)
    assert centre.state(1) == "running"
    with pytest.raises(Refusal):
        centre.ask(cm.PurgeQueue("batch"), ANNE)


def test_the_same_story_twice_is_the_same_journal():
    def story():
        centre = Centre(lengths=lambda r: Run(wall=1000 * (r.seq * 37 % 91 + 1)))
        centre.submit(*("anne cpu=60", "ben cpu=600", "cleo") * 5)
        centre.later(hours=1)
        return centre.events()

    assert story() == story()


def test_a_journal_with_a_history_is_gone_on_with():
    first = Centre(length=60)
    first.submit("anne held")
    second = Centre("", journal=first.journal, at="2026-03-02T22:00:00+01:00")
    second.ask(cm.ReleaseRequests(("1",)))
    second.later(seconds=700)
    assert [e.seq for e in second.events(ev.Ended)] == [1]
    second.is_sound()
