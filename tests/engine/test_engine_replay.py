"""A journal gone through again is the same to the event."""

from engine.harness import Centre
from engine.test_engine_properties import SETTINGS, live, steps
from hypothesis import given, settings

from nqspy.core.no_exits import NoExits
from nqspy.engine.replay.course import CourseChange, OtherCourse
from nqspy.engine.replay.follow import Follower
from nqspy.engine.replay.pair import run
from nqspy.engine.replay.recording import Recording
from nqspy.model import commands as cm
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


@settings(max_examples=300, deadline=None)
@given(steps)
def test_whatever_happened_happens_again_to_the_event(happenings):
    centre = Centre(SETTINGS, length=100, pes=3)
    live(centre, happenings)
    centre.later(hours=30)
    assert not unlike(centre.journal)


def course(centre: Centre, *lines: str) -> tuple[Follower, OtherCourse]:
    """The other course of all that happened, with these commands."""
    taken = recording(centre.journal)
    changes = tuple(change for line in lines for change in centre.command(line).changes)
    change = CourseChange(
        (cm.Configure(changes, "replay", upsert=True),) if changes else (), lambda settings: changes
    )
    was = Follower(taken, NoExits())
    would = OtherCourse(taken, NoExits(), None, change, was)
    run(was, would)
    return was, would


@settings(max_examples=300, deadline=None)
@given(steps)
def test_a_change_that_changes_nothing_leaves_the_night_as_it_was(happenings):
    centre = Centre(SETTINGS, length=100, pes=3)
    live(centre, happenings)
    centre.later(hours=30)
    was, would = course(centre, "set sched_factor time 1")
    assert not was.differences
    assert would.left is None


@settings(max_examples=300, deadline=None)
@given(steps)
def test_a_night_under_other_settings_goes_to_its_end(happenings):
    centre = Centre(SETTINGS, length=100, pes=3)
    live(centre, happenings)
    centre.later(hours=30)
    was, would = course(centre, "set machine pes=1", "set global run_limit=2")
    assert not was.differences
    would.site.check()
