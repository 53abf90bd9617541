"""Changes of the settings: how each is carried out, and what the whole settings must satisfy. Commands try
changes on a copy and refuse bad ones; `lifecycle` carries out the same changes on the site."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import copy
from typing import Any, TypeVar

from nqspy.model import registry, tree
from nqspy.model.domains import APPLICATION, names
from nqspy.model.errors import BadValue
from nqspy.model.events import Change
from nqspy.model.ids import Instant
from nqspy.model.machine import ExitSettings
from nqspy.model.people import Group, is_address
from nqspy.model.queues import Queue, accepts
from nqspy.model.registry import SettingsObject
from nqspy.model.shifts import APART
from nqspy.model.site import Settings
from nqspy.model.tree import as_list

T = TypeVar("T")

RENAMED = {"server/mail": "mail/command"}
"""Settings that had another path once: journals and rows may still name it."""


def renamed(path: str) -> str:
    """Return the present path of a setting, given its present or a former path."""
    return RENAMED.get(path, path)


def apply_changes(settings: Settings, changes: Iterable[Change], upsert: bool = False) -> None:
    """Carry out the changes in order. ``upsert``: creating an existing object changes it instead of failing.
    Raises BadValue at the first change that fails; the settings are then half changed, so use a copy."""
    for change in changes:
        apply_change(settings, change, upsert)


def apply_change(settings: Settings, change: Change, upsert: bool = False) -> None:
    """Carry out one change in ``settings``; ``upsert``: as in `apply_changes`. Raises BadValue."""
    kind, name, path = registry.split(renamed(change.path))
    if change.path.partition("/")[0] == "managers":
        if change.path != "managers" or change.op not in ("set", "add", "remove"):
            raise BadValue(f"{change.path}: write managers as a list like (anne:m, bob:o)")
        roles = _roles(change.value)
        if change.op == "remove":
            settings.managers = {user: role for user, role in settings.managers.items() if user not in roles}
        else:
            settings.managers = (settings.managers if change.op == "add" else {}) | roles
    elif kind is None:
        raise BadValue(f"there is no setting {change.path}")
    elif kind.named:
        _change_object(settings, kind, name, path, change, upsert)
    elif change.op not in ("set", "add", "remove"):
        raise BadValue(f"{kind.head} can only be set; {change.op} needs an object with a name")
    elif kind.head == "sched_factor" and change.value is None:
        raise BadValue(f"sched_factor {path} must be a whole number from 0 upward")
    else:
        _set_one(kind.one(settings), path, change)


def _change_object(
    settings: Settings, kind: SettingsObject[Any], name: str, path: str, change: Change, upsert: bool
) -> None:
    objects, head = kind.all(settings), kind.head
    if change.op in ("create", "delete") and path:
        raise BadValue(f"'{name}/{path}' is no name of a {head}: a name has no slash")
    if name == "*" and change.op == "set":
        for each in objects.values():
            if not isinstance(each, Queue) or accepts(each, path, change.value):
                tree.put(each, path, change.value)
    elif change.op == "create":
        _create(objects, kind, name, change.value, upsert)
    elif name not in objects and change.op == "set" and (head == "exit" or name == kind.standing):
        _check_name(head, name)
        node = kind.kind(name)
        _set_one(node, path, change)
        objects[name] = node
    elif name not in objects:
        names = ", ".join(sorted(kind.names(settings)))
        known = f"; {head}{'es' if head[-1] in 'sx' else 's'}: {names}" if 0 < len(names) < 200 else ""
        raise BadValue(f"there is no {head} {name}{known}")
    elif change.op == "delete":
        del objects[name]
    elif head == "shift" and path == "counts" and change.op == "set":
        objects[name].counts = _counts(change.value)
    else:
        _set_one(objects[name], path, change)


def _create(objects: dict[str, Any], kind: SettingsObject[Any], name: str, given: Any, upsert: bool) -> None:
    head = kind.head
    if name in objects and not upsert:
        raise BadValue(f"{head} {name} already exists")
    _check_name(head, name)
    if not isinstance(given, dict | None):
        raise BadValue(f"the settings of {head} {name} must be names with values, not {given!r}")
    values = dict(given or {})
    node = objects.get(name) or kind.kind(name)
    if head == "queue":
        queue_kind = values.pop("kind", "batch")
        if name in objects and node.kind != queue_kind:
            raise BadValue(f"queue {name} already exists as a {node.kind} queue")
        if queue_kind not in ("batch", "pipe"):
            raise BadValue(f"the kind of a queue must be batch or pipe, not {queue_kind!r}")
        node.kind = queue_kind
    if head == "shift":
        commands = values.pop("commands", node.commands)
        if not isinstance(commands, list | tuple) or not all(isinstance(each, dict) for each in commands):
            raise BadValue("the commands of a shift must be a list of commands")
        node.commands = list(commands)
        node.counts = _counts(values.pop("counts", {}))
    for path, value in values.items():
        tree.put(node, path, value)
    objects[name] = node


def _counts(given: Any) -> dict[str, Instant]:
    if not isinstance(given, dict) or not all(isinstance(each, int) for each in given.values()):
        raise BadValue("counts of a shift must give an instant for each of its times")
    return dict(given)


def _check_name(head: str, name: str) -> None:
    good = name and len(name) <= 31 and not name[0].isdigit() and all(c.isalnum() or c in "-_." for c in name)
    if not good or not name.isascii():
        raise BadValue(
            f"{name!r} is not a name for a {head}; write up to 31 letters, digits, - _ . with no digit first"
        )
    if head in ("queue", "domain") and name.lower() == "all":
        raise BadValue(f"{name} is not a name for a {head}: it is a word of qmgr")


def _set_one(node: Any, path: str, change: Change) -> None:
    if isinstance(node, ExitSettings) and path not in ("enabled", "budget"):
        node.values[path] = str(change.value)
    elif change.op == "set":
        tree.put(node, path, change.value)
    else:
        present = tree.list_at(node, path)
        if present is None:
            kind = type(node).__name__.lower()
            raise BadValue(f"{change.op} needs a list; {path or 'this'} of a {kind} is not a list")
        names = _names(change.value)
        remaining = tuple(n for n in present if n not in names)
        tree.put(node, path, (*remaining, *names) if change.op == "add" else remaining)


def _names(value: Any) -> list[str]:
    names = list(as_list(value))
    if not names or not all(isinstance(name, str) for name in names):
        raise BadValue(f"expected a list of names like (a, b), not {value!r}")
    return names


def _roles(value: Any) -> dict[str, str]:
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list | tuple) and not value:
        pairs = []
    else:
        pairs = [(user, role or "m") for user, _, role in (text.partition(":") for text in _names(value))]
    for user, role in pairs:
        if role not in ("m", "o"):
            raise BadValue(f"{user}:{role}: the role must be m (manager) or o (operator)")
    return dict(pairs)


def copy_of(settings: Settings) -> Settings:
    """Return a copy of settings on which changes can be tried."""
    made = Settings(managers=dict(settings.managers))
    for kind in registry.singles():
        kind.put(made, tree.copy_node(kind.one(settings)))
    for kind in registry.named():
        kind.put(made, {name: tree.copy_node(node) for name, node in kind.all(settings).items()})
    return made


class Trial:
    """Copy of ``settings`` on which a command tries changes before it records them. An object is copied when
    a change first touches it; the others are shared with the original. ``touched``: paths of the touched
    objects. ``plain``: True while a check of the touched objects alone is enough (`is_plain`)."""

    def __init__(self, settings: Settings) -> None:
        self.settings = copy(settings)
        self.settings.managers = dict(settings.managers)
        self.settings.of_features = dict(settings.of_features)
        for kind in registry.named():
            kind.put(self.settings, dict(kind.all(settings)))
        self.touched: set[str] = set()
        self.plain = True

    def apply(self, change: Change, upsert: bool = False) -> None:
        """Carry out one change in the trial's settings and record the touched objects. Raises BadValue."""
        kind, name, _ = registry.split(renamed(change.path))
        if kind is not None:
            for each in list(kind.all(self.settings)) if name == "*" else (name,):
                path = f"{kind.head}/{each}" if kind.named else kind.head
                node = kind.find(self.settings, each)
                if path not in self.touched and not kind.named:
                    kind.put(self.settings, tree.copy_node(node))
                elif path not in self.touched and node is not None:
                    kind.all(self.settings)[each] = tree.copy_node(node)
                self.touched.add(path)
        self.plain = self.plain and is_plain(self.settings, change)
        apply_change(self.settings, change, upsert)


