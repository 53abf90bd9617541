"""Changes of settings: tried on a copy, verified as a whole, then recorded in one event; files of
``queues.d`` in one transaction; times of shifts that were typed; manual correction of use."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from unicodedata import category

import msgspec
from msgspec.structs import replace

from nqspy.core import consumables, domains, features
from nqspy.engine import calendar
from nqspy.engine.handlers.context import Transaction
from nqspy.engine.handlers.people import need, role_of
from nqspy.engine.handlers.queue_quota import check_spool
from nqspy.engine.zones import local, zone_of
from nqspy.model import commands as cm
from nqspy.model import registry
from nqspy.model.configure import Trial, is_plain, problems, renamed
from nqspy.model.errors import BadValue, Refusal, listed
from nqspy.model.events import Change, FilesApplied, SettingsChanged, UsageCorrected
from nqspy.model.ids import Instant
from nqspy.model.machine import SHELL_STRATEGY
from nqspy.model.people import DEFAULT_GROUP, Caller, Role, with_default
from nqspy.model.queues import accepts
from nqspy.model.shifts import Shift
from nqspy.model.site import Settings
from nqspy.model.texts import in_words
from nqspy.model.tree import Declared, as_list, list_at
from nqspy.model.units import GREATEST, format_span


def configure(tx: Transaction, command: cm.Configure, caller: Caller) -> Any:
    """Carry out all of the changes or none (``check_only``: none). Return their number, ``text`` about shifts
    that begin later and about devices found, and with ``advise`` ``warnings`` about what can never start or
    be routed. Raises Refusal with the first error."""
    asked = changes = command.changes
    _need_rights(tx.site.settings, asked, caller)
    if command.live:
        changes = _counted(tx.site.settings, asked, tx.now)
    trial = try_changes(tx, Trial(tx.site.settings), changes, command.upsert)
    verify(tx, trial, deletions=True)
    for change in () if command.upsert else asked:
        _check_heeded(trial.settings, change)
    if not command.check_only:
        commit_changes(tx, changes, caller.user, command.source)
    text = _shift_lines(trial.settings, asked, changes, tx.site.timezone, tx.now)
    text += consumables.found_lines(tx.site, trial.settings, changes)
    more: dict[str, Any] = {"text": text} if text else {}
    if command.advise:
        more["warnings"] = features.verify(trial.settings, tx.site)
    return {"changed": len(asked)} | more


def commit_changes(tx: Transaction, changes: tuple[Change, ...], who: str, source: str) -> None:
    """Apply and record verified changes in one event, and ask for a pass."""
    if changes:
        tx.emit(SettingsChanged(changes, who, source))
        tx.exits.begin(tx.site)
        tx.dirty()


def _need_rights(settings: Settings, changes: tuple[Change, ...], caller: Caller) -> None:
    for change in changes if not caller.trusted else ():
        for why in _guards(settings, change):
            raise Refusal("guarded_setting", change=_words(change), why=why)
    if role_of(settings, caller) == "manager":
        return
    for change in changes:
        info = registry.declared_at(change.path) if change.op == "set" else None
        role: Role = "operator" if info is not None and info.operator else "manager"
        need(settings, caller, role, _words(change))


def _guards(settings: Settings, change: Change) -> Iterator[str]:
    """Yield why only root and the home's owner may make a change, unless it sets a default. Settings that a
    new object or a shift contains count too. Raises BadValue."""
    change = replace(change, path=renamed(change.path))
    kind, object_name, _ = registry.split(change.path)
    known: Mapping[str, Declared] = kind.known if kind is not None else {}
    values = registry.brought(change)
    for name, value in values.items():
        if name in known and (change.op, value) != ("set", known[name].default):
            harmless = isinstance(value, str) and re.fullmatch(known[name].unguarded, value)
            yield from () if harmless or not known[name].guard else (known[name].guard,)
    if kind is consumables.CONSUMABLES and "units" in values and object_name in settings.consumables:
        env = settings.consumables[object_name].env  # its value is the names of the units
        yield from _guards(settings, Change("set", f"consumable/{object_name}/env", env))
    if kind is not None and kind.head == "shift":
        for inner in changes_of(commands_of(_members(values.get("commands")))):
            yield from _guards(settings, inner)


def _words(change: Change) -> str:
    """Return a change as a person would type it, without its value."""
    verbs = {"enabled": ("disable", "enable"), "started": ("stop", "start")}
    head, *rest = change.path.split("/")
    rest = ["all" if word == "*" else word for word in rest]
    if change.op == "set" and rest[-1:] and rest[-1] in verbs and head in ("queue", "exit"):
        return f"{verbs[rest.pop()][bool(change.value)]} {head} {' '.join(rest)}"
    return " ".join((change.op, head, *rest))


def try_changes(
    tx: Transaction, trial: Trial, changes: Iterable[Change], upsert: bool = False, strict: bool = True
) -> Trial:
    """Make changes in a trial, on a copy of the settings, and return it; the site stays as it is. Raises
    Refusal for the first wrong one. ``upsert``: an existing object may be created again.

    Not ``strict``: exits that are not loaded may be named (a shift must come into force without them).
    """
    for change in changes:
        try:
            if strict:
                _check_characters(change)
            if strict or not change.path.startswith("exit/"):
                _check_change(tx, trial.settings, change)
            if strict:
                _check_words(trial.settings, change, upsert)
            trial.apply(change, upsert)
        except BadValue as error:
            raise Refusal("bad_setting", reason=error) from None
    return trial


def _check_change(tx: Transaction, settings: Settings, change: Change) -> None:
    """Check what only the engine knows of one change: exits, time zones, cron times. Raises BadValue."""
    head, _, rest = change.path.partition("/")
    name, _, path = rest.partition("/")
    if (kind := registry.object_of(head)) is not None:
        kind.vet(tx.site, settings, change)
    if head == "exit" and change.op == "set" and path not in ("enabled", "budget"):
        tx.exits.check_setting(name, path, str(change.value))
    elif head == "exit" and change.op == "set" and name not in ("*", *tx.exits.declared()):
        raise BadValue(f"no exit {name} is loaded; loaded exits: {', '.join(tx.exits.declared()) or 'none'}")
    elif head == "server" and rest == "timezone" and change.value is not None:
        zone_of(str(change.value))
    elif head == "server" and rest == "shell_strategy":
        if not SHELL_STRATEGY.fullmatch(str(change.value)):
            raise BadValue(
                f"shell_strategy={change.value} must be login, login_each, free or fixed=(/bin/sh)"
            )
    elif head == "server" and rest == "user_spool" and isinstance(change.value, str):
        check_spool(change.value)
    elif change.path == "calendar/holidays" and change.op in _GIVES and isinstance(change.value, str):
        calendar.check_country(change.value)
    elif change.path in ("calendar/extra", "calendar/workdays") and change.op in _GIVES:
        for day in as_list(change.value):
            calendar.check_day(str(day))
    elif head == "queue" and change.op == "delete" and name in settings.queues:
        if settings.queues[name].enabled or settings.queues[name].started:
            raise BadValue(f"queue {name} must be disabled and stopped before it is deleted")
        if count := tx.site.count(name):
            raise BadValue(f"queue {name} still has requests ({count}); move or delete them first")
    elif head == "shift" and change.op in ("create", "set", "add"):
        create, values = change.op == "create", registry.brought(change)
        for each in commands_of(_members(values.get("commands"))) if create else ():
            if not isinstance(each, cm.IN_SHIFTS):
                raise BadValue(f"a shift cannot run {each.cmd}; it can set, reload exits, abort and purge")
            for one in each.changes if isinstance(each, cm.Configure) else ():
                _check_change(tx, settings, one)
        for cron in as_list(values.get("when")) if create or change.path.endswith("/when") else ():
            calendar.check_cron(str(cron))


_GIVES = ("set", "add")
_IN_HOST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")


def _check_words(settings: Settings, change: Change, upsert: bool) -> None:
    """Raise BadValue for a server name with wrong characters, or for the removal of a word that is not in its
    list (unless ``upsert``)."""
    head, _, rest = change.path.partition("/")
    if head == "server" and rest == "name" and change.op == "set" and isinstance(change.value, str):
        name = change.value
        if not set(name) <= _IN_HOST or not name[:1].isalnum() or len(name) > 64:
            wanted = "up to 64 letters, digits, - . _ that begin with a letter or digit"
            raise BadValue(f"{name[:80]!r} is not a name for the server; write {wanted}")
    elif change.op == "remove" and not upsert:
        # A word that is to be taken out of a list has to be in it.
        kind, named, path = registry.split(change.path)
        present: tuple[str, ...] | None
        if change.path == "managers":
            present, where = tuple(settings.managers), "managers and operators"
        elif kind is None:
            return
        else:
            present = list_at(kind.find(settings, named), path)
            where = f"{path} of {kind.head} {named}" if kind.named else f"{path} days of the {kind.head}"
        for word in as_list(change.value):
            user = str(word).partition(":")[0] if kind is None else word
            if present is not None and user not in present:
                raise BadValue(f"{user} is not in {where}; present: {', '.join(present) or 'none'}")


def _check_heeded(settings: Settings, change: Change) -> None:
    """Raise Refusal for a setting without effect in queues of that kind (batch or pipe), unless the change
    sets its default: old sites may have some."""
    head, _, rest = change.path.partition("/")
    if head == "shift":
        for inner in changes_of(commands_of(_members(registry.brought(change).get("commands")))):
            _check_heeded(settings, inner)
    name, _, path = rest.partition("/")
    queues = list(settings.queues.values())
    if name == "*" and not any(accepts(each, path, change.value) for each in queues):
        name = queues[0].name if queues else ""
    queue = settings.queues.get(name)
    if head != "queue" or queue is None:
        return
    for path, value in registry.brought(change).items():
        if not accepts(queue, path, value):
            raise Refusal("not_heeded", setting=path.replace("/", " "), sort=queue.kind, queue=queue.name)


def _members(value: Any) -> Iterable[Any]:
    """Return the members of a list; of other values nothing, which are refused when they are set."""
    return value if isinstance(value, list | tuple) else ()


def verify(tx: Transaction, trial: Trial, deletions: bool = False) -> None:
    """Raise Refusal unless the tried settings fit each other, the site, and every shift's commands. Only
    effects of the changes are checked. ``deletions``: also that no group in use was deleted."""
    settings, shifts = trial.settings, [path[6:] for path in trial.touched if path.startswith("shift/")]
    former = tx.site.settings.groups.keys() if deletions and not trial.plain else set[str]()
    for name in former - settings.groups.keys():
        if below := ", ".join(group.name for group in settings.groups.values() if group.parent == name):
            raise Refusal("group_is_parent", group=name, below=below)
        count = sum(request.spec.group == name for request in tx.site.requests.values())
        if count and name != DEFAULT_GROUP:
            raise Refusal("group_has_requests", group=name, count=count)
    wrong = problems(settings, trial.touched)
    if wrong:
        raise Refusal("bad_settings", reason=wrong[0])
    clash = calendar.collisions(settings.shifts.values(), shifts) if shifts else None
    if clash is not None:
        raise Refusal("bad_settings", reason=clash)
    for shift in () if trial.plain else settings.shifts.values():
        _verify_shift(tx, settings, shift)
    domains.check_moves(tx.site, settings, trial.touched)
    consumables.check_held(tx.site, settings, trial.touched)


def _verify_shift(tx: Transaction, settings: Settings, shift: Shift) -> None:
    changes: list[Change] = []
    try:
        for change in changes_of(commands_of(shift.commands)):
            kind, name, path = registry.split(change.path)
            if name != "*" or kind is None or not is_plain(settings, change):
                changes.append(change)
            elif (first := next(iter(kind.all(settings)), None)) is not None:
                # A change of all objects is right if it is for the first of them.
                changes.append(replace(change, path=f"{kind.head}/{first}/{path}"))
        trial = try_changes(tx, Trial(settings), changes, upsert=True, strict=False)
        wrong = problems(trial.settings, trial.touched)
    except (Refusal, BadValue) as error:
        wrong = [str(error)]
    if wrong:
        raise Refusal("bad_shift", shift=shift.name, reason=wrong[0])


def commands_of(commands: Iterable[Any]) -> list[cm.Command]:
    """Return a shift's commands from their `commands.encode` form. Raises BadValue."""
    try:
        return [cm.decode(dict(data)) for data in commands]
    except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise BadValue(f"a command of a shift cannot be read: {error}") from None


