"""All kinds of objects of the settings, each declared once: rows, rights, grammar, displays, ``snap`` and the
manual find them here.

The model declares its own below; a scheduling feature declares its own in its file. `core.features` adds
those: whoever reads settings imports it first (`complete`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from nqspy.model import tree
from nqspy.model.health import Probe, SwapControl
from nqspy.model.machine import Deciding, ExitSettings, Machine, Mail, Server
from nqspy.model.people import Group, Usage
from nqspy.model.queues import Complex, Defaults, Factors, Global, Queue
from nqspy.model.shifts import Calendar, Shift
from nqspy.model.site import Settings
from nqspy.model.tree import Declared
from nqspy.model.upkeep import Backup, History

T = TypeVar("T")

ALL = ("*",)
"""All settings of an object."""


@dataclass(frozen=True, slots=True)
class SettingsObject(Generic[T]):
    """A kind of object of the settings.

    ``head``: the first word of its paths; ``kind``: its class, which declares the settings (`tree.setting`);
    ``attribute``: where `Settings` keeps it; ``named``: there are many, by name, else one; ``extra``: fields
    that its rows keep beside the settings; ``joined``: settings that are right or wrong together with those
    of other objects (`ALL` of them).
    """

    head: str
    kind: type[T]
    attribute: str
    named: bool = False
    extra: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()

    @property
    def known(self) -> Mapping[str, Declared]:
        """Its settings by their paths below it."""
        return tree.declared(self.kind)

    def one(self, settings: Settings) -> T:
        """The object there is one of."""
        found: T = getattr(settings, self.attribute)
        return found

    def all(self, settings: Settings) -> dict[str, T]:
        """The objects that have names, by name."""
        found: dict[str, T] = getattr(settings, self.attribute)
        return found

    def find(self, settings: Settings, name: str) -> T | None:
        """The object of that name, or the one there is; None when there is none."""
        return self.all(settings).get(name) if self.named else self.one(settings)

    def put(self, settings: Settings, value: Any) -> None:
        """Takes another object, or other objects by name, in the place of what there is."""
        setattr(settings, self.attribute, value)

    def is_joined(self, path: str) -> bool:
        """Whether a setting of it is right or wrong together with others."""
        return self.joined == ALL or path in self.joined

    def dump(self, node: T) -> dict[str, Any]:
        """An object's row: what differs from the defaults."""
        fresh: Any = self.kind("") if self.named else None  # type: ignore[call-arg]
        extra = {name: value for name in self.extra if (value := getattr(node, name)) != getattr(fresh, name)}
        return extra | tree.dump(node)

    def load(self, values: Mapping[str, Any], name: str = "") -> T:
        """An object from its row. Raises BadValue."""
        known = {path: value for path, value in values.items() if path not in self.extra}
        node: T = tree.load(self.kind, known, **({"name": name} if self.named else {}))
        for each in self.extra:
            if each in values:
                setattr(node, each, values[each])
        return node


_objects: dict[str, SettingsObject[Any]] = {
    each.head: each
    for each in (
        SettingsObject("server", Server, "server"),
        SettingsObject("mail", Mail, "mail", joined=ALL),
        SettingsObject("machine", Machine, "machine"),
        SettingsObject("global", Global, "global_"),
        SettingsObject("default", Defaults, "default", joined=ALL),
        SettingsObject("sched_factor", Factors, "sched_factor"),
        SettingsObject("usage", Usage, "usage"),
        SettingsObject("calendar", Calendar, "calendar", joined=ALL),
        SettingsObject("swap_control", SwapControl, "swap_control", joined=ALL),
        SettingsObject("backup", Backup, "backup"),
        SettingsObject("history", History, "history"),
        SettingsObject("decider", Deciding, "decider"),
        SettingsObject("queue", Queue, "queues", True, ("kind",), ("destinations", "needs")),
        SettingsObject("complex", Complex, "complexes", True, joined=("queues",)),
        SettingsObject("group", Group, "groups", True, joined=("parent",)),
        SettingsObject("shift", Shift, "shifts", True, ("commands", "counts"), ALL),
        SettingsObject("exit", ExitSettings, "exits", True, ("values",)),
        SettingsObject("probe", Probe, "probes", True, joined=ALL),
    )
}


def objects() -> Iterable[SettingsObject[Any]]:
    """All kinds: those there is one of, then those with names."""
    return _objects.values()


def object_of(head: str) -> SettingsObject[Any] | None:
    """The kind whose paths begin with this word; None when there is none."""
    return _objects.get(head)


def singles() -> list[SettingsObject[Any]]:
    """Kinds there is one object of."""
    return [each for each in objects() if not each.named]


def named() -> list[SettingsObject[Any]]:
    """Kinds of which there are many, by name."""
    return [each for each in objects() if each.named]


def split(path: str) -> tuple[SettingsObject[Any] | None, str, str]:
    """The kind that a path is about, the name of the object (empty where there is one) and the path below
    it."""
    head, _, rest = path.partition("/")
    found = object_of(head)
    if found is None or not found.named:
        return found, "", rest
    name, _, below = rest.partition("/")
    return found, name, below


def declared_at(path: str) -> Declared | None:
    """The setting at a path (``queue/night/run_limit``); None when there is none."""
    found, _, below = split(path)
    return found.known.get(below) if found is not None else None
