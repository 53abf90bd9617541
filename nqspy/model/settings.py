"""All settings of operators and managers, by object."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from nqspy.model.consumables import Consumable
from nqspy.model.domains import Domain
from nqspy.model.machine import Backup, Deciding, ExitSettings, History, Machine, Mail, Server
from nqspy.model.people import Group, Usage
from nqspy.model.queues import Complex, Defaults, Factors, Global, Queue, Weights
from nqspy.model.requests import Ask, finite
from nqspy.model.shifts import Calendar, Shift

OWNED: dict[str, Callable[[], Any]] = {}
"""Functions that return default settings of features, by head of their paths (from `registry.declare`)."""


@dataclass(slots=True)
class Settings:
    """All settings of operators and managers, by object. ``managers``: role (m, o) by user; ``of_features``:
    by head, settings that features declare (`registry`)."""

    server: Server = field(default_factory=Server)
    mail: Mail = field(default_factory=Mail)
    machine: Machine = field(default_factory=Machine)
    global_: Global = field(default_factory=Global)
    default: Defaults = field(default_factory=Defaults)
    sched_factor: Factors = field(default_factory=lambda: Factors(0, 0, 0, 1))
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
    of_features: dict[str, Any] = field(default_factory=lambda: {head: new() for head, new in OWNED.items()})

    def weights(self, queue: str) -> Weights:
        """Return the priority weights in force for a queue: each its own, else the site's."""
        own = self.queues[queue].sched_factor if queue in self.queues else Factors()
        return own.over(self.sched_factor)

    def complexes_of(self, queue: str) -> Iterator[Complex]:
        """Return the complexes to which a queue belongs."""
        return (c for c in self.complexes.values() if queue in c.queues)

    def gives_way(self, queue: str) -> bool:
        """True if a shift that stops a queue may suspend or requeue its running requests
        (`Domain.features`)."""
        domain = self.domains.get(self.queues[queue].domain) if queue in self.queues else None
        return domain is None or domain.lists("shift_end")


def wall_limit(settings: Settings, queue: str, ask: Ask) -> int | None:
    """Return the wall time (ms) that ends a request: its own limit, else its queue's; None: no limit."""
    asked = finite(ask.wall)
    if asked is not None or queue not in settings.queues:
        return asked
    return finite(settings.queues[queue].per_request.wall_limit)


def planned_wall(settings: Settings, queue: str, ask: Ask) -> int | None:
    """Return the wall time (ms) for which plans assume that a request runs: its limit, else its queue's, else
    the site's ``default wall_limit``; None: unknown. Limits of CPU time do not matter."""
    limit = wall_limit(settings, queue, ask)
    return limit if limit is not None else settings.default.wall_limit


def cpu_limit(settings: Settings, queue: str, ask: Ask) -> int | None:
    """Return the most CPU time (ms) that a request may use: its limit, else its queue's; None: no limit."""
    asked = ask.finite_cpu()
    if asked is not None:
        return asked
    return cpu_of(settings.queues[queue]) if queue in settings.queues else None


def cpu_of(queue: Queue) -> int | None:
    """Return a queue's limit of CPU time (ms), of a request, else of a process; None: it has no limit."""
    return first_finite(queue.per_request.cpu_limit, queue.per_process.cpu_limit)


def first_finite(first: int | None, second: int | None) -> int | None:
    """Return the first limit if it is finite, else the second; None: neither is finite."""
    return finite(first) if finite(first) is not None else finite(second)
