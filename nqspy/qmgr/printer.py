"""Settings to commands: the whole configuration as text that restores it (``snap``)."""

from collections.abc import Iterable, Iterator
from typing import Any

from nqspy.model import registry, tree
from nqspy.model.machine import ExitSettings
from nqspy.model.people import Group
from nqspy.model.queues import Queue, is_heeded
from nqspy.model.shifts import Shift
from nqspy.model.site import Settings
from nqspy.model.tree import declared
from nqspy.qmgr.attributes import BRANCHES
from nqspy.qmgr.values import quote, write_names, written

_IN_CREATE = ("priority",)
_TOLD_APART = ("server", "mail", "sched_factor")
_DEFAULT_QUEUES = {"queue": "batch_request queue", "mpprun_queue": "mpprun queue"}
"""Defaults that name a queue: printed after the queues."""
_BY_COMMANDS = ("enabled", "started", "destinations", "users", "groups")


def print_settings(settings: Settings) -> str:
    """Return the settings as commands that give the same settings on an empty site. An object comes before
    the commands that need it."""
    managers = [f"{user}:{role}" for user, role in settings.managers.items()]
    defaults = ((words, getattr(settings.default, name)) for name, words in _DEFAULT_QUEUES.items())
    sections = (
        ("server and machine", _singles(settings)),
        ("people", [f"set managers = {write_names(managers)}"] if managers else []),
        *((kind.many, [_created(kind.head, one, kind.standing) for one in kind.all(settings).values()
                       if one.name != kind.standing or any(tree.changed(one))])
          for kind, _ in registry.listed()),
        ("queues", _queues(settings.queues.values())),
        ("complexes", (_created("complex", one) for one in settings.complexes.values())),
        ("groups", (_created("group", one) for one in _parents_first(settings.groups))),
        ("default queue", (f"set default {words} {quote(queue)}" for words, queue in defaults if queue)),
        ("exits", _exits(settings.exits.values())),
        ("shifts", _shifts(settings.shifts.values())),
    )  # fmt: skip
    texts = ((title, "\n".join(lines)) for title, lines in sections)
    return "\n".join(f"# {title}\n{text}\n" for title, text in texts if text)


def _joined(values: dict[str, str], sign: str = "=") -> str:
    return " ".join(f"{name}{sign}{value}" for name, value in values.items())


def _singles(settings: Settings) -> Iterator[str]:
    server = written(tree.changed(settings.server))
    strategy = server.pop("shell_strategy", None)
    for name, value in server.items():
        yield f"set timezone {value}" if name == "timezone" else f"set server {name}={value}"
    if strategy is not None:
        word, sign, path = settings.server.shell_strategy.partition("=")
        yield f"set shell_strategy {word}" + (f"=({quote(path)})" if sign else "")
    mail = written(tree.changed(settings.mail))
    if mail:
        yield f"set mail {_joined(mail)}"
    for kind in registry.singles():
        if kind.head in _TOLD_APART or kind.words is not None:
            continue
        for name, value in written(tree.changed(kind.one(settings))).items():
            if kind.head != "default" or name not in _DEFAULT_QUEUES:
                yield f"set {kind.head} {name}={value}"
    for kind, _ in registry.switched():
        values = written(tree.changed(kind.one(settings)))
        if values:  # in one command: values that are compared with each other change together
            state = f"{values.pop('enabled', 'off')} " if "enabled" in kind.known else ""
            yield f"set {kind.head} {state}{_joined(values)}".rstrip()
    for factor, _, weight in tree.changed(settings.sched_factor):
        yield f"set sched_factor {factor} {weight}"


def _queues(queues: Iterable[Queue]) -> Iterator[str]:
    queues = list(queues)
    for queue in queues:
        yield from _queue(queue)
    for queue in queues:
        if queue.destinations:
            yield f"set destination = {write_names(queue.destinations)} {quote(queue.name)}"
    for queue in queues:
        yield from [f"enable queue {quote(queue.name)}"] * queue.enabled
        yield from [f"start queue {quote(queue.name)}"] * queue.started


def _queue(queue: Queue) -> Iterator[str]:
    name = quote(queue.name)
    values = written(each for each in tree.changed(queue) if is_heeded(queue.kind, each[0]))
    yield f"create {queue.kind}_queue {name} priority={queue.priority}"
    plain = {
        path: value
        for path, value in values.items()
        if "/" not in path and path not in _IN_CREATE and path not in _BY_COMMANDS
    }
    if plain:
        yield f"set queue {name} {_joined(plain)}"
    for listed in ("users", "groups"):
        if listed in values:
            yield f"set {listed} = {values[listed]} {name}"
    for branch in BRANCHES:
        start = f"{branch}/"
        below = {path.removeprefix(start): v for path, v in values.items() if path.startswith(start)}
        if below and branch == "sched_factor":
            yield f"set queue {name} sched_factor {_joined(below, ' ')}"
        elif below:
            yield from (f"set {branch} {limit}={value} {name}" for limit, value in below.items())


def _created(head: str, one: Any, standing: str = "") -> str:
    verb = "set" if one.name == standing else "create"
    values = written(tree.changed(one)) | ({"share": str(one.share)} if head == "group" else {})
    return f"{verb} {head} {quote(one.name)} {_joined(values)}".rstrip()


def _parents_first(groups: dict[str, Group]) -> list[Group]:
    """Return groups in their order, but each behind its parent."""
    done: dict[str, Group] = {}

    def add(group: Group, above: tuple[str, ...]) -> None:
        parent = groups.get(group.parent or "")
        if parent is not None and parent.name not in done and parent.name not in above:
            add(parent, (*above, group.name))
        done.setdefault(group.name, group)

    for group in groups.values():
        add(group, (group.name,))
    return list(done.values())


def _exits(exits: Iterable[ExitSettings]) -> Iterator[str]:
    for one in exits:
        name = quote(one.name)
        values = {key: quote(text) for key, text in one.values.items()}
        if one.budget != declared(ExitSettings)["budget"].default:
            values["budget"] = f"{one.budget}ms"
        if values:
            yield f"set exit {name} {_joined(values)}"
        yield f"{'enable' if one.enabled else 'disable'} exit {name}"


def _shifts(shifts: Iterable[Shift]) -> Iterator[str]:
    for shift in shifts:
        spill = f" spill={shift.spill}" if shift.spill != declared(Shift)["spill"].default else ""
        yield f"define shift {quote(shift.name)} when={write_names(shift.when)}{spill}"
        yield from (f"  {line}" for line in shift.lines)
        yield "end"
