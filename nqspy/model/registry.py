"""All kinds of objects in the settings, each declared once: rows, rights, grammar, displays, ``snap`` and the
manual find them here. The model declares its own below; a scheduling feature declares its own in its file.
Code that reads settings imports `core.features` first, so that all are declared."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from nqspy.model import machine, tree
from nqspy.model.domains import numbers
from nqspy.model.errors import BadValue
from nqspy.model.events import Change
from nqspy.model.ids import Instant
from nqspy.model.people import Group, Usage
from nqspy.model.queues import Complex, Defaults, Factors, Global, Queue
from nqspy.model.settings import OWNED, Settings
from nqspy.model.shifts import Calendar, Shift
from nqspy.model.site import Site
from nqspy.model.tree import Declared
from nqspy.model.tree import as_list as listed_in

T = TypeVar("T")

ALL = ("*",)
"""Value of ``joined`` that means all settings of an object."""

Stamp = Callable[[Instant | None], str | None]
"""Function that writes an instant as text in the site's zone."""


class Words(Struct, frozen=True):
    """Words of the command language for an object of a feature: ``title`` as a heading, and sentences on its
    verbs. ``usage``: what follows ``create``; ``reserved``: a word that is no name of such an object."""

    title: str
    set: str
    show: str
    create: str = ""
    usage: str = ""
    delete: str = ""
    reserved: str = ""


class Status(Struct, frozen=True):
    """Status of a feature: as data for programs, and as rows of a label and a text."""

    data: Mapping[str, Any]
    rows: Sequence[tuple[str, str]]


class SettingsObject(Struct, Generic[T], frozen=True):
    """A kind of object of the settings.

    ``head``: the first word of its paths; ``kind``: its class, which declares the settings (`tree.setting`);
    ``attribute``: where `Settings` keeps it; none: a feature's; ``named``: there are many, by name, else one;
    ``many``: the word that stands for them behind ``show``; ``extra``: fields that its rows keep beside the
    settings; ``joined``: settings that are right or wrong together with those of other objects (`ALL` of
    them); ``standing``: name of one that there is always, made when it is first set; ``words``: of a
    feature's object, for which the command language has no rules of its own.

    ``check(settings, touched)``: what is wrong with it, in lines; ``touched``: paths of the objects changed
    since all was well, None: look at all. ``settle(site)``: called by `lifecycle` after settings were
    changed; returns True if it changed the feature's state. ``vet(site, settings, change)``: raises BadValue
    for a change that only the state shows to be wrong. ``status(site, stamp)``: the feature's `Status`.
    """

    head: str
    kind: type[T]
    attribute: str = ""
    named: bool = False
    many: str = ""
    extra: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    standing: str = ""
    words: Words | None = None
    check: Callable[[Settings, Collection[str] | None], Iterable[str]] = lambda settings, touched: ()
    settle: Callable[[Site], bool] = lambda site: False
    vet: Callable[[Site, Settings, Change], None] = lambda site, settings, change: None
    status: Callable[[Site, Stamp], Status] = lambda site, stamp: Status({}, ())

    @property
    def known(self) -> Mapping[str, Declared]:
        """Settings of an object of this kind, by path below it."""
        return tree.declared(self.kind)

    def one(self, settings: Settings) -> T:
        """Return the one object of this kind in ``settings``, for a kind without names."""
        found: T = self._get(settings)
        return found

    def all(self, settings: Settings) -> dict[str, T]:
        """Return the objects of this kind in ``settings`` by name, for a kind with names."""
        found: dict[str, T] = self._get(settings)
        return found

    def _get(self, settings: Settings) -> Any:
        return getattr(settings, self.attribute) if self.attribute else settings.of_features[self.head]

    def find(self, settings: Settings, name: str) -> T | None:
        """Return the object of that name; None: there is none. A kind without names has one object, which is
        returned for any name."""
        return self.all(settings).get(name) if self.named else self.one(settings)

    def names(self, settings: Settings) -> list[str]:
        """Return the names of its objects; one that always exists is included before it was set."""
        return list(dict.fromkeys((*((self.standing,) if self.standing else ()), *self.all(settings))))

    def paths(self, settings: Settings) -> list[str]:
        """Return the paths of its objects, in their order."""
        return [f"{self.head}/{name}" for name in self.all(settings)] if self.named else [self.head]

    def put(self, settings: Settings, value: Any) -> None:
        """Replace in ``settings`` the one object of this kind, or the dictionary of all by name."""
        if self.attribute:
            setattr(settings, self.attribute, value)
        else:
            settings.of_features[self.head] = value

    def is_joined(self, path: str) -> bool:
        """True if a setting must be checked together with other objects, or names consumables."""
        info = self.known.get(path)
        return self.joined == ALL or path in self.joined or (info is not None and info.unit == "amounts")

    def dump(self, node: T) -> dict[str, Any]:
        """Return the row of an object: its settings and ``extra`` fields that differ from the defaults."""
        kind: Any = self.kind
        fresh = kind("") if self.extra else None
        extra = {name: value for name in self.extra if (value := getattr(node, name)) != getattr(fresh, name)}
        return extra | tree.dump(node)

    def load(self, values: Mapping[str, Any], name: str = "") -> T:
        """Return the object that has this row of `dump`. Raises BadValue for a value that does not fit."""
        known = {path: value for path, value in values.items() if path not in self.extra}
        node: T = tree.load(self.kind, known, **({"name": name} if self.named else {}))
        for each in self.extra:
            if each in values:
                setattr(node, each, values[each])
        return node


