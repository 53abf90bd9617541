"""A home's journal gone through again: as it was, or in two courses of which one is under something else.

For a caller that wants both courses of a night: ``isolated(lambda far: mine(replayed(what, other, far)))``,
where `gathered` reads the journal before and ``mine`` makes of what came of it what JSON can hold.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from nqspy.engine import calendar
from nqspy.engine.replay.follow import Follower
from nqspy.engine.replay.recording import Recording
from nqspy.engine.replay.what_if import REPLAY, WaitReasons, WhatIf, WhatIfChange, no_changes, side_by_side
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.actions import ExitFailure
from nqspy.model.configure import object_paths
from nqspy.model.errors import NqspyError
from nqspy.model.ids import Instant
from nqspy.model.settings import Settings
from nqspy.model.site import Site
from nqspy.model.site_copy import copy_site
from nqspy.qmgr.parser import parse_text
from nqspy.report.time_text import Zone
from nqspy.sim.main import encoded, shift_text
from nqspy.sim.replay.exits import Choice, ExitVersions, RecordedExits, files_in
from nqspy.sim.replay.home_journal import HomeJournal
from nqspy.sim.replay.isolated import NotReplayed, Progress
from nqspy.sim.runs import calm
from nqspy.userexit.call_stats import RETRY
from nqspy.userexit.loader import Source


@dataclass(frozen=True)
class Alternative:
    """A change against the past: settings and ``exits`` (None: the same), in ``words`` for people."""

    change: WhatIfChange = WhatIfChange()
    exits: Choice | None = None
    words: str = ""

    @property
    def nothing(self) -> bool:
        """True if all is as it was."""
        return not self.change.commands and self.exits is None


UNCHANGED = Alternative()
STEP = 100
"""Events between two reports of progress."""


@dataclass
class ReplayInput:
    """Material of a replay. ``failures``: what the ``versions`` failed at shortly before."""

    zone: Zone
    recording: Recording
    versions: ExitVersions
    failures: Sequence[tuple[Instant, ExitFailure]]


@dataclass
class Replayed(ReplayInput):
    """A time of a home's journal: ``before``, the site as it began. Where nothing is other than it was,
    ``was`` has gone through it event by event; else ``off`` is a course without the change and ``would`` one
    with it, by ``exits``; ``wait_reasons``: why starts moved."""

    was: Follower
    before: Site
    off: WhatIf | None = None
    would: WhatIf | None = None
    wait_reasons: WaitReasons = field(default_factory=WaitReasons)
    exits: RecordedExits | None = None
    words: str = ""

    @property
    def site(self) -> Site:
        """The site at the end, as it was."""
        return self.was.site if self.off is None else self.off.site


def gathered(
    past: HomeJournal,
    since: Instant | None = None,
    until: Instant | None = None,
    now: Sequence[Source] | None = None,
) -> ReplayInput:
    """Gather what the journal has from ``since`` to ``until``, without site code. Raises NotReplayed."""
    recording = past.recording(since, until)
    first = recording.events[0]
    failures = past.failures(first.n - 1, Instant(first.at - RETRY))
    versions = past.exit_versions(recording.events, files_in(past.home / "exits") if now is None else now)
    site = past.now_site
    calendar.next_firing(site.settings, site.timezone, first.at)  # it reads what there is of zones
    return ReplayInput(past.zone, recording, versions, failures)


def beginning(what: ReplayInput) -> Replayed:
    """Stand at the beginning of a recorded time. User exits run in this process (`isolated`)."""
    exits = RecordedExits(what.versions)
    was = Follower(what.recording, exits, exits)
    exits.failed_before(was.site, what.failures)
    return Replayed(what.zone, what.recording, what.versions, what.failures, was, copy_site(was.site))


def replayed(
    what: ReplayInput, other: Alternative = UNCHANGED, far: Progress = lambda done: None
) -> Replayed:
    """Go through it again, as it was and, if ``other`` says so, under a change. Raises NotReplayed."""
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


def _other_course(found: Replayed, other: Alternative, far: Progress) -> None:
    """Lay a course without the change and one with it side by side: they take requests in alike."""
    others = other.exits is not None and found.versions.unlike(other.exits)
    change = replace(other.change, routed=other.change.routed or others)
    without = replace(change, commands=(), reapply=no_changes, files=False)
    then, found.exits = RecordedExits(found.versions), RecordedExits(found.versions, other.exits)
    found.off = WhatIf(found.recording, then, then, without)
    found.would = WhatIf(found.recording, found.exits, found.exits, change)
    if found.exits.problems:
        raise NotReplayed(found.exits.problems[0])
    for exits in (then, found.exits):
        exits.failed_before(found.before, found.failures)
    try:
        found.wait_reasons = side_by_side(found.off, found.would, far)
    except NqspyError as error:
        raise NotReplayed(f"{other.words or 'the change'}: {error}") from error


def exits_of(folder: Path) -> Choice:
    """Choose the files of a folder of exits at all times. Raises NotReplayed where it is none."""
    if not folder.is_dir():
        raise NotReplayed(f"{folder} is no folder of user exits")
    sources = files_in(folder)
    return lambda files: sources


_ROUTING = ("queue/", "default/")
"""Paths of settings that may have requests routed otherwise."""


def settings_of(text: str, source: str) -> tuple[tuple[ev.Change, ...], tuple[str, ...]]:
    """Return the settings that qmgr commands change, and those commands that a shift may have too. Raises
    NotReplayed, ParseError."""
    changes, lines = list[ev.Change](), list[str]()
    for parsed in parse_text(text, source):
        if not isinstance(parsed.command, cm.Configure):
            words = " ".join(parsed.text.split()[:2])
            raise NotReplayed(f"{source}: {words!r} is no setting: a replay changes settings only")
        changes += parsed.command.changes
        if not any(each.path.startswith("shift/") for each in parsed.command.changes):  # no shift sets one
            lines.append(parsed.text)
    return tuple(changes), tuple(lines)


def throughout(text: str) -> WhatIfChange:
    """Have these settings hold all the time, whatever a shift or a person sets. Raises NotReplayed."""
    changes, lines = settings_of(text, "-c")

    def again(settings: Settings) -> tuple[ev.Change, ...]:
        """Set them again, and have each shift set them when it comes into force."""
        found = list(changes)
        for shift in settings.shifts.values():
            if lines and tuple(shift.lines[-len(lines) :]) != lines:
                found += settings_of(shift_text(shift, lines), f"shift {shift.name}")[0]
        return tuple(found)

    return _change(changes, again)


def as_if_applied(text: str, source: str) -> WhatIfChange:
    """A file of commands as if applied last before the beginning; shifts set theirs. Raises NotReplayed."""
    changes, _ = settings_of(text, source)
    return _change(changes, lambda settings: changes)


def _change(
    changes: tuple[ev.Change, ...], again: Callable[[Settings], tuple[ev.Change, ...]]
) -> WhatIfChange:
    if not changes:
        return WhatIfChange()
    commands = (cm.Configure(changes, REPLAY, upsert=True, advise=False),)
    routed = any(each.path.startswith(_ROUTING) for each in changes)

    def still_to_do(settings: Settings) -> tuple[ev.Change, ...]:
        """Return what is to be set again, without deleting what is deleted."""
        wanted = again(settings)
        gone = {each.path for each in wanted if each.op == "delete"}
        gone -= set(object_paths(settings)) if gone else gone
        return tuple(each for each in wanted if each.op != "delete" or each.path not in gone)

    return WhatIfChange(commands, still_to_do, routed=routed)


def other_queues(folder: Path) -> WhatIfChange:
    """The files of another folder ``queues.d``. Raises NotReplayed."""
    files = []
    for path in sorted(folder.glob("*.qmgr")):
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise NotReplayed(f"{path} cannot be read: {error}") from None
        files.append((path.name, sha256(text.encode()).hexdigest()[:32], encoded(path.name, text)))
    if not files:
        raise NotReplayed(f"{folder} has no files *.qmgr")
    return WhatIfChange((cm.ApplyFiles(tuple(files)),), files=True, routed=True)


def both(one: WhatIfChange, other: WhatIfChange) -> WhatIfChange:
    """Two changes, one after the other."""
    return WhatIfChange(
        (*one.commands, *other.commands),
        lambda settings: (*one.reapply(settings), *other.reapply(settings)),
        one.files or other.files,
        one.routed or other.routed,
    )
