"""Settings: tried on a copy, verified as a whole, then one event; files of ``queues.d`` as one
transaction."""

from copy import deepcopy
from typing import Any

from nqspy.engine import calendar
from nqspy.engine.desk.context import Desk
from nqspy.engine.desk.people import need, role_of
from nqspy.model import commands as cm
from nqspy.model.configure import OBJECTS, apply_change, problems
from nqspy.model.errors import BadValue, Refusal
from nqspy.model.events import Change, FilesApplied, SettingsChanged
from nqspy.model.people import Caller
from nqspy.model.site import Settings
from nqspy.model.tree import declared


def configure(desk: Desk, command: cm.Configure, caller: Caller) -> Any:
    """Carries out all of the changes or none. Raises Refusal with the first thing that is wrong."""
    _need_rights(desk.site.settings, command.changes, caller)
    settings = try_changes(desk, desk.site.settings, command.changes, command.upsert)
    verify(desk, settings)
    if not command.check_only:
        commit_changes(desk, command.changes, caller.user, command.source)
    return {"changed": len(command.changes)}


def commit_changes(desk: Desk, changes: tuple[Change, ...], who: str, source: str) -> None:
    """Records changes that were verified, and has a pass look at them."""
    if changes:
        desk.emit(SettingsChanged(changes, who, source))
        desk.exits.begin(desk.site)
        desk.dirty()


def _need_rights(settings: Settings, changes: tuple[Change, ...], caller: Caller) -> None:
    if role_of(settings, caller) == "manager":
        return
    for change in changes:
        head, _, rest = change.path.partition("/")
        info = None
        if change.op == "set" and head in OBJECTS:
            info = declared(OBJECTS[head][1]).get(rest.partition("/")[2])
        need(
            settings, caller, "operator" if info is not None and info.operator else "manager", _words(change)
        )


def _words(change: Change) -> str:
    return f"{change.op} {change.path.replace('/', ' ')}"


def try_changes(
    desk: Desk, settings: Settings, changes: tuple[Change, ...], upsert: bool, strict: bool = True
) -> Settings:
    """A copy of the settings with the changes. Raises Refusal.

    Not ``strict``: exits that are not loaded may be named (a shift must come into force without them).
    """
    copy = deepcopy(settings)
    for change in changes:
        try:
            if strict or not change.path.startswith("exit/"):
                _check_change(desk, copy, change)
            apply_change(copy, change, upsert)
        except BadValue as error:
            raise Refusal(str(error), "bad_value", 166) from None
    return copy


def _check_change(desk: Desk, settings: Settings, change: Change) -> None:
    head, _, rest = change.path.partition("/")
    name, _, path = rest.partition("/")
    if head == "exit" and path not in ("enabled", "budget"):
        desk.exits.check_setting(name, path, str(change.value))
    elif head == "exit" and name not in desk.exits.declared():
        raise BadValue(f"there is no exit {name}; loaded: {', '.join(desk.exits.declared()) or 'none'}")
    elif head == "server" and rest == "timezone" and change.value is not None:
        calendar.zone_of(str(change.value))
    elif head == "queue" and change.op == "delete" and name in settings.queues:
        _check_queue_is_done(desk, settings, name)
    elif head == "shift" and change.op in ("create", "set"):
        _check_shift(desk, settings, change)


def _check_shift(desk: Desk, settings: Settings, change: Change) -> None:
    commands = change.value.get("commands", ()) if change.op == "create" else ()
    for each in changes_of(list(commands)):
        _check_change(desk, settings, each)
    when = change.value.get("when", ()) if change.op == "create" else change.value
    if change.op == "create" or change.path.endswith("/when"):
        for cron in when:
            calendar.check_cron(cron)


def _check_queue_is_done(desk: Desk, settings: Settings, name: str) -> None:
    queue = settings.queues[name]
    if queue.enabled or queue.started:
        raise BadValue(f"queue {name} must be disabled and stopped before it is deleted")
    count = desk.site.count(name)
    if count:
        raise BadValue(f"queue {name} still holds {count} requests; move or delete them first")


def verify(desk: Desk, settings: Settings) -> None:
    """Raises Refusal unless the whole set of settings makes sense, every shift's commands included."""
    wrong = problems(settings)
    if wrong:
        raise Refusal(wrong[0], "bad_settings", 166)
    zone = settings.server.timezone or desk.site.zone
    clash = calendar.collisions(settings.shifts.values(), zone, desk.now)
    if clash is not None:
        raise Refusal(f"{clash}; one of them must fire at another minute", "bad_settings", 166)
    for shift in settings.shifts.values():
        shift_changes = tuple(changes_of(shift.commands))
        try:
            wrong = problems(try_changes(desk, settings, shift_changes, upsert=True, strict=False))
        except Refusal as refusal:
            wrong = [str(refusal)]
        if wrong:
            raise Refusal(f"shift {shift.name}: {wrong[0]}", "bad_settings", 166)


def changes_of(commands: list[dict[str, Any]]) -> list[Change]:
    """The settings changes among a shift's commands, in order."""
    decoded = (cm.decode(data) for data in commands)
    return [change for each in decoded if isinstance(each, cm.Configure) for change in each.changes]


def apply_files(desk: Desk, command: cm.ApplyFiles, caller: Caller) -> Any:
    """Applies changed files of ``queues.d``: an error in any leaves the old settings in force. Raises
    Refusal naming the file."""
    settings = desk.site.settings
    changes: list[Change] = []
    for name, _hash, commands in command.files:
        for data in commands:
            each = cm.decode({k: v for k, v in data.items() if k != "at"})
            if not isinstance(each, cm.Configure):
                raise Refusal(f"{name}: only settings may stand in queues.d, not {each.cmd}", "bad_value")
            try:
                settings = try_changes(desk, settings, each.changes, upsert=True)
            except Refusal as refusal:
                where = data.get("at", "")
                raise Refusal(f"{name}{where}: {refusal}", refusal.code) from None
            changes += each.changes
    verify(desk, settings)
    commit_changes(desk, tuple(changes), caller.user, "queues.d")
    desk.emit(FilesApplied(tuple((name, digest) for name, digest, _ in command.files)))
    return {"changed": len(changes)}
