"""A journal gone through again is the same to the event."""

from engine.harness import Centre
from engine.test_engine_properties import SETTINGS, live, steps
from hypothesis import given, settings

from nqspy.core.no_exits import NoExits
from nqspy.engine.replay.follow import Follower
from nqspy.engine.replay.recording import Recording
from nqspy.model.site import Site
from nqspy.store.memory import MemoryJournal


def recording(journal: MemoryJournal) -> Recording:
    """All that a journal has, from an empty site on."""
    return Recording(Site, list(journal.events()), journal.ended)


def unlike(journal: MemoryJournal) -> list:
    """Where it is not the same."""
    follower = Follower(recording(journal), NoExits())
    follower.follow()
    return follower.differences


@settings(max_examples=3000, deadline=None)
@given(steps)
def test_whatever_happened_happens_again_to_the_event(happenings):
    centre = Centre(SETTINGS, length=100, pes=3)
    live(centre, happenings)
    centre.later(hours=30)
    assert not unlike(centre.journal)