def is_plain(settings: Settings, change: Change) -> bool:
    """True if a change cannot make an object wrong that it does not touch, so no other needs a check."""
    kind, name, path = registry.split(renamed(change.path))
    if kind is None:
        return change.op != "delete"
    if change.op == "create" and kind.named and kind.head != "shift":
        return name not in kind.all(settings)
    return change.op != "delete" and not kind.is_joined(path)


def dump(settings: Settings) -> dict[str, Any]:
    """Return all settings as rows: path of each object -> its settings that differ from the defaults."""
    return {path: dump_object(settings, path) or {} for path in object_paths(settings)}


def object_paths(settings: Settings) -> list[str]:
    """Return the paths of all objects: ``queue/night``, ``global``, ``managers``."""
    many = (path for kind in registry.named() for path in kind.paths(settings))
    return [*(kind.head for kind in registry.singles()), "managers", *many]


def dump_object(settings: Settings, path: str) -> dict[str, Any] | None:
    """Return the settings of the object at a path that differ from the defaults; None: it does not exist."""
    if path == "managers":
        return dict(settings.managers)
    kind, name, _ = registry.split(path)
    node = kind.find(settings, name) if kind is not None else None
    return None if kind is None or node is None else kind.dump(node)


def ignored(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the settings (``PATH NAME=VALUE``) in rows of `dump` that no longer exist, which `load` omits."""
    for path, values in rows.items():
        kind, _, _ = registry.split(path)
        if kind is None:
            continue
        for name, value in values.items():
            is_known = name in kind.extra or f"{path}/{name}" in RENAMED
            if not (is_known or tree.is_declared(kind.known.get(name), value)):
                yield f"{path} {name}={value}"


def load(rows: dict[str, dict[str, Any]]) -> Settings:
    """Return the settings in rows of `dump`; objects in the order of the rows."""
    settings = Settings()
    if command := rows.get("server", {}).get("mail"):
        rows = {**rows, "mail": {"command": command, **rows.get("mail", {})}}
    for path, values in rows.items():
        kind, name, _ = registry.split(path)
        if path == "managers":
            settings.managers = dict(values)
        elif kind is None:
            continue
        elif kind.named:
            kind.all(settings)[name] = kind.load(values, name)
        else:
            shipped = tree.dump(settings.sched_factor) if path == "sched_factor" else {}
            kind.put(settings, kind.load(shipped | values))
    return settings


def problems(settings: Settings, touched: Collection[str] | None = None) -> list[str]:
    """Return a line for each error in the settings as a whole, such as unknown names. ``touched``: paths of
    the objects changed since all was right (``queue/night``), to check only their effects; None: check
    all."""
    queues = _concerned(settings.queues, "queue", touched, lambda queue: queue.destinations)
    groups = _concerned(settings.groups, "group", touched, lambda group: (group.parent,))
    return [
        *_problems_of_queues(settings, queues),
        *_problems_of_complexes(settings, touched),
        *_problems_of_defaults(settings),
        *_problems_of_groups(settings, groups),
        *_problems_of_shifts(settings),
        *_problems_of_mail(settings, groups),
        *(line for kind in registry.objects() for line in kind.check(settings, touched)),
    ]


def _concerned(
    objects: Mapping[str, T],
    head: str,
    touched: Collection[str] | None,
    names: Callable[[T], Collection[str | None]],
) -> list[T]:
    """Return all objects (``touched`` None), or the touched ones of the kind ``head`` and those that refer to
    a deleted one. ``names``: returns the names that an object refers to."""
    if touched is None:
        return list(objects.values())
    own = sorted(path.partition("/")[2] for path in touched if path.startswith(f"{head}/"))
    deleted = {name for name in own if name not in objects}
    naming = (each for each in objects.values() if not deleted.isdisjoint(names(each))) if deleted else ()
    return [*(objects[name] for name in own if name in objects), *naming]


def _problems_of_queues(settings: Settings, queues: Iterable[Queue]) -> Iterable[str]:
    for queue in queues:
        for name in queue.destinations:
            if name not in settings.queues:
                yield f"queue {queue.name}: destination {name} does not exist"
        if queue.domain not in (known := names(settings.domains)):
            yield f"queue {queue.name}: there is no domain {queue.domain}; domains: {', '.join(known)}"
        if queue.kind == "pipe" and queue.domain != APPLICATION:
            yield f"queue {queue.name}: a pipe queue has no PEs and no domain; set the domain of batch queues"
        if queue.kind == "pipe" and _in_circle(settings, queue.name):
            yield f"queue {queue.name}: its destinations lead back to it"


def _problems_of_complexes(settings: Settings, touched: Collection[str] | None) -> Iterable[str]:
    for one in settings.complexes.values():
        paths = (f"complex/{one.name}", *(f"queue/{name}" for name in one.queues))
        for name in one.queues if touched is None or any(path in touched for path in paths) else ():
            if name not in settings.queues or settings.queues[name].kind != "batch":
                yield f"complex {one.name}: {name} is not a batch queue"


def _problems_of_defaults(settings: Settings) -> Iterable[str]:
    default, of_mpprun = settings.default.queue, settings.default.mpprun_queue
    for name, what, word in ((default, "default", "batch_request"), (of_mpprun, "mpprun's", "mpprun")):
        if name is not None and name not in settings.queues:
            yield (
                f"{what} queue {name} does not exist; first set default {word} queue OTHER,"
                f" or set no_default {word} queue"
            )
    if of_mpprun in settings.queues:
        domain = settings.domains.get(settings.queues[of_mpprun].domain)
        if domain is not None and domain.is_command:
            yield (
                f"mpprun's queue {of_mpprun}: domain {domain.name} has kind=command, and its requests hold no"
                " PEs; name a queue of another domain"
            )


def _in_circle(settings: Settings, start: str) -> bool:
    visited: set[str] = set()
    todo = list(settings.queues[start].destinations)
    while todo:
        name = todo.pop()
        if name == start:
            return True
        if name in settings.queues and name not in visited:
            visited.add(name)
            todo += settings.queues[name].destinations if settings.queues[name].kind == "pipe" else ()
    return False


def _problems_of_groups(settings: Settings, groups: Iterable[Group]) -> Iterable[str]:
    for group in groups:
        visited = {group.name}
        parent = group.parent
        while parent is not None:
            if parent not in settings.groups:
                yield f"group {group.name}: parent {parent} does not exist"
                break
            if parent in visited:
                yield f"group {group.name}: its parents form a circle"
                break
            visited.add(parent)
            parent = settings.groups[parent].parent


def _problems_of_shifts(settings: Settings) -> Iterable[str]:
    begins: dict[str, str] = {}
    for shift in settings.shifts.values():
        if not shift.when:
            yield f'shift {shift.name} has no time; write when=("30 8 * * mon-fri")'
        for cron in dict.fromkeys(shift.when):
            if cron in begins:
                yield f"shift {shift.name} fires at the same minutes as shift {begins[cron]}: {cron}; {APART}"
            begins[cron] = shift.name


def _problems_of_mail(settings: Settings, groups: Iterable[Group]) -> Iterable[str]:
    for group in groups:
        for address in group.mail:
            if not is_address(address):
                yield f"group {group.name}: {address!r} is not a mail address; write anne or anne@example.org"
    mail = settings.mail
    if mail.sender is not None and not is_address(mail.sender):
        yield f"mail: {mail.sender!r} is not a mail address; write nqs@example.org"
    if mail.smtp is not None and not _is_server(mail.smtp):
        yield f"mail: {mail.smtp!r} is not a mail server; write HOST or HOST:PORT"
    if (mail.user is None) != (mail.password_file is None):
        yield "mail: give both user and password_file, or neither"
    elif mail.user is not None and not (mail.user.isprintable() and mail.user):
        yield f"mail: {mail.user!r} is not a user name for a mail server"
    elif mail.user is not None and mail.tls == "none":
        yield "mail: a password needs encryption; add tls=starttls or tls=implicit"
    if mail.password_file is not None and not mail.password_file.startswith("/"):
        yield f"mail: {mail.password_file!r} is not a whole path of a password file"


def _is_server(text: str) -> bool:
    host, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    number = port.isdigit() and port.isascii() and 0 < int(port) < 65536 if colon else True
    host = (host if colon else text).removeprefix("[").removesuffix("]")
    return number and bool(host) and all(c.isascii() and (c.isalnum() or c in ".-_:") for c in host)
