"""Everything that operators and managers set, by object."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from nqspy.model.consumables import Consumable
from nqspy.model.domains import Domain
from nqspy.model.machine import Deciding, ExitSettings, Machine, Mail, Server
from nqspy.model.people import Group, Usage
from nqspy.model.queues import Complex, Defaults, Factors, Global, Queue, Weights
from nqspy.model.shifts import Calendar, Shift
from nqspy.model.upkeep import Backup, History

_SHIPPED = (0, 0, 0, 1)

OWNED: dict[str, Callable[[], Any]] = {}
"""Makes the settings of features, by head of their paths: `registry.declare` fills it."""


def _owned() -> dict[str, Any]:
    return {head: make() for head, make in OWNED.items()}


@dataclass(slots=True)
class Settings:
    """Everything that operators and managers set, by object; ``of_features``: what features declare
    (`registry.SettingsObject` gives it)."""

    server: Server = field(default_factory=Server)
    mail: Mail = field(default_factory=Mail)
    machine: Machine = field(default_factory=Machine)
    global_: Global = field(default_factory=Global)
    default: Defaults = field(default_factory=Defaults)
    sched_factor: Factors = field(default_factory=lambda: Factors(*_SHIPPED))
    usage: Usage = field(default_factory=Usage)
    calendar: Calendar = field(default_factory=Calendar)
    backup: Backup = field(default_factory=Backup)
    history: History = field(default_factory=History)
    decider: Deciding = field(default_factory=Deciding)
    managers: dict[str, str] = field(default_factory=dict)
    domains: dict[str, Domain] = field(default_factory=dict)
    consumables: dict[str, Consumable] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    complexes: dict[str, Complex] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    shifts: dict[str, Shift] = field(default_factory=dict)
    exits: dict[str, ExitSettings] = field(default_factory=dict)
    of_features: dict[str, Any] = field(default_factory=_owned)

    def weights(self, queue: str) -> Weights:
        """The factors in force for a queue: its own, else the site's."""
        own = self.queues[queue].sched_factor if queue in self.queues else Factors()
        return own.over(self.sched_factor)

    def complexes_of(self, queue: str) -> Iterator[Complex]:
        """The complexes a queue belongs to."""
        return (c for c in self.complexes.values() if queue in c.queues)

    def spills(self, queue: str) -> bool:
        """True if a shift that stops a queue may have its running requests give way."""
        domain = self.domains.get(self.queues[queue].domain) if queue in self.queues else None
        return domain is None or domain.lists("shift_end")
