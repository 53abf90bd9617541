"""A home's journal gone through again, as it was and under something else.

For who wants both courses of a night: ``apart(lambda far: mine(replayed(what, other, far)))``, where
`gathered` reads the journal before and ``mine`` makes of what came of it what JSON can hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nqspy.engine import timetable
from nqspy.engine.replay import pair
from nqspy.engine.replay.course import CourseChange, OtherCourse, nothing_again
from nqspy.engine.replay.follow import Follower
from nqspy.engine.replay.recording import Recording
from nqspy.model.actions import ExitFailure
from nqspy.model.errors import NqspyError
from nqspy.model.ids import Instant
from nqspy.model.site import Site
from nqspy.model.twin import twin_of
from nqspy.report.time_text import Zone
from nqspy.sim.replay.apart import Far
from nqspy.sim.replay.exits import Choice, ExitVersions, RecordedExits, files_in
from nqspy.sim.replay.past import RecordedPast
from nqspy.sim.replay.wrong import NotReplayed
from nqspy.sim.running import calm
from nqspy.userexit.call_stats import RETRY
from nqspy.userexit.loader import Source


@dataclass(frozen=True)
class Other:
    """What is other than it was. ``change``: settings; ``exits``: other user exits, None: the same;
    ``words``: what people read of it."""

    change: CourseChange = CourseChange()
    exits: Choice | None = None
    words: str = ""

    @property
    def nothing(self) -> bool:
        """Whether it is all as it was."""
        return not self.change.commands and self.exits is None


AS_IT_WAS = Other()
STEP = 100
"""Events between two words of how far it is."""


@dataclass(frozen=True)
class Gathered:
    """What a replay needs: nothing of it is read later. ``versions``: the user exits that were loaded;
    ``failures``: what these failed at shortly before."""

    zone: Zone
    recording: Recording
    versions: ExitVersions
    failures: Sequence[tuple[Instant, ExitFailure]]


@dataclass
class Replayed:
    """A time of a home's journal: ``before``, the site as it began; ``was``, the night as it was gone through
    again; ``would``, its other course, None where nothing is other than it was; ``off``: the course without
    the change, where the journal cannot be repeated to the event; ``moves``: why starts moved.
    ``exits`` are those of the other course."""

    zone: Zone
    recording: Recording
    versions: ExitVersions
    before: Site
    was: Follower
    would: OtherCourse | None = None
    off: OtherCourse | None = None
    moves: pair.Moves = field(default_factory=pair.Moves)
    exits: RecordedExits | None = None
    words: str = ""


def gathered(
    past: RecordedPast,
    since: Instant | None = None,
    until: Instant | None = None,
    courses: int = 2,
    now: Sequence[Source] | None = None,
) -> Gathered:
    """What the journal has from ``since`` to ``until``; ``now``: the user exits in force, by default those in
    the home's folder. No code of the site is run. Raises NotReplayed."""
    recording = past.recording(since, until, courses)
    first = recording.events[0]
    failures = past.failures(first.n - 1, Instant(first.at - RETRY))
    versions = past.exit_versions(recording.events, files_in(past.home / "exits") if now is None else now)
    _load_calendar(past, first.at)
    return Gathered(past.zone, recording, versions, failures)


def _load_calendar(past: RecordedPast, at: Instant) -> None:
    """Reads what there is of zones and holidays."""
    site = past.now_site
    timetable.next_firing(site.settings, site.timezone, at)


def beginning(what: Gathered) -> Replayed:
    """Stand at the beginning of a recorded time. User exits run in this process (`apart`)."""
    exits = RecordedExits(what.versions)
    was = Follower(what.recording, exits, exits)
    exits.failed_before(was.site, what.failures)
    return Replayed(what.zone, what.recording, what.versions, twin_of(was.site), was)


def replayed(what: Gathered, other: Other = AS_IT_WAS, far: Far = lambda done: None) -> Replayed:
    """Go through it again, as it was and, where ``other`` says so, under something else. Raises
    NotReplayed."""
    with calm():
        found = beginning(what)
        found.words = other.words
        if other.nothing:
            for until in range(STEP, len(found.was.events) + STEP, STEP):
                found.was.follow(min(until, len(found.was.events)))
                far(found.was.place)
        else:
            _other_course(found, what, other, far)
    return found


def _other_course(found: Replayed, what: Gathered, other: Other, far: Far) -> None:
    others = other.exits is not None and what.versions.unlike(other.exits)
    change = replace(other.change, routed=other.change.routed or others, asked=others)
    found.exits = exits = RecordedExits(what.versions, other.exits)
    found.would = OtherCourse(found.recording, exits, exits, change, found.was)
    if exits.problems:
        raise NotReplayed(exits.problems[0])
    exits.failed_before(found.before, what.failures)
    try:
        found.moves = pair.run(found.was, found.would, far)
        if found.was.differences:
            found.off = _without_the_change(found, what, change, far)
    except NqspyError as error:
        raise NotReplayed(f"{other.words or 'the change'}: {error}") from error


def _without_the_change(found: Replayed, what: Gathered, change: CourseChange, far: Far) -> OtherCourse:
    """Go the same way without the change."""
    then, exits = RecordedExits(what.versions), RecordedExits(what.versions)
    without = replace(change, commands=(), again=nothing_again, files=False)
    was = Follower(found.recording, then, then)
    off = OtherCourse(found.recording, exits, exits, without, was)
    for each in (then, exits):
        each.failed_before(found.before, what.failures)
    pair.run(was, off, far)
    return off


def exits_of(folder: Path) -> Choice:
    """Choose the files of a folder of exits at all times. Raises NotReplayed where it is none."""
    if not folder.is_dir():
        raise NotReplayed(f"{folder} is no folder of user exits")
    sources = files_in(folder)
    return lambda files: sources
