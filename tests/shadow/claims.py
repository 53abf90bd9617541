"""Amounts that a request takes while it runs: the manual's pages `queues` ("How many run at a time"),
`consumables` ("Limits"), `arrays` (``%50``) and `shares` ("Caps"). A start is within all limits if no amount
exceeds its limit."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from nqspy.model.ids import array_of
from nqspy.model.people import capped_pes, lineage
from nqspy.model.queues import Queue, RunningLimits
from nqspy.model.requests import Ask, Request, State, finite
from nqspy.model.settings import Settings
from nqspy.model.site import Site

Amount = tuple[str, ...]
"""Name of a limited amount: ``("user limit", "queue night", "anne")``. The first word is its kind."""

OWNER = frozenset(("user limit", "group limit", "array limit", "cap", "units of a user", "units of a group"))
"""Limits of the owner: a request that one of them holds does not wait for room."""
FORCED = frozenset(("PE limit",))
"""Limits that also hold for a start that an exit forces."""
SUSPENDED = frozenset(("memory limit", "units", "units of a user", "units of a group"))
"""Amounts that a suspended request still takes if others may have its PEs."""


class Claim(NamedTuple):
    """A request takes ``asked`` of an amount of which ``most`` may be taken in all."""

    amount: Amount
    asked: int
    most: int

    def __str__(self) -> str:
        word, whose, *name = self.amount
        return f"{word} {self.most} of {whose}" + (f" for {name[0]}" if name else "")


def claims(site: Site, request: Request) -> Iterator[Claim]:
    """Yield all claims of a request in its queue."""
    settings, spec = site.settings, request.spec
    for whose, scope in scopes(settings, request.queue):
        for word, most, asked, *name in (
            ("run limit", scope.run_limit, 1),
            ("user limit", scope.user_limit, 1, request.owner),
            ("group limit", scope.group_limit, 1, request.group),
            ("memory limit", scope.memory_limit, memory_of(settings, request.queue, spec.ask)),
            ("PE limit", scope.pe_limit, spec.ask.pes),
        ):
            if most is not None:
                yield Claim((word, whose, *name), asked, most)
        yield from _units(whose, scope, request)
    for group in lineage(settings.groups, request.group):
        cap = settings.groups[group].limit if group in settings.groups else None
        if cap is not None:
            pes = site.domain_of(request.queue).held_by(spec.ask.pes)
            yield Claim(("cap", f"group {group}"), pes, capped_pes(cap, site.pes()))
    if spec.array is not None and spec.array.limit is not None:
        yield Claim(("array limit", site.id_of(array_of(request.seq) or request.seq)), 1, spec.array.limit)


def _units(whose: str, scope: RunningLimits, request: Request) -> Iterator[Claim]:
    asked = dict(request.spec.ask.consumables)
    for word, setting, *name in (
        ("units", "consumable_limit"),
        ("units of a user", "consumable_user_limit", request.owner),
        ("units of a group", "consumable_group_limit", request.group),
    ):
        for text in getattr(scope, setting):
            consumable, _, most = text.partition("=")
            if consumable in asked:
                yield Claim((word, f"{whose}: {consumable}", *name), asked[consumable], int(most))


def scopes(settings: Settings, queue: str) -> Iterator[tuple[str, RunningLimits]]:
    """Yield the owners of the limits that hold for a queue: itself, its complexes, the site."""
    if queue in settings.queues:
        yield f"queue {queue}", settings.queues[queue]
    yield from ((f"complex {each.name}", each) for each in settings.complexes_of(queue))
    yield "all queues", settings.global_


def memory_of(settings: Settings, queue: str, ask: Ask) -> int:
    """Return the memory that a request counts for: what it asked for, else its queue's limit for one."""
    asked, own = ask.finite_memory(), settings.queues.get(queue)
    if asked is None and own is not None:
        asked = limit_of(own, "memory_limit")
    return asked or 0


def limit_of(queue: Queue, name: str) -> int | None:
    """Return a queue's limit for one request, else for one process; None: there is none."""
    found = finite(getattr(queue.per_request, name))
    return found if found is not None else finite(getattr(queue.per_process, name))


def has_something(request: Request) -> bool:
    """True if a request holds something: one whose processes have ended holds nothing."""
    return request.state in (State.RUNNING, State.SUSPENDED)


def held_by(site: Site, request: Request) -> tuple[Counter[Amount], Counter[int]]:
    """Return the amounts and PEs that a running or suspended request holds."""
    parked = request.pes_released
    taken = (each for each in claims(site, request) if not parked or each.amount[0] in SUSPENDED)
    return Counter({each.amount: each.asked for each in taken}), Counter(() if parked else request.pes)
