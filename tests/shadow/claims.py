"""What a request takes while it runs, of what there is a limit on: the manual's pages `queues` ("How many run
at a time"), `consumables` ("Limits"), `arrays` (``%50``) and `shares` ("Caps"). A start is within all limits
if of no amount more would be taken than there may be."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from nqspy.model.ids import Seq, array_of
from nqspy.model.people import capped_pes, lineage
from nqspy.model.queues import Queue, RunningLimits
from nqspy.model.requests import Ask, Request, State, finite
from nqspy.model.settings import Settings
from nqspy.model.site import Site

Amount = tuple[str, ...]
"""What is limited, in words: ``("user limit", "queue night", "anne")``. The first word says which kind."""

PEOPLE = frozenset(("user limit", "group limit", "array limit", "cap", "units of a user", "units of a group"))
"""Limits of one's own people: who waits for these waits for no room that all share."""
FOR_ALL = frozenset(("PE limit",))
"""Limits that hold for a start that an exit forced, too."""
STAYS = frozenset(("memory limit", "units", "units of a user", "units of a group"))
"""What a suspended request still takes whose PEs others may have."""


class Claim(NamedTuple):
    """So much (``asked``) a request takes of an amount of which ``most`` may be taken in all."""

    amount: Amount
    asked: int
    most: int

    def __str__(self) -> str:
        word, whose, *name = self.amount
        return f"{word} {self.most} of {whose}" + (f" for {name[0]}" if name else "")


class LimitsInForce:
    """The limits in force, as they are set. ``forget`` what is known of them when settings have changed."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._queues: dict[str, list[tuple[str, str, int]]] = {}
        self._groups: dict[str, list[Claim]] = {}

    def forget(self) -> None:
        """Other settings hold."""
        self._queues.clear()
        self._groups.clear()

    def claims(self, request: Request) -> Iterator[Claim]:
        """All that a request claims where it is."""
        queue, ask, spec = request.queue, request.spec.ask, request.spec
        for word, whose, most in self._queues.get(queue) or self._look(queue):
            if word in _EACH:
                yield Claim((word, whose, getattr(request, _EACH[word])), 1, most)
            elif word == "memory limit":
                yield Claim((word, whose), memory_of(self._site.settings, queue, ask), most)
            else:
                yield Claim((word, whose), ask.pes if word == "PE limit" else 1, most)
        for whose, scope in scopes(self._site.settings, queue) if ask.consumables else ():
            yield from _units(whose, scope, request)
        for cap in self._caps(request.group):
            yield cap._replace(asked=self._site.domain_of(queue).held_by(ask.pes))
        if spec.array is not None and spec.array.limit is not None:
            array = array_of(request.seq) or request.seq
            yield Claim(("array limit", self._site.id_of(array)), 1, spec.array.limit)

    def _look(self, queue: str) -> list[tuple[str, str, int]]:
        """What is set for a queue: kind of limit, whose it is, how much there may be."""
        found = [
            (word, whose, most)
            for whose, scope in scopes(self._site.settings, queue)
            for word, most in (
                ("run limit", scope.run_limit),
                ("user limit", scope.user_limit),
                ("group limit", scope.group_limit),
                ("memory limit", scope.memory_limit),
                ("PE limit", scope.pe_limit),
            )
            if most is not None
        ]
        self._queues[queue] = found
        return found

    def _caps(self, group: str) -> list[Claim]:
        """Those of a group and of the groups above it."""
        found = self._groups.get(group)
        if found is None:
            groups, pes = self._site.settings.groups, self._site.pes()
            own = (groups[name] for name in lineage(groups, group) if name in groups)
            found = self._groups[group] = [
                Claim(("cap", f"group {each.name}"), 0, capped_pes(each.limit, pes))
                for each in own
                if each.limit is not None
            ]
        return found


_EACH = {"user limit": "owner", "group limit": "group"}
"""Limits that count for each name apart, and whose name that is."""


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
    """Whose limits hold for a queue: its own, its complexes', the whole site's."""
    if queue in settings.queues:
        yield f"queue {queue}", settings.queues[queue]
    yield from ((f"complex {each.name}", each) for each in settings.complexes_of(queue))
    yield "all queues", settings.global_


def memory_of(settings: Settings, queue: str, ask: Ask) -> int:
    """Memory that a request counts for: what it asked for, else its queue's limit for one."""
    asked = ask.finite_memory()
    own = settings.queues.get(queue)
    return asked if asked is not None else (limit_of(own, "memory_limit") or 0) if own is not None else 0


def limit_of(queue: Queue, name: str) -> int | None:
    """A queue's limit for one request, else for a process of it; None: there is none."""
    found = finite(getattr(queue.per_request, name))
    return found if found is not None else finite(getattr(queue.per_process, name))


class Taken:
    """What the requests that run (and some of the suspended ones) have: amounts, PEs, units. ``unseen``: what
    was given back since the pass that is judged looked at the site, as (amounts, PEs): to it that was taken
    still."""

    def __init__(self, limits: LimitsInForce) -> None:
        self._limits = limits
        self.amounts = Counter[Amount]()
        self.pes = Counter[int]()
        self.units: dict[tuple[str, str], Seq] = {}
        self.requests: dict[Seq, Request] = {}
        self.unseen = Counter[Amount](), Counter[int]()
        self._of: dict[Seq, tuple[Counter[Amount], Counter[int]]] = {}

    def add(self, request: Request) -> None:
        """It has a part of it from now on. (PEs of one that is parked are others'.)"""
        found, pes = self._limits.claims(request), request.pes
        if request.pes_released:
            found, pes = (each for each in found if each.amount[0] in STAYS), ()
        mine = Counter[Amount]({each.amount: each.asked for each in found}), Counter(pes)
        self.requests[request.seq], self._of[request.seq] = request, mine
        self.amounts.update(mine[0])
        self.pes.update(mine[1])
        for name, units in request.units:
            self.units.update(((name, unit), request.seq) for unit in units)

    def drop(self, seq: Seq, unseen: bool) -> None:
        """It has nothing any more; ``unseen``: the pass does not know."""
        request, (amounts, pes) = self.requests.pop(seq), self._of.pop(seq)
        self.amounts.subtract(amounts)
        self.pes.subtract(pes)
        if unseen:
            self.unseen[0].update(amounts)
            self.unseen[1].update(pes)
        for name, units in request.units:
            for unit in units:
                self.units.pop((name, unit), None)

    def see(self) -> None:
        """The pass is judged: the next one knows what was given back."""
        if any(self.unseen):
            self.unseen = Counter(), Counter()

    def above(self, request: Request, unseen: bool) -> list[Claim]:
        """The limits above which a request would come if it started; ``unseen``: to the eyes of the pass."""
        found, more = self.amounts, self.unseen[0] if unseen else {}
        return [
            each
            for each in self._limits.claims(request)
            if found[each.amount] + more.get(each.amount, 0) + each.asked > each.most
        ]


def has_something(request: Request) -> bool:
    """Whether a request has taken something: once its processes have ended it has nothing."""
    return request.state in (State.RUNNING, State.SUSPENDED)
