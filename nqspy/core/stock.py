"""The stock rules: what the share term of a user in a group is made of where no exit says more (semantics.md
1, ``set global share_rule=deficit|decayed``). Both look only at those that have work now, decide between any
two that differ, and stay within [0, 1]; a group of share 0 has 0, everybody else more.

*deficit*: with S and a of `model.balance` as they stand now, b its bound and C what running and chosen
requests are still expected to use,

    K = clip(S + a * sum(C) - C_own, -2b, 2b)        value = max(0.01, (2b + K) / 4b)

*decayed*: E/(E + U), both fractions among those that have work: E the entitlement e of `model.division`, U
the decayed use, committed use included; 1 where nothing was used.

A user has 0.9 of his group's value and 0.1 of the same rule among the users of his group.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from nqspy.model.balance import Level
from nqspy.model.columns import Floats
from nqspy.model.division import without_share
from nqspy.model.ids import Instant
from nqspy.model.owed import PE, Terms, Work
from nqspy.model.people import DEFAULT_GROUP, Group
from nqspy.model.requests import Request, State
from nqspy.model.site import Site

LEAST = 0.01
"""The least value of anybody with a share."""

OWN = 0.1
"""Part of a user's value that is his own; the rest is his group's."""

ALL = ""
"""Name of the groups' own level among those of their users."""


class Uses(Protocol):
    """What the rules ask of a ledger; ``level``: `ALL` for the groups, a group for its users."""

    @property
    def committed(self) -> Sequence[tuple[str, str]]:
        """(group, owner) of each start debited so far."""

    def committed_by(self, level: str, name: str | None = None) -> float:
        """What of it is committed; without a name: of all of that level."""

    def used_by(self, level: str, name: str) -> float:
        """Use with what is committed."""

    def uncounted(self, request: Request, counted: float) -> float:
        """What a running request is known to have used since it was charged, beyond ``counted``."""


class Stock:
    """Values of groups and users in one pass. ``startable``: what could start when it began."""

    def __init__(
        self, site: Site, now: Instant, uses: Uses, startable: Callable[[], Mapping[str, int]] | None
    ) -> None:
        self._site, self._now, self.uses = site, now, uses
        self._startable = startable
        self._rules: dict[str, Rule] = {}
        self._new: dict[str, dict[str, Work]] | None = None

    def value(self, owner: str | None, group: str) -> float:
        """The value of a user in a group, or of the group."""
        of_group = self.rule(ALL).value(group)
        if owner is None or not of_group:
            return of_group
        return (1 - OWN) * of_group + OWN * self.rule(group).value(owner)

    def rule(self, level: str) -> "Rule":
        """The rule in force, at one level."""
        if level not in self._rules:
            balance, settings = self._site.balance, self._site.settings
            deficit = settings.global_.share_rule == "deficit"
            found = (balance.groups if level == ALL else balance.users(level)).twin()
            found.advance(self._now, balance.terms)
            found.change(self._newly(level), balance.terms)
            if deficit:
                found.correct(self._missing(level), balance.terms)
            make = Deficit if deficit else Decayed
            self._rules[level] = make(found, balance.terms, self.uses, level, settings.groups)
        return self._rules[level]

    def _newly(self, level: str) -> Mapping[str, Work]:
        """By how many PEs what could start differs from what was known."""
        if self._new is None:
            known = self._site.balance.startable()
            now = known if self._startable is None else self._startable()
            self._new = {ALL: {}}
            for pair in sorted(known.keys() | now.keys()) if now != known else ():
                group, _, owner = pair.partition(":")
                more = Work(ready=now.get(pair, 0) - known.get(pair, 0))
                self._new.setdefault(group, {})[owner] = more
                self._new[ALL].setdefault(group, Work()).add(more)
        return self._new.get(level, {})

    def _missing(self, level: str) -> dict[str, float]:
        """What was used and not counted, by group or user."""
        found: dict[str, float] = {}
        for request in self._site.started.values():
            if level in (ALL, request.group) and request.state is State.RUNNING:
                since = request.charged_at if request.charged_at is not None else self._now
                counted = request.rate * max(0, self._now - since) / PE
                name = request.group if level == ALL else request.owner
                found[name] = found.get(name, 0.0) + self.uses.uncounted(request, counted)
        return found


