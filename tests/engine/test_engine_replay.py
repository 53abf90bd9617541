"""A journal gone through again is the same to the event."""

from collections.abc import Iterable
from typing import Any

import pytest
from engine.harness import Centre, moment
from engine.test_engine_properties import SETTINGS, live, steps
from examples import examples
from hypothesis import given, settings
from msgspec import structs

from nqspy.core.no_exits import NoExits
from nqspy.engine.replay.course import Course, CourseChange, side_by_side
from nqspy.engine.replay.follow import Follower
from nqspy.engine.replay.recording import Recording
from nqspy.engine.virtual.attempts import ENDLESS
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import observations as ob
from nqspy.model.events import Recorded
from nqspy.model.requests import Ending, Used
from nqspy.model.site import Site
from nqspy.model.site_checks import check_site
from nqspy.store.journal import SqliteJournal


def recording(journal: Any) -> Recording:
    """All that a journal has, from an empty site on."""
    return Recording(Site, list(journal.events()), journal.ended)


def unlike(journal: Any) -> list:
    """Where it is not the same."""
    follower = Follower(recording(journal), NoExits())
    follower.follow()
    return follower.differences


@settings(max_examples=examples(150), deadline=None)
@given(steps)
def test_whatever_happened_happens_again_to_the_event_and_goes_to_its_end_under_a_change(happenings):
    centre = Centre(SETTINGS, length=100, pes=3)
    live(centre, happenings)
    centre.later(hours=30)
    assert not unlike(centre.journal)
    was, would = course(centre, "set sched_factor time 1")  # as it is: nothing is moved
    assert happened(was.made) == happened(would.made)
    check_site(was.site)
    check_site(course(centre, "set machine pes=1", "set global run_limit=2")[1].site)


def course(centre: Centre, *lines: str) -> tuple[Course, Course]:
    """The course of all that happened without a change, and with these commands."""
    taken = recording(centre.journal)
    changes = tuple(change for line in lines for change in centre.command(line).changes)
    change = CourseChange(
        (cm.Configure(changes, "replay", upsert=True),) if changes else (), lambda settings: changes
    )
    was, would = Course(taken, NoExits()), Course(taken, NoExits(), change=change)
    side_by_side(was, would)
    return was, would


def happened(events: Iterable[Recorded]) -> list:
    """What happened, without what a change set and the numbers of events."""
    ours = (each for each in events if getattr(each.event, "source", "") != "replay")
    return [
        (each.at, structs.replace(each.event, as_of=0) if hasattr(each.event, "as_of") else each.event)
        for each in ours
    ]


def test_a_course_without_a_change_is_what_happened():
    """Ends by themselves, at a limit, by an order and without a trace; a person moves and deletes."""
    centre = Centre(pes=2, length=600)
    for line in ("anne", "ben wall=5:00", "anne pes=2", "ben", "anne name=lost", "ben", "anne"):
        centre.submit(line)
        centre.later(seconds=1)
    centre.qmgr("delete request 4")
    centre.later(minutes=11)
    assert centre.state(5) == centre.state(6) == "running"
    centre.sim.feed([ob.ObservedLost(5, 1)])
    centre.later(minutes=1)
    centre.ask(cm.Delete(("6",), force=True))
    centre.later(hours=2)
    was, _ = course(centre, "set machine pes=3")
    assert happened(was.made) == happened(centre.journal.events())
    assert (was.hands.unknown[2], was.hands.unknown[6]) == ((300_000, ENDLESS), None)


def down_until(centre: Centre, instant: str) -> None:
    """The daemon is dead until then: what has ended and come due meanwhile is found when it starts."""
    centre.sim.now = moment(instant)
    centre.sim.make(centre.journal.load())
    centre.engine.note(ev.DaemonStarted(centre.site.at, False), centre.sim.now)
    centre.engine.flush(centre.sim.now)
    used = Used(600_000, 600_000)
    ends = [ob.ObservedEnded(seq, 1, Ending("exit", 0, None, used)) for seq in centre.site.started]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(centre.sim.executor, "scan", lambda expected: ends)
        centre.sim.restart()


def test_what_a_start_finds_comes_before_what_came_by_time_and_both_come_again(tmp_path):
    centre = Centre(SETTINGS, length=600, pes=3, journal=SqliteJournal.open(tmp_path / "nqs.db"))
    first, _ = centre.submit("anne wall=2:00:00", "ben wall=2:00:00")
    centre.submit(f"ben name=later wall=2:00:00 after={first}", "anne at=+1800 wall=2:00:00")
    centre.later(minutes=1)
    down_until(centre, "2026-03-02T21:30:00+01:00")
    centre.later(hours=2)
    kinds = [each.kind for each in centre.events()]
    found = kinds[kinds.index("daemon_started") + 1 :][:5]
    assert found == ["ended", "ended", "eligible", "settings_changed", "shift_changed"], kinds
    assert not unlike(centre.journal)
    was, would = course(centre, "set queue batch enabled=yes", "set global run_limit=1")
    assert was.started == would.started == {1, 2, 3, 4}
    assert happened(was.made) != happened(would.made)