def changes_of(commands: Iterable[cm.Command]) -> list[Change]:
    """Return the changes of settings in a shift's commands, in order."""
    return [c for each in commands if isinstance(each, cm.Configure) for c in each.changes]


# ---------------------------------------------------------------- queues.d


def apply_files(tx: Transaction, command: cm.ApplyFiles, caller: Caller) -> Any:
    """Apply the changed files of ``queues.d`` in order, then again the settings of the shift in force; return
    the number of changes. An error in any leaves the old settings in force. Raises Refusal with the file."""
    need(tx.site.settings, caller, "manager", "applying queues.d")
    known, trial = tx.site.files, Trial(tx.site.settings)
    changes: list[Change] = []
    for name, digest, commands in command.files:
        for data in commands if known.get(name) != digest else ():
            where = f"{name}{data.get('at', '')}"
            try:
                [each] = commands_of([{key: value for key, value in data.items() if key != "at"}])
                if not isinstance(each, cm.Configure):
                    raise Refusal("no_setting", cmd=each.cmd)
                try_changes(tx, trial, each.changes, upsert=True)
            except (Refusal, BadValue) as error:
                raise Refusal("in_file", where=where, reason=error) from None
            changes += each.changes
    shift = trial.settings.shifts.get(tx.site.shift.current or "")
    if changes and shift is not None:  # the files have the settings without it
        again = changes_of(commands_of(shift.commands))
        try_changes(tx, trial, again, upsert=True, strict=False)
        changes += again
    verify(tx, trial, deletions=True)
    commit_changes(tx, tuple(changes), caller.user, "queues.d")
    files = tuple((name, digest) for name, digest, _ in command.files)
    if dict(files) != known:
        tx.emit(FilesApplied(files))
    return {"changed": len(changes)}


