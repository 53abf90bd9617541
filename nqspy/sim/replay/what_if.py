"""Replay a home's journal: as it was, or in two what-if runs, one of them under a change.

To get both runs of a night: ``source = read_input(past)``, then ``isolated(lambda done:
data_of(NightComparison(replayed(source, other, done))))``, which returns data for JSON."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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
from nqspy.system import queue_files
from nqspy.userexit.call_stats import RETRY
from nqspy.userexit.loader import Source


@dataclass(frozen=True)
class Alternative:
    """A change to replay a time under: settings, and ``exits`` (None: as recorded); ``label``: its text."""

    change: WhatIfChange = WhatIfChange()
    exits: Choice | None = None
    label: str = ""

    @property
    def is_empty(self) -> bool:
        """True if it changes neither settings nor exits."""
        return not self.change.commands and self.exits is None


UNCHANGED = Alternative()
STEP = 100
"""Events between two reports of progress."""


@dataclass
class ReplayInput:
    """Input of a replay. ``versions``: exits loaded then; ``failures``: theirs shortly before it."""

    zone: Zone
    recording: Recording
    versions: ExitVersions
    failures: Sequence[tuple[Instant, ExitFailure]]


@dataclass
class Replayed(ReplayInput):
    """A replayed time. ``before``: the site at its beginning. Without a change ``was`` has followed the
    journal event by event; else ``base`` is a run without the change and ``would`` one with it, under
    ``exits``; ``wait_reasons``: why starts moved."""

    was: Follower
    before: Site
    base: WhatIf | None = None
    would: WhatIf | None = None
    wait_reasons: WaitReasons = field(default_factory=WaitReasons)
    exits: RecordedExits | None = None
    label: str = ""

    @property
    def site(self) -> Site:
        """Return the site at the end, without the change."""
        return self.was.site if self.base is None else self.base.site


def read_input(
    past: HomeJournal,
    since: Instant | None = None,
    until: Instant | None = None,
    now: Sequence[Source] | None = None,
) -> ReplayInput:
    """Read the journal from ``since`` to before ``until``; ``now``: the exits in force (None: files of the
    home). No site code runs. Raises NotReplayed."""
    recording = past.recording(since, until)
    first = recording.events[0]
    failures = past.failures(first.n - 1, Instant(first.at - RETRY))
    versions = past.exit_versions(recording.events, files_in(past.home / "exits") if now is None else now)
    site = past.now_site
    calendar.next_firing(site.settings, site.timezone, first.at)  # it reads the time zones
    return ReplayInput(past.zone, recording, versions, failures)


def at_beginning(source: ReplayInput) -> Replayed:
    """Return the site at the beginning of a recorded time. User exits run in this process (`isolated`)."""
    exits = RecordedExits(source.versions)
    was = Follower(source.recording, exits, exits)
    exits.failed_before(was.site, source.failures)
    return Replayed(source.zone, source.recording, source.versions, source.failures, was, copy_site(was.site))


def replayed(
    source: ReplayInput, other: Alternative = UNCHANGED, done: Progress = lambda done: None
) -> Replayed:
    """Replay a time as it was or, if ``other`` is a change, under it too. Raises NotReplayed."""
    with calm():
        found = at_beginning(source)
        found.label = other.label
        if other.is_empty:
            for until in range(STEP, len(found.was.events) + STEP, STEP):
                found.was.follow(min(until, len(found.was.events)))
                done(found.was.place)
        else:
            _what_if(found, other, done)
    return found


def _what_if(found: Replayed, other: Alternative, done: Progress) -> None:
    """Run the journal without and with the change, side by side; store both runs in ``found``. If the change
    may route submissions elsewhere, both route them anew. Raises NotReplayed."""
    others = other.exits is not None and found.versions.unlike(other.exits)
    change = replace(other.change, routed=other.change.routed or others)
    without = replace(change, commands=(), reapply=no_changes, files=False)
    then, found.exits = (RecordedExits(found.versions, each, True) for each in (None, other.exits))
    found.base = WhatIf(found.recording, then, then, without)
    found.would = WhatIf(found.recording, found.exits, found.exits, change)
    if found.exits.problems:
        raise NotReplayed(found.exits.problems[0])
    for exits in (then, found.exits):
        exits.failed_before(found.before, found.failures)
    try:
        found.wait_reasons = side_by_side(found.base, found.would, done)
    except NqspyError as error:
        raise NotReplayed(f"{other.label or 'the change'}: {error}") from error


def exits_of(folder: Path) -> Choice:
    """Return a choice that loads a folder's exits at all times. Raises NotReplayed if it is no folder."""
    if not folder.is_dir():
        raise NotReplayed(f"{folder} is not a folder; name one with files of user exits (*.py)")
    sources = files_in(folder)
    return lambda files: sources


