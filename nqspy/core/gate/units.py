"""Consumables: a request needs as many free units as it asks for. Limits bound the units held at a time in a
queue, a complex or the whole site, by all, by one user or by one group.

A request holds its units from start to end, also while it is suspended. These rules count units;
`consumables.UnitBoard` chooses them at the start.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Self

import numpy as np

from nqspy.core.consumables import open_units
from nqspy.core.gate.rule import (
    IN_A_SHIFT,
    INFINITE,
    LESS,
    Claim,
    Mask,
    Rule,
    ScopeLimit,
    any_of,
    gravest,
    path_of,
)
from nqspy.model.columns import Columns
from nqspy.model.consumables import offline_of, units_of, wanted_in
from nqspy.model.ids import Seq
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Request
from nqspy.model.shifts import values_by_shifts
from nqspy.model.site import Site
from nqspy.model.texts import some_of

(_FEW_FREE,) = reason_kinds(
    ReasonCode.NO_UNITS,
    few_units_free="needs {asked} {name}, {free} of {most} {free:is|are} free"
    "{held:; held by *}{kept:; reserved for *}{away:; offline: *}",
)
(_TOO_MANY,) = reason_kinds(ReasonCode.NEVER, above_units="needs {asked} {name}, the site has {most}")
(_ALL_AWAY,) = reason_kinds(
    ReasonCode.NO_UNITS,
    "units must come online again: repair them, or set consumable NAME offline=()",
    units_offline="needs {asked} {name}, {left} of {most} {left:is|are} online{away:; offline: *}",
)
(_LIMITED,) = reason_kinds(
    ReasonCode.LIMIT,
    units_limited="{word} limit {most}{of: of *} has {left} left{name: for *}, it needs {asked}",
)
_ABOVE = "{word} limit {most}{of: of *} is too low, it needs {asked}"
(_TOO_MANY_LIMITED,) = reason_kinds(ReasonCode.NEVER, LESS, units_above_limit=_ABOVE)
(_TOO_MANY_NOW,) = reason_kinds(ReasonCode.LIMIT, IN_A_SHIFT, units_above_limit_now=_ABOVE)
_SHOWN = 4
"""Most holders that a reason names."""


@lru_cache(10_000)
def _wanted(key: str) -> tuple[tuple[str, int], ...]:
    return tuple(wanted_in(key).items())


def _rows(site: Site, remaining: Mapping[str, int], others: float, columns: Columns) -> Mask | None:
    """Return the rows that ask for more units than ``remaining`` has of a consumable (``others`` if it is not
    in there); None: no row."""
    keys = map(_wanted, site.numbers.needs.names)
    more = [any(count > remaining.get(name, others) for name, count in key) for key in keys]
    rows: Mask | None = np.array(more, dtype=bool)[columns.needs] if any(more) else None
    return rows


class FreeUnits(Rule):
    """Rule that enough units of consumables are free."""

    shared = holds_forced = counts_suspended = True

    def __init__(self, site: Site) -> None:
        self._site = site
        self._free = {name: len(units) for name, units in open_units(site).items()}
        self._starts: dict[str, list[Seq]] = {}
        self.reserved_for: Seq | None = None

    def add(self, request: Request) -> None:
        """Count the units of a request that this pass starts; a running one has its units already."""
        for name, count in request.spec.ask.consumables if request.attempt is None else ():
            self._free[name] = self._free.get(name, 0) - count
            self._starts.setdefault(name, []).append(request.seq)

    def refuses(self, request: Request) -> Reason | None:
        wanted = ((name, asked, self._free.get(name, 0)) for name, asked in request.spec.ask.consumables)
        return gravest(self._short(name, asked, max(0, free)) for name, asked, free in wanted if asked > free)

    def mask(self, queue: str, columns: Columns, *, ever: bool = False) -> Mask | None:
        return _rows(self._site, self._there() if ever else self._free, 0, columns)

    def claims(self, request: Request) -> Iterable[Claim]:
        asked = request.spec.ask.consumables
        there = self._there() if asked else {}
        if request.attempt is not None and asked:  # units that are away are not among those that are there
            held = {name: set(units) - set(self._away(name)) for name, units in request.units}
            asked = tuple((name, len(held.get(name, ()))) for name, _ in asked)
        return [(("units", name), count, there.get(name, 0)) for name, count in asked]

    def _there(self) -> dict[str, int]:
        return {name: most - len(self._away(name)) for name, most in self._totals()}

    def _totals(self) -> Iterator[tuple[str, int]]:
        site = self._site
        return ((name, len(units_of(each, site.found))) for name, each in site.settings.consumables.items())

    def _away(self, name: str) -> list[str]:
        site = self._site
        return offline_of(site.settings.consumables[name], site.found, site.resources)

    def _short(self, name: str, asked: int, free: int) -> Reason:
        who, most = f"consumable {name}", dict(self._totals()).get(name, 0)
        if asked > most:
            return _TOO_MANY(who, asked, name, most)
        away = self._away(name)
        if asked > most - len(away):
            return _ALL_AWAY(who, asked, name, most - len(away), most, some_of(away, _SHOWN))
        seqs = dict.fromkeys([*self._site.units.get(name, {}).values(), *self._starts.get(name, ())])
        held = some_of([seq for seq in seqs if seq != self.reserved_for], _SHOWN, self._site.id_of)
        reserved = some_of([seq for seq in seqs if seq == self.reserved_for], 1, self._site.id_of)
        return _FEW_FREE(who, asked, name, free, most, held, reserved, some_of(away, _SHOWN))


class UnitLimit(ScopeLimit):
    """Limit of the units that the requests of a scope hold at a time."""

    shared = counts_suspended = True
    word, setting = "", "consumable_limit"

    @classmethod
    def of(cls, site: Site, who: str, value: Sequence[str]) -> Self | None:
        return cls(site, who, amounts(value)) if site.settings.consumables else None

    def __init__(self, site: Site, who: str, most: Mapping[str, int]) -> None:
        self._site, self._who, self._most = site, who, most
        self._held: dict[str, dict[str, int]] = {}

    def add(self, request: Request) -> None:
        held = self._held.setdefault(self._name(request), {}) if request.spec.ask.consumables else {}
        for unit, count in request.spec.ask.consumables:
            held[unit] = held.get(unit, 0) + count

    def refuses(self, request: Request) -> Reason | None:
        if not request.spec.ask.consumables:
            return None
        name = self._name(request)
        remaining = self._remaining(name)
        short = [(unit, n) for unit, n in request.spec.ask.consumables if n > remaining.get(unit, n)]
        return gravest(self._reason(unit, name, max(0, remaining[unit]), n) for unit, n in short)

    def mask(self, queue: str, columns: Columns, *, ever: bool = False) -> Mask | None:
        masks = [_rows(self._site, self._most, INFINITE, columns)]
        for name in () if ever else self._held:
            rows = _rows(self._site, self._remaining(name), INFINITE, columns)
            if rows is not None and self.per:
                number = dict(self._site.numbers.by_column())[self.per].known(name)
                rows = rows & (getattr(columns, self.per) == (-1 if number is None else number))
            masks.append(rows)
        return any_of(masks)

    def claims(self, request: Request) -> Iterable[Claim]:
        name = self._name(request)
        asked = [each for each in request.spec.ask.consumables if each[0] in self._most]
        return [((self._who, self.word, unit, name), count, self._most[unit]) for unit, count in asked]

    def _remaining(self, name: str) -> dict[str, int]:
        held = self._held.get(name, {})
        return {unit: most - held.get(unit, 0) for unit, most in self._most.items()}

    def _reason(self, unit: str, name: str, remaining: int, asked: int) -> Reason:
        everywhere, most = self._who == "global", self._most[unit]
        word, of = f"{'global ' * everywhere}{unit}{self.word}", None if everywhere else self._who
        if asked <= most:
            return _LIMITED(self._who, word, most, of, remaining, name, asked)
        by_shifts = values_by_shifts(self._site.settings.shifts.values(), path_of(self._who, self.setting))
        is_raised = any(asked <= amounts(given or ()).get(unit, asked) for given in by_shifts)
        kind = _TOO_MANY_NOW if is_raised else _TOO_MANY_LIMITED
        return kind(self._who, word, most, of, asked)


class UserUnitLimit(UnitLimit):
    """Limit of the units of one user's requests."""

    word, setting, per, shared = " user", "consumable_user_limit", "owner", False


class GroupUnitLimit(UnitLimit):
    """Limit of the units of one group's requests."""

    word, setting, per, shared = " group", "consumable_group_limit", "group", False


LIMITS = (UnitLimit, UserUnitLimit, GroupUnitLimit)


def amounts(given: Iterable[str]) -> dict[str, int]:
    """Return a limit of consumables as numbers by name: ``{"gpu": 2}`` from ``("gpu=2",)``."""
    return {name: int(most) for name, _, most in (text.partition("=") for text in given)}