# ---------------------------------------------------------------- use corrected by hand


def correct_use(tx: Transaction, command: cm.CorrectUsage, caller: Caller) -> object:
    """Set the decayed use (ms) of a group and all below it, or change it by so much (``relative``). Return
    the former and the new value, with a text. Raises Refusal."""
    site, name = tx.site, command.group
    need(site.settings, caller, "manager", f"set usage of group {name}")
    groups = with_default(site.settings.groups)
    if name not in groups:
        raise Refusal("unknown_group", group=name, known=listed(groups))
    former = round(site.use_of(name, tx.now))
    value = max(0, former + command.ms) if command.relative else command.ms
    if not 0 <= value <= GREATEST:
        raise Refusal("bad_use", value=command.ms, most=GREATEST)
    tx.emit(UsageCorrected(name, former, value, caller.user))
    tx.dirty()
    text = f"use of group {name}: {format_span(value)}, was {format_span(former)}"
    return {"text": text, "group": name, "former": former, "value": value}


# ---------------------------------------------------------------- characters


_BREAKING = ("Cc", "Zl", "Zp", "Cs")
_SHOWN = 60


def _check_characters(change: Change) -> None:
    """Raise BadValue for a path or value with a control character that is not allowed there."""
    for path, text in _texts(renamed(change.path), change.value):
        if text.isprintable():
            continue
        kind, known = registry.split(path)[0], registry.declared_at(path)
        is_name = kind is None or (known is not None and known.unit != "text")
        allowed = "" if is_name else "\n\t\r"
        if any(category(char) in _BREAKING and char not in allowed for char in text):
            where = change.path if change.path.isprintable() else "the path of a setting"
            raise BadValue(f"{where}: remove line breaks and other control characters: {text[:_SHOWN]!a}")