_ROUTING = ("queue/", "default/")
"""Paths of settings that may change where requests are routed."""


def settings_of(text: str, source: str) -> tuple[tuple[ev.Change, ...], tuple[str, ...]]:
    """Return the changes of qmgr commands in ``text``, and the commands that a shift may also have;
    ``source``: their name in errors. Raises NotReplayed, ParseError."""
    changes, lines = list[ev.Change](), list[str]()
    for parsed in parse_text(text, source):
        if not isinstance(parsed.command, cm.Configure):
            words = " ".join(parsed.text.split()[:2])
            raise NotReplayed(f"{source}: {words!r} is not a setting; a replay changes settings only")
        changes += parsed.command.changes
        if not any(each.path.startswith("shift/") for each in parsed.command.changes):  # no shift sets one
            lines.append(parsed.text)
    return tuple(changes), tuple(lines)


def throughout(text: str) -> WhatIfChange:
    """Return a change that applies settings all the time, whatever else sets them. Raises NotReplayed."""
    changes, lines = settings_of(text, "-c")

    def again(settings: Settings) -> tuple[ev.Change, ...]:
        """Return the changes that repeat these settings, and add them to each shift, which then sets them
        when it begins."""
        found = list(changes)
        for shift in settings.shifts.values():
            if lines and tuple(shift.lines[-len(lines) :]) != lines:
                found += settings_of(shift_text(shift, lines), f"shift {shift.name}")[0]
        return tuple(found)

    return _change(changes, again)


def as_if_applied(text: str, source: str) -> WhatIfChange:
    """Return a change that applies a file of commands just before the beginning; shifts still set theirs.
    Raises NotReplayed."""
    changes, _ = settings_of(text, source)
    return _change(changes, lambda settings: changes)


def _change(
    changes: tuple[ev.Change, ...], again: Callable[[Settings], tuple[ev.Change, ...]]
) -> WhatIfChange:
    if not changes:
        return WhatIfChange()
    commands = (cm.Configure(changes, REPLAY, upsert=True, advise=False),)
    routed = any(change.path.startswith(_ROUTING) for change in changes)

    def remaining(settings: Settings) -> tuple[ev.Change, ...]:
        """Return the changes to set again, without deletions of objects that do not exist."""
        wanted = again(settings)
        absent = {each.path for each in wanted if each.op == "delete"}
        absent -= set(object_paths(settings)) if absent else absent
        return tuple(each for each in wanted if each.op != "delete" or each.path not in absent)

    return WhatIfChange(commands, remaining, routed=routed)


def other_queues(folder: Path) -> WhatIfChange:
    """Return a change that applies the files of another folder ``queues.d``. Raises NotReplayed."""
    files = []
    for path in queue_files.files_of(folder):
        try:
            name, digest, text = queue_files.read(path, None)
        except NqspyError as error:
            raise NotReplayed(str(error)) from None
        files.append((name, digest, encoded(name, text)))
    if not files:
        raise NotReplayed(f"{folder} has no files *.qmgr")
    return WhatIfChange((cm.ApplyFiles(tuple(files)),), files=True, routed=True)


def both(one: WhatIfChange, other: WhatIfChange) -> WhatIfChange:
    """Return a change that applies two changes, one after the other."""
    return WhatIfChange(
        (*one.commands, *other.commands),
        lambda settings: (*one.reapply(settings), *other.reapply(settings)),
        one.files or other.files,
        one.routed or other.routed,
    )
