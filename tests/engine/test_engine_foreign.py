"""Scans find foreign jobs: what the engine makes of it, over a restart, and in a replay."""

import pytest
from core.story import foreign_jobs
from engine.harness import PLAIN, Centre, observable
from engine.story import play

from nqspy.engine.inputs import Observed
from nqspy.engine.replay.commands import inputs_of
from nqspy.model import events as ev
from nqspy.model.ids import Instant
from nqspy.model.observations import ObservedForeign

STORIES = {
    "its PE is taken until it ends": """foreign 1; submit anne, ben; state 1 running 2 queued; pes 1 0
        why 2 NO_PES machine; says 2 foreign jobs have PE 1 (zoe: spin, process 100)
        foreign -; state 2 running; pes 2 1; events foreign 2""",
    "the same picture again is no event": "foreign 0; foreign 0; foreign 0 1; foreign 0 1; events foreign 2",
    "what runs goes on and ends as it would": """submit anne, ben; foreign 0-1; later 10m; empty; ran 1 600
        ran 2 600; submit cleo; state 3 queued; foreign -; state 3 running""",
    "over a restart it stands until the next scan": """foreign 0-1; submit anne; restart; state 1 queued
        foreign -; state 1 running""",
    "a CPU that is no PE does not count": "foreign 7; events foreign 0; submit anne, ben; state 2 running",
    "with more PEs than CPUs no PE is a CPU": """qmgr set machine pes=3; foreign 0-1; events foreign 0
        submit anne, ben, cleo; state 3 running""",
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_stories_of_foreign_jobs(title):
    play(STORIES[title])


def test_an_observation_of_a_later_instant_is_simulated_like_all_others():
    centre = Centre(length=60)
    centre.sim.see(Instant(centre.sim.now + 1_000), ObservedForeign(foreign_jobs("0-1")))
    centre.sim.see(Instant(centre.sim.now + 3_600_000), ObservedForeign(()))
    centre.later(minutes=1)
    (seq,) = centre.submit("anne")
    centre.later(minutes=58)
    assert centre.state(seq) == "queued"
    centre.later(minutes=10)
    assert centre.state(seq) == "ended"
    assert centre.waits()[seq] == 59
    centre.is_sound()


def test_the_look_ahead_starts_nothing_on_its_pes():
    centre = Centre(PLAIN)
    centre.sim.feed([ObservedForeign(foreign_jobs("1"))])
    first, second, wide = centre.submit("anne wall=10:00", "ben wall=10:00", "cleo pes=2 wall=10:00")
    found = centre.forecasts()
    assert found[second].probably.start == centre.sim.now + 600_000
    assert found[wide].probably.start is None
    assert centre.state(first) == "running"


def test_a_what_if_run_finds_the_same_jobs():
    centre = Centre(PLAIN)
    event = ev.ForeignChanged(foreign_jobs("0"))
    assert inputs_of(centre.site, event) == (Observed((event,)),)


def test_a_journal_with_foreign_jobs_gives_the_same_site_again():
    centre = Centre(PLAIN)
    for words in ("1", "0-1", "0", ""):
        centre.sim.feed([ObservedForeign(foreign_jobs(*words.split()))])
        centre.submit("anne", "ben")
        centre.later(minutes=3)
        assert observable(centre.journal.load()) == observable(centre.site)
    assert centre.site.foreign == ()
    assert ev.decode("foreign", b"{}") == ev.ForeignChanged()