def _texts(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield all texts in a change, paths of settings too, each after the path of its setting."""
    yield path, path
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _texts(f"{path}/{key}", one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(path, one)


# ---------------------------------------------------------------- times of shifts that are typed


def _counted(settings: Settings, changes: tuple[Change, ...], now: Instant) -> tuple[Change, ...]:
    """Return the changes, with `Shift.counts` set to ``now`` for new cron times that have none."""
    given = {change.path for change in changes if change.path.endswith("/counts")}
    found: list[Change] = []
    for change in changes:
        head, name, path = (*change.path.split("/", 2), "", "")[:3]
        found.append(change)
        if head != "shift" or f"shift/{name}/counts" in given:
            continue
        if change.op == "create" and isinstance(change.value, dict) and "counts" not in change.value:
            times = _times(change.value.get("when"))
            found[-1] = replace(change, value=change.value | {"counts": dict.fromkeys(times, now)})
        elif path == "when" and change.op in ("set", "add") and name in settings.shifts:
            shift, times = settings.shifts[name], _times(change.value)  # those that it had count as they did
            counting = {cron: at for cron, at in shift.counts.items() if change.op == "add" or cron in times}
            counts = counting | {cron: now for cron in times if cron not in shift.when}
            found.append(Change("set", f"shift/{name}/counts", counts))
    return tuple(found)


def _times(value: Any) -> list[str]:
    """Return the words of a list; other values are refused when they are set."""
    return [word for word in as_list(value) if isinstance(word, str)]


def _shift_lines(
    settings: Settings, asked: tuple[Change, ...], changes: tuple[Change, ...], zone: str, now: Instant
) -> str:
    """Return a line for each shift with new times: when it begins, as past times do not count."""
    if changes is asked:
        return ""
    names, lines = dict[str, None](), ""
    for change in [each for each in changes if each.path.startswith("shift/") and each not in asked]:
        if change.value.get("counts") if change.op == "create" else change.value:
            names[change.path.split("/")[1]] = None
    for shift in (settings.shifts[name] for name in names if name in settings.shifts):
        firing = calendar.next_firing(settings, zone, now, [shift])
        if firing is not None:
            begins = in_words(local(firing.at, zone), local(now, zone))
            more = "add now to count past times too"
            lines += f"shift {shift.name} begins at its next firing, {begins}; {more}\n"
    return lines
