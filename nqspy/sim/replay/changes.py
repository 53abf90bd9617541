"""What is to be other than it was, from the words of a command line: settings, files of ``queues.d``."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from nqspy.engine.replay.course import OURS, CourseChange
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.configure import object_paths
from nqspy.model.settings import Settings
from nqspy.model.shifts import Shift
from nqspy.qmgr.parser import ParseError, parse_text
from nqspy.sim.replay.apart import NotReplayed

_ROUTING = ("queue/", "default/")
"""Paths of settings that may have requests routed otherwise."""
_SHIFTS = "shift/"
"""Paths of shifts, which no shift sets."""

Again = Callable[[Settings], tuple[ev.Change, ...]]


def settings_of(text: str, source: str) -> tuple[tuple[ev.Change, ...], tuple[str, ...]]:
    """The settings that qmgr commands change, and those commands that a shift may have too. Raises
    NotReplayed."""
    changes, lines = list[ev.Change](), list[str]()
    try:
        for parsed in parse_text(text, source):
            if not isinstance(parsed.command, cm.Configure):
                words = " ".join(parsed.text.split()[:2])
                raise NotReplayed(f"{source}: {words!r} is no setting: a replay changes settings only")
            changes += parsed.command.changes
            if not any(each.path.startswith(_SHIFTS) for each in parsed.command.changes):
                lines.append(parsed.text)
    except ParseError as error:
        raise NotReplayed(str(error)) from None
    return tuple(changes), tuple(lines)


def throughout(text: str, source: str = "-c") -> CourseChange:
    """These settings hold all the time, whatever a shift or a person sets. Raises NotReplayed."""
    changes, lines = settings_of(text, source)
    return _change(changes, lambda settings: (*changes, *_in_shifts(settings, lines)))


def as_if_applied(text: str, source: str) -> CourseChange:
    """A file of commands, as if it had been applied at the beginning, and were the last word that people have
    said; shifts set what they set. Raises NotReplayed."""
    changes, _ = settings_of(text, source)
    return _change(changes, lambda settings: changes)


def _change(changes: tuple[ev.Change, ...], again: Again) -> CourseChange:
    if not changes:
        return CourseChange()
    commands = (cm.Configure(changes, OURS, upsert=True, advise=False),)
    routed = any(each.path.startswith(_ROUTING) for each in changes)
    return CourseChange(commands, lambda settings: _still_to_do(settings, again(settings)), routed=routed)


def _still_to_do(settings: Settings, changes: tuple[ev.Change, ...]) -> tuple[ev.Change, ...]:
    """Without deleting what is deleted."""
    gone = {each.path for each in changes if each.op == "delete"}
    gone -= set(object_paths(settings)) if gone else gone
    return tuple(each for each in changes if each.op != "delete" or each.path not in gone)


def other_queues(folder: Path) -> CourseChange:
    """The files of another folder ``queues.d``. Raises NotReplayed."""
    files = []
    for path in sorted(folder.glob("*.qmgr")):
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise NotReplayed(f"{path} cannot be read: {error}") from None
        files.append((path.name, _digest(text), _encoded(path.name, text)))
    if not files:
        raise NotReplayed(f"{folder} has no files *.qmgr")
    return CourseChange((cm.ApplyFiles(tuple(files)),), files=True, routed=True)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]


def _encoded(name: str, text: str) -> tuple[dict[str, object], ...]:
    try:
        parsed = parse_text(text, name)
    except ParseError as error:
        raise NotReplayed(str(error)) from None
    commands = (each.command for each in parsed)
    return tuple(cm.encode(each) for each in commands if isinstance(each, cm.Command))


def both(one: CourseChange, other: CourseChange) -> CourseChange:
    """Two changes, one after the other."""
    return CourseChange(
        (*one.commands, *other.commands),
        lambda settings: (*one.again(settings), *other.again(settings)),
        one.files or other.files,
        one.routed or other.routed,
    )


# ---------------------------------------------------------------- shifts


def _in_shifts(settings: Settings, lines: Sequence[str]) -> tuple[ev.Change, ...]:
    """What makes each shift set this too, when it comes into force."""
    found: list[ev.Change] = []
    for shift in settings.shifts.values():
        if lines and tuple(shift.lines[-len(lines) :]) != tuple(lines):
            changes, _ = settings_of(_defined(shift, lines), f"shift {shift.name}")
            found += changes
    return tuple(found)


def _defined(shift: Shift, added: Sequence[str]) -> str:
    """The shift in qmgr's words, with commands behind its own."""
    crons = ", ".join(f'"{cron}"' for cron in shift.when)
    when = f" when=({crons})" if crons else ""
    head = f"define shift {shift.name}{when} spill={shift.spill}"
    return "\n".join([head, *shift.lines, *added, "end", ""])
