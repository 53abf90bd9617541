"""The rules of consumables: a request waits until as many units are free as it asks for, and for the limits
on how many may be held at a time under a queue, a complex or the whole site, by all, by a user or a group.

Units are held from start to end, by suspended requests too. What is counted here is what is there and who has
it; which units one gets is chosen when it starts (`consumables.UnitBoard`).
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import ClassVar

import numpy as np

from nqspy.core.consumables import open_units
from nqspy.core.queueing.limit_rules import (
    IN_A_SHIFT,
    INFINITE,
    LESS,
    Claim,
    Left,
    LimitRule,
    Mask,
    gravest,
    path_of,
)
from nqspy.model.columns import Columns
from nqspy.model.consumables import offline_of, units_of, wanted_in
from nqspy.model.ids import Seq
from nqspy.model.queues import CONSUMABLE_LIMITS, RunningLimits
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Request
from nqspy.model.shifts import values_by_shifts
from nqspy.model.site import Site

(_FEW_FREE,) = reason_kinds(
    ReasonCode.NO_UNITS,
    few_units_free="it asks for {asked} {name}, {free} of {most} {free:is|are} free"
    "{held:; held by *}{away:; offline: *}",
)
(_TOO_MANY,) = reason_kinds(
    ReasonCode.NEVER,
    above_units="{asked} {name} are more than the {most} there are",
)
(_ALL_AWAY,) = reason_kinds(
    ReasonCode.NO_UNITS,
    "units must come back: set consumable offline=(), or what broke them be mended",
    units_offline="it asks for {asked} {name}, of {most} only {left} are not offline{away:; offline: *}",
)
(_LIMITED,) = reason_kinds(
    ReasonCode.LIMIT,
    units_limited="{word} limit {most}{of: of *} leaves {left}{name: for *}, it asks for {asked}",
)
_ABOVE = "{word} limit {most}{of: of *} leaves {most} even when nothing runs, it asks for {asked}"
(_TOO_MANY_LIMITED,) = reason_kinds(ReasonCode.NEVER, LESS, units_above_limit=_ABOVE)
(_TOO_MANY_NOW,) = reason_kinds(ReasonCode.LIMIT, IN_A_SHIFT, units_above_limit_now=_ABOVE)
_SHOWN = 4
"""Holders that a reason names."""


@lru_cache(10_000)
def _wanted(key: str) -> tuple[tuple[str, int], ...]:
    return tuple(wanted_in(key).items())


class _UnitRule(LimitRule):
    """What is left is kept by the consumable's name, and where it is another for somebody by both."""

    kept_on = True

    @classmethod
    def mask(cls, site: Site, left: Left, queue: str, columns: Columns) -> Mask | None:
        """Rows that ask for more of something than all are left of it, or their own people."""
        keys = [_wanted(key) for key in site.numbers.needs.names]
        found = cls._rows(left, keys, "", columns)
        own: dict[str, None] = {}
        for name in left.named:
            own |= {whose: None} if (whose := name.partition("\0")[2]) else {}
        numbers = dict(site.numbers.by_column())[cls.whose] if own else None
        for whose in own:
            number = numbers.known(whose) if numbers is not None else None
            rows = cls._rows(left, keys, whose, columns) if number is not None else None
            if rows is not None:
                rows = rows & (getattr(columns, cls.whose) == number)
                found = rows if found is None else found | rows
        return found if found is not None and found.any() else None

    @classmethod
    def _rows(
        cls, left: Left, keys: Iterable[tuple[tuple[str, int], ...]], whose: str, columns: Columns
    ) -> Mask | None:
        behind = f"\0{whose}" if whose else ""
        named = left.named
        more = [any(count > named.get(name + behind, left.others) for name, count in key) for key in keys]
        if not any(more):
            return None
        rows: Mask = np.array(more, dtype=bool)[columns.needs]
        return rows


class FreeUnits(_UnitRule):
    """Units that are free: it holds for forced requests too. ``free`` counts them by consumable; starts of a
    pass take theirs."""

    for_forced = shared = True

    def __init__(self, site: Site) -> None:
        self._site = site
        self.free = {name: len(units) for name, units in open_units(site).items()}
        self._starts: dict[str, list[Seq]] = {}

    def take(self, request: Request) -> None:
        """It is started."""
        for name, count in request.spec.ask.consumables:
            self.free[name] = self.free.get(name, 0) - count
            self._starts.setdefault(name, []).append(request.seq)

    def left(self, ever: bool) -> Left:
        counts = {name: most - len(self._away(name)) for name, most in self._totals()} if ever else self.free
        return Left(0, {name: float(count) for name, count in counts.items()})

    def _totals(self) -> Iterator[tuple[str, int]]:
        site = self._site
        return ((name, len(units_of(each, site.found))) for name, each in site.settings.consumables.items())

    def _away(self, name: str) -> list[str]:
        site = self._site
        return offline_of(site.settings.consumables[name], site.found, site.resources)

    def reason(self, request: Request) -> Reason | None:
        wanted = ((name, asked, self.free.get(name, 0)) for name, asked in request.spec.ask.consumables)
        return gravest(self._short(name, asked, max(0, free)) for name, asked, free in wanted if asked > free)

    def claims(self, request: Request) -> Iterable[Claim]:
        asked = request.spec.ask.consumables
        there = {name: most - len(self._away(name)) for name, most in self._totals()} if asked else {}
        return [(("units", name), count, there.get(name, 0)) for name, count in asked]

    def _short(self, name: str, asked: int, free: int) -> Reason:
        who, most = f"consumable {name}", dict(self._totals()).get(name, 0)
        if asked > most:
            return _TOO_MANY(who, asked, name, most)
        away = self._away(name)
        if asked > most - len(away):
            return _ALL_AWAY(who, asked, name, most, most - len(away), _some(away))
        return _FEW_FREE(who, asked, name, free, most, self._holders(name), _some(away))

    def _holders(self, name: str) -> str:
        seqs = dict.fromkeys([*self._site.units.get(name, {}).values(), *self._starts.get(name, ())])
        return _some([self._site.id_of(seq) for seq in seqs])


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


