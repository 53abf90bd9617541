"""A home's journal gone through again: as it was, or in two courses of which one is under something else.

For a caller that wants both courses of a night: ``apart(lambda far: mine(replayed(what, other, far)))``,
where `gathered` reads the journal before and ``mine`` makes of what came of it what JSON can hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nqspy.engine import timetable
from nqspy.engine.replay.course import Course, CourseChange, Moves, nothing_again, side_by_side
from nqspy.engine.replay.follow import Follower
from nqspy.engine.replay.recording import Recording
from nqspy.model.actions import ExitFailure
from nqspy.model.errors import NqspyError
from nqspy.model.ids import Instant
from nqspy.model.site import Site
from nqspy.model.twin import twin_of
from nqspy.report.time_text import Zone
from nqspy.sim.replay.apart import Far, NotReplayed
from nqspy.sim.replay.exits import Choice, ExitVersions, RecordedExits, files_in
from nqspy.sim.replay.past import RecordedPast
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


@dataclass
class Gathered:
    """What a replay needs: nothing of it is read later. ``versions``: the user exits that were loaded;
    ``failures``: what these failed at shortly before."""

    zone: Zone
    recording: Recording
    versions: ExitVersions
    failures: Sequence[tuple[Instant, ExitFailure]]


@dataclass
class Replayed(Gathered):
    """A time of a home's journal: ``before``, the site as it began. Where nothing is other than it was,
    ``was`` has gone through it event by event; else ``off`` is a course without the change and ``would`` one
    with it, by ``exits``; ``moves``: why starts moved."""

    was: Follower
    before: Site
    off: Course | None = None
    would: Course | None = None
    moves: Moves = field(default_factory=Moves)
    exits: RecordedExits | None = None
    words: str = ""

    @property
    def site(self) -> Site:
        """The site at the end, as it was."""
        return self.was.site if self.off is None else self.off.site


def gathered(
    past: RecordedPast,
    since: Instant | None = None,
    until: Instant | None = None,
    now: Sequence[Source] | None = None,
) -> Gathered:
    """What the journal has from ``since`` to ``until``; ``now``: the user exits in force, by default those in
    the home's folder. No code of the site is run. Raises NotReplayed."""
    recording = past.recording(since, until)
    first = recording.events[0]
    failures = past.failures(first.n - 1, Instant(first.at - RETRY))
    versions = past.exit_versions(recording.events, files_in(past.home / "exits") if now is None else now)
    site = past.now_site
    timetable.next_firing(site.settings, site.timezone, first.at)  # it reads what there is of zones
    return Gathered(past.zone, recording, versions, failures)


def beginning(what: Gathered) -> Replayed:
    """Stand at the beginning of a recorded time. User exits run in this process (`apart`)."""
    exits = RecordedExits(what.versions)
    was = Follower(what.recording, exits, exits)
    exits.failed_before(was.site, what.failures)
    return Replayed(what.zone, what.recording, what.versions, what.failures, was, twin_of(was.site))


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
            _other_course(found, other, far)
    return found


def _other_course(found: Replayed, other: Other, far: Far) -> None:
    """Lay a course without the change and one with it side by side: they take requests in alike."""
    others = other.exits is not None and found.versions.unlike(other.exits)
    change = replace(other.change, routed=other.change.routed or others)
    without = replace(change, commands=(), again=nothing_again, files=False)
    then, found.exits = RecordedExits(found.versions), RecordedExits(found.versions, other.exits)
    found.off = Course(found.recording, then, then, without)
    found.would = Course(found.recording, found.exits, found.exits, change)
    if found.exits.problems:
        raise NotReplayed(found.exits.problems[0])
    for exits in (then, found.exits):
        exits.failed_before(found.before, found.failures)
    try:
        found.moves = side_by_side(found.off, found.would, far)
    except NqspyError as error:
        raise NotReplayed(f"{other.words or 'the change'}: {error}") from error


def exits_of(folder: Path) -> Choice:
    """Choose the files of a folder of exits at all times. Raises NotReplayed where it is none."""
    if not folder.is_dir():
        raise NotReplayed(f"{folder} is no folder of user exits")
    sources = files_in(folder)
    return lambda files: sources