class Rule:
    """A rule at one level: ``parts`` are the entitlements of those who have work."""

    def __init__(
        self, level: Level, terms: Terms, uses: Uses, name: str, groups: Mapping[str, Group]
    ) -> None:
        self.parts = level.parts()
        self.level, self.terms, self.uses, self.name = level, terms, uses, name
        self._bare = without_share(groups, groups) if name == ALL else frozenset[str]()
        self._known = {*groups, DEFAULT_GROUP}

    def value(self, name: str) -> float:
        """Of one group or user."""
        if self.name == ALL and (name in self._bare or name not in self._known):
            return 0.0
        return max(LEAST, self._value(name))

    def _value(self, name: str) -> float:
        raise NotImplementedError

    def terms_of(self, name: str) -> tuple[float, float]:
        """What the value of one rests on that no start changes."""
        raise NotImplementedError

    def together(self) -> float:
        """What of all of the level it rests on."""
        raise NotImplementedError

    def own(self, name: str) -> float:
        """What of its own it rests on that starts change."""
        raise NotImplementedError

    @staticmethod
    def of_many(first: Floats, second: Floats, whole: Floats, own: Floats, bound: float) -> Floats:
        """The values of many: `terms_of`, `together` and `own` of each."""
        raise NotImplementedError


class Deficit(Rule):
    """What a group was entitled to while it had work, less what it got."""

    def __init__(
        self, level: Level, terms: Terms, uses: Uses, name: str, groups: Mapping[str, Group]
    ) -> None:
        super().__init__(level, terms, uses, name, groups)
        self._targets = level.targets(terms)
        self._present = {each: entry.present for each, entry in level.members().items()}
        self._mean = sum(self._present.values()) / len(self._present) if self._present else 0.0

    def owed(self, name: str) -> float:
        """K: what it is owed, what is committed included; who has no work, as who begins to have some."""
        present, target = self.terms_of(name)
        return self.terms.clipped(present + target * self.together() - self.own(name), 2)

    def _value(self, name: str) -> float:
        bound = self.terms.bound
        return (2 * bound + self.owed(name)) / (4 * bound)

    def terms_of(self, name: str) -> tuple[float, float]:
        """S and a."""
        return self._present.get(name, self._mean), self._targets.get(name, 0.0)

    def together(self) -> float:
        """The sum of C."""
        return self.uses.committed_by(self.name)

    def own(self, name: str) -> float:
        """C."""
        return self.uses.committed_by(self.name, name)

    @staticmethod
    def of_many(first: Floats, second: Floats, whole: Floats, own: Floats, bound: float) -> Floats:
        """(2b + K) / 4b."""
        owed = np.clip(first + second * whole - own, -2 * bound, 2 * bound)
        return np.maximum(LEAST, (2 * bound + owed) / (4 * bound))


class Decayed(Rule):
    """The paper's fair share, among those who have work."""

    def _value(self, name: str) -> float:
        whole, entitled = self.together(), self.parts.get(name, 0.0)
        used = self.own(name) / whole if whole > 0 else 0.0
        return entitled / (entitled + used) if entitled + used > 0 else 1.0

    def terms_of(self, name: str) -> tuple[float, float]:
        """E, twice."""
        return self.parts.get(name, 0.0), self.parts.get(name, 0.0)

    def together(self) -> float:
        """The sum of U."""
        return sum(self.uses.used_by(self.name, each) for each in self.parts)

    def own(self, name: str) -> float:
        """U."""
        return self.uses.used_by(self.name, name)

    @staticmethod
    def of_many(first: Floats, second: Floats, whole: Floats, own: Floats, bound: float) -> Floats:
        """E / (E + U)."""
        below = first + np.divide(own, whole, out=np.zeros(len(own)), where=whole > 0)
        found = np.divide(first, below, out=np.ones(len(own)), where=below > 0)
        return np.maximum(LEAST, found)


class Many:
    """Values of many (owner, group) at once; of a round only what was committed since the last is read."""

    def __init__(self, stock: Stock, keys: Sequence[tuple[str, str]]) -> None:
        self._stock, self._keys = stock, keys
        self._groups = sorted({group for _, group in keys})
        numbers = {group: number for number, group in enumerate(self._groups)}
        self._place = np.array([numbers[group] for _, group in keys], dtype=np.int64)
        self._rows = {(group, owner): row for row, (owner, group) in enumerate(keys)}
        rules = {group: stock.rule(group) for group in self._groups}
        pairs = [rules[group].terms_of(owner) for owner, group in keys]
        self._first = np.array([first for first, _ in pairs])
        self._second = np.array([second for _, second in pairs])
        self._own = np.array([rules[group].own(owner) for owner, group in keys])
        self._read = len(stock.uses.committed)

    def values(self) -> Floats:
        """As they stand now, in the order of the keys."""
        stock, committed = self._stock, self._stock.uses.committed
        for key in committed[self._read :]:
            if key in self._rows:
                self._own[self._rows[key]] = stock.rule(key[0]).own(key[1])
        self._read = len(committed)
        top = stock.rule(ALL)
        of_groups = np.array([top.value(group) for group in self._groups])[self._place]
        whole = np.array([stock.rule(group).together() for group in self._groups])[self._place]
        own = top.of_many(self._first, self._second, whole, self._own, top.terms.bound)
        return np.where(of_groups > 0, (1 - OWN) * of_groups + OWN * own, 0.0)