class ConsumableLimit(_UnitRule):
    """Units of all running requests of a scope."""

    word: ClassVar[str] = ""
    setting: ClassVar[str] = CONSUMABLE_LIMITS[0]
    shared: ClassVar[bool] = True

    def __init__(
        self, site: Site, who: str, limits: Mapping[str, int], held: dict[tuple[str, str], int]
    ) -> None:
        self._site, self._who, self._limits, self._held = site, who, limits, held

    def count(self, request: Request) -> None:
        """It holds its units from now on."""
        whose = getattr(request, self.whose) if self.whose else ""
        for name, count in request.spec.ask.consumables:
            self._held[name, whose] = self._held.get((name, whose), 0) + count

    def left(self, ever: bool) -> Left:
        named = {name: float(most) for name, most in self._limits.items()}
        for (name, whose), count in () if ever else self._held.items():
            if name in named:
                named[f"{name}\0{whose}" if whose else name] = self._limits[name] - count
        return Left(INFINITE, named)

    def reason(self, request: Request) -> Reason | None:
        return gravest(self._reasons(request)) if request.spec.ask.consumables else None

    def _reasons(self, request: Request) -> Iterator[Reason]:
        whose = getattr(request, self.whose) if self.whose else ""
        for name, asked in request.spec.ask.consumables:
            if (most := self._limits.get(name)) is not None:
                left = most - self._held.get((name, whose), 0)
                if asked > left:
                    yield self._told(name, whose, most, max(0, left), asked)

    def claims(self, request: Request) -> Iterable[Claim]:
        whose = getattr(request, self.whose) if self.whose else ""
        asked = [each for each in request.spec.ask.consumables if each[0] in self._limits]
        return [((self._who, self.word, name, whose), count, self._limits[name]) for name, count in asked]

    def _told(self, name: str, whose: str, most: int, left: int, asked: int) -> Reason:
        everywhere = self._who == "global"
        word = f"{'global ' * everywhere}{name}{self.word}"
        of = None if everywhere else self._who
        if asked <= most:
            return _LIMITED(self._who, word, most, of, left, whose, asked)
        kind = _TOO_MANY_NOW if self._is_raised(name, asked) else _TOO_MANY_LIMITED
        return kind(self._who, word, most, of, asked)

    def _is_raised(self, name: str, asked: int) -> bool:
        """True if a shift lets so many units of a consumable be held."""
        shifts = self._site.settings.shifts.values()
        raised = values_by_shifts(shifts, path_of(self._who, self.setting))
        return any(allow(given, [(name, asked)]) for given in raised)


def allow(given: Iterable[str] | None, asked: Iterable[tuple[str, int]]) -> bool:
    """True if limits ``("gpu=2", "matlab=1")`` (None: no limits) allow a request for so many units."""
    most = amounts(given or ())
    return all(count <= most.get(name, count) for name, count in asked)


def amounts(given: Iterable[str]) -> dict[str, int]:
    """Return the numbers of ``("gpu=2", "matlab=1")`` by name."""
    return {name: int(most) for name, _, most in (text.partition("=") for text in given)}


class UserConsumableLimit(ConsumableLimit):
    """Units of the running requests of one user."""

    word, setting, whose, shared = " user", CONSUMABLE_LIMITS[1], "owner", False


class GroupConsumableLimit(ConsumableLimit):
    """Units of the running requests of one group."""

    word, setting, whose, shared = " group", CONSUMABLE_LIMITS[2], "group", False


UNIT_LIMITS: tuple[type[ConsumableLimit], ...] = (ConsumableLimit, UserConsumableLimit, GroupConsumableLimit)
"""The rules of `CONSUMABLE_LIMITS`, in the order in which reasons are looked for."""
OF_PEOPLE = frozenset(UNIT_LIMITS[1:])
"""Those of them that are of a request's own people."""

Scopes = Iterable[tuple[str, RunningLimits]]


class UnitRules:
    """All rules of consumables in a pass; where there are no consumables there are no rules."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.free = FreeUnits(site) if site.settings.consumables else None
        self._held: dict[tuple[str, type[ConsumableLimit]], dict[tuple[str, str], int]] = {}
        self._by_queue: dict[str, list[ConsumableLimit]] = {}

    def rules(self, queue: str, scopes: Scopes) -> list[LimitRule]:
        """What holds for the requests of a queue."""
        if self.free is None:
            return []
        if queue not in self._by_queue:
            self._by_queue[queue] = list(self._limits(scopes))
        return [*self._by_queue[queue], self.free]

    def _limits(self, scopes: Scopes) -> Iterator[ConsumableLimit]:
        for who, scope in scopes:
            for rule in UNIT_LIMITS:
                if given := getattr(scope, rule.setting):
                    held = self._held.setdefault((who, rule), {})
                    yield rule(self._site, who, amounts(given), held)

    def add(self, request: Request, scopes: Scopes) -> None:
        """Counts what a request holds, or is given by its start."""
        if self.free is None:
            return
        self.rules(request.queue, scopes)
        if request.attempt is None:
            self.free.take(request)
        for limit in self._by_queue[request.queue]:
            limit.count(request)