def _days_are_one_thing(settings: Settings, touched: Collection[str] | None) -> Iterable[str]:
    both = sorted(set(settings.calendar.extra) & set(settings.calendar.workdays))
    if both:
        yield f"calendar: {both[0]} is in extra and in workdays; remove it from one of them"


def _vet_offline(site: Site, settings: Settings, change: Change) -> None:
    """Raise BadValue if a change sets PEs offline that do not exist on a machine with ``pes=auto``."""
    given, pes = brought(change).get("offline"), len(site.found.cpus)
    named = tuple(each for each in listed_in(given) if isinstance(each, str))
    beyond = [pe for pe in numbers(named) if pe >= pes] if settings.machine.pes is None else []
    if beyond and change.op in ("set", "add"):
        raise BadValue(machine.no_pe(beyond[0], pes))


_objects: dict[str, SettingsObject[Any]] = {
    each.head: each
    for each in (
        SettingsObject("server", machine.Server, "server"),
        SettingsObject("mail", machine.Mail, "mail", joined=ALL),
        SettingsObject(
            "machine", machine.Machine, "machine", joined=("pes", "shape", "pes_per_node", "offline"),
            check=lambda settings, touched: (
                machine.check_machine(settings.machine) if touched is None or "machine" in touched else ()
            ), vet=_vet_offline,
        ),
        SettingsObject("global", Global, "global_"),
        SettingsObject("default", Defaults, "default", joined=ALL),
        SettingsObject("sched_factor", Factors, "sched_factor"),
        SettingsObject("usage", Usage, "usage"),
        SettingsObject("calendar", Calendar, "calendar", joined=ALL, check=_days_are_one_thing),
        SettingsObject("backup", machine.Backup, "backup"),
        SettingsObject("history", machine.History, "history"),
        SettingsObject("decider", machine.Deciding, "decider"),
        SettingsObject("queue", Queue, "queues", True, "queue", ("kind",),
                       ("destinations", "needs", "domain")),
        SettingsObject("complex", Complex, "complexes", True, "complex", joined=("queues",)),
        SettingsObject("group", Group, "groups", True, "groups", joined=("parent",)),
        SettingsObject("shift", Shift, "shifts", True, "shifts", ("commands", "counts"), ALL),
        SettingsObject("exit", machine.ExitSettings, "exits", True, "exits", ("values",)),
    )
}  # fmt: skip


def declare(declared: SettingsObject[T]) -> SettingsObject[T]:
    """Add the kind of object that a feature declares. Raises ValueError for a head that is taken."""
    if declared.head in _objects:
        raise ValueError(f"settings {declared.head} are declared twice")
    _objects[declared.head] = declared
    if not declared.attribute:
        OWNED[declared.head] = dict if declared.named else declared.kind
    return declared


def objects() -> Iterable[SettingsObject[Any]]:
    """Return all kinds of objects of the settings, those of features included."""
    return _objects.values()


def object_of(head: str) -> SettingsObject[Any] | None:
    """Return the kind of object with paths that begin with this word; None: no kind has it."""
    return _objects.get(head)


def shown_as(what: str) -> SettingsObject[Any] | None:
    """Return the kind of named objects that ``show WHAT`` shows; None: it shows something else."""
    return next((each for each in named() if each.many == what), None)


def singles() -> list[SettingsObject[Any]]:
    """Return the kinds of which there is one object."""
    return [each for each in objects() if not each.named]


def named() -> list[SettingsObject[Any]]:
    """Return the kinds of which there are many objects, by name."""
    return [each for each in objects() if each.named]


def switched() -> list[tuple[SettingsObject[Any], Words]]:
    """Return the kinds without names that features declare, each with its words of the command language."""
    return [(each, each.words) for each in singles() if each.words is not None]


def listed() -> list[tuple[SettingsObject[Any], Words]]:
    """Return the kinds with names that features declare, each with its words of the command language."""
    return [(each, each.words) for each in named() if each.words is not None]


def split(path: str) -> tuple[SettingsObject[Any] | None, str, str]:
    """Return the kind that a path is about (None: unknown), the object's name (empty if unnamed), and the
    path of the setting below it."""
    head, _, rest = path.partition("/")
    found = object_of(head)
    if found is None or not found.named:
        return found, "", rest
    name, _, below = rest.partition("/")
    return found, name, below


def brought(change: Change) -> Mapping[str, Any]:
    """Return the settings that a change sets, as values by path below its object."""
    return change.value if isinstance(change.value, dict) else {split(change.path)[2]: change.value}


def declared_at(path: str) -> Declared | None:
    """Return the declaration of the setting at a path (``queue/night/run_limit``); None: it is unknown."""
    found, _, below = split(path)
    return found.known.get(below) if found is not None else None
