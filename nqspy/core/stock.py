"""The stock rules for the share term of a user in a group, unless an exit gives it (semantics.md 1,
``set global share_rule=deficit|decayed``).

Both rules consider only groups and users that have work now, distinguish any two that differ, and stay within
[0, 1]. A group of share 0 has 0, all others more.

*deficit*: S and a are those of `shares.balance` now, b is its bound, and C is the committed use
(`fair_share`):

    K = clip(S + a * sum(C) - C_own, -2b, 2b)        value = max(0.01, (2b + K) / 4b)

*decayed*: E/(E + U), both as fractions among those that have work. E is the entitlement e of
`shares.division`, U the decayed use with committed use. The value is 1 if nothing was used.

A user has 0.9 of the group's value and 0.1 of the value by the same rule among the users of the group.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from nqspy.model.columns import Floats
from nqspy.model.ids import Instant
from nqspy.model.pairs import Pairs
from nqspy.model.site import Site
from nqspy.shares import Level, Standing, Terms, Work, balance_of

LEAST = 0.01
"""Least value of a group or user with a share."""

OWN = 0.1
"""Part of a user's own value; the rest is the group's value."""

ALL = ""
"""The level of the groups; the name of a group is the level of its users."""


class Sums(Protocol):
    """Committed use at a level so far: in all, and of each."""

    @property
    def whole(self) -> float: ...
    @property
    def each(self) -> Mapping[str, float]: ...


class Uses(Protocol):
    """The part of a ledger that the rules use. ``level``: `ALL` for the groups, a group for its users."""

    @property
    def committed(self) -> Sequence[tuple[str, str]]:
        """(group, owner) of each start debited so far."""

    @property
    def uncounted(self) -> Sequence[tuple[str, str, float]]:
        """Group, owner, and the reported use of a running request since its charge minus the estimate."""

    def committed_at(self, level: str) -> "Sums":
        """Return the committed use; later starts are added to the returned object."""

    def used_by(self, level: str, name: str) -> float:
        """Return the use, committed use included."""


class Stock:
    """Values of groups and users of a domain in one pass. ``startable``: returns the work that could start
    when the pass began."""

    def __init__(
        self,
        site: Site,
        domain: str,
        now: Instant,
        uses: Uses,
        startable: Callable[[], Mapping[str, int]] | None,
    ) -> None:
        self._site, self._now, self.uses = site, now, uses
        self._balance = balance_of(site, domain)
        self._startable = startable
        self._is_deficit = site.settings.global_.share_rule == "deficit"
        self._rules: dict[str, ShareRule] = {}
        self._accounts: dict[str, Level] = {}

    def value(self, owner: str | None, group: str) -> float:
        """Return the value of a user in a group, or of the group."""
        of_group = (self._rules.get(ALL) or self.rule(ALL)).value(group)
        if owner is None or not of_group:
            return of_group
        return (1 - OWN) * of_group + OWN * self.rule(group).value(owner)

    def rule(self, level: str) -> "ShareRule":
        """Return the rule in force at one level."""
        rule = self._rules.get(level)
        if rule is None:
            kind = Deficit if self._is_deficit else Decayed
            balance = self._balance
            standing = self.accounts(level).standing(balance.terms)
            is_bare = balance.is_bare if level == ALL else None
            rule = self._rules[level] = kind(standing, balance.terms, self.uses, level, is_bare)
        return rule

    def accounts(self, level: str) -> Level:
        """Return a copy of the accounts of a level, brought up to now."""
        if level not in self._accounts:
            terms = self._balance.terms
            copy = self._accounts[level] = self._stored(level).copy()
            copy.advance(self._now, terms)
            copy.change(self._newly.get(level, {}), terms)
            if self._is_deficit:
                copy.correct(self._missing(level), terms)
        return self._accounts[level]

    def _stored(self, level: str) -> Level:
        return self._balance.groups if level == ALL else self._balance.users(level)

    @cached_property
    def _newly(self) -> Mapping[str, Mapping[str, Work]]:
        """Differences (PEs) between the work that could start now and that of the accounts, by level."""
        before = self._balance.startable()
        now = before if self._startable is None else self._startable()
        newly: dict[str, dict[str, Work]] = {}
        for pair in sorted({pair for pair, _ in now.items() ^ before.items()}):
            if more := now.get(pair, 0) - before.get(pair, 0):
                group, _, owner = pair.partition(":")
                newly.setdefault(group, {})[owner] = Work(ready=more)
                newly.setdefault(ALL, {}).setdefault(group, Work()).ready += more
        return newly

    def _missing(self, level: str) -> Mapping[str, float]:
        """Return the uncounted use at a level, by group or user."""
        return self._missing_by_level.get(level, {})

    @cached_property
    def _missing_by_level(self) -> Mapping[str, Mapping[str, float]]:
        missing = defaultdict[str, dict[str, float]](lambda: defaultdict(float))
        for group, owner, more in self.uses.uncounted:
            if more:
                missing[ALL][group] += more
                missing[group][owner] += more
        return missing


class ShareRule(ABC):
    """A rule at one level. ``parts``: entitlements of those that have work; ``targets``: the same, corrected
    by past use."""

    def __init__(
        self, standing: Standing, terms: Terms, uses: Uses, name: str, is_bare: Callable[[str], bool] | None
    ) -> None:
        self.parts, self.targets, self._present = standing
        self.terms, self.uses, self.name = terms, uses, name
        self._is_bare = is_bare

    def value(self, name: str) -> float:
        """Return the value of one group or user."""
        if self._is_bare is not None and self._is_bare(name):
            return 0.0
        return max(LEAST, self._value(name))

    @abstractmethod
    def _value(self, name: str) -> float:
        """Return the value of one group or user, which may be below `LEAST`."""

    @abstractmethod
    def terms_of_many(self, names: Collection[str]) -> tuple[list[float], list[float]]:
        """Return the two terms of many values that no start changes: the first of each, then the second."""

    @abstractmethod
    def together(self) -> float:
        """Return the term that all of the level share."""

    @abstractmethod
    def own(self, name: str) -> float:
        """Return the term of one group or user that starts change."""

    @staticmethod
    @abstractmethod
    def of_many(first: Floats, second: Floats, whole: Floats, own: Floats, bound: float) -> Floats:
        """Return the values of many by `terms_of_many`, `together` and `own` of each."""


class Deficit(ShareRule):
    """Entitlement of a group while it had work, minus its use."""

    def __init__(
        self, standing: Standing, terms: Terms, uses: Uses, name: str, is_bare: Callable[[str], bool] | None
    ) -> None:
        super().__init__(standing, terms, uses, name, is_bare)
        self._mean = sum(self._present.values()) / len(self._present) if self._present else 0.0
        self._committed, self._most = uses.committed_at(name), 2 * terms.bound
        self._range = 2 * self._most

    def _value(self, name: str) -> float:
        # K, with committed use. A group without work counts as one that begins to have some.
        committed, most = self._committed, self._most
        present, target = self._present.get(name, self._mean), self.targets.get(name, 0.0)
        owed = present + target * committed.whole - committed.each.get(name, 0.0)
        return (most + (most if owed > most else -most if owed < -most else owed)) / self._range

    def terms_of_many(self, names: Collection[str]) -> tuple[list[float], list[float]]:
        """Return S and a of many."""
        present, targets, mean = self._present, self.targets, self._mean
        return [present.get(name, mean) for name in names], [targets.get(name, 0.0) for name in names]

    def together(self) -> float:
        """Return the sum of C."""
        return self._committed.whole

    def own(self, name: str) -> float:
        """Return C."""
        return self._committed.each.get(name, 0.0)

    @staticmethod
    def of_many(first: Floats, second: Floats, whole: Floats, own: Floats, bound: float) -> Floats:
        """Return max(0.01, (2b + K) / 4b) of many."""
        owed = np.minimum(np.maximum(first + second * whole - own, -2 * bound), 2 * bound)
        return np.maximum(LEAST, (2 * bound + owed) / (4 * bound))


class Decayed(ShareRule):
    """The paper's fair share, among those that have work."""

    def _value(self, name: str) -> float:
        whole, entitled = self.together(), self.parts.get(name, 0.0)
        used = self.own(name) / whole if whole > 0 else 0.0
        return entitled / (entitled + used) if entitled + used > 0 else 1.0

    def terms_of_many(self, names: Collection[str]) -> tuple[list[float], list[float]]:
        """Return E of many, twice."""
        entitled = [self.parts.get(name, 0.0) for name in names]
        return entitled, entitled

    def together(self) -> float:
        """Return the sum of U."""
        return sum(self.uses.used_by(self.name, each) for each in self.parts)

    def own(self, name: str) -> float:
        """Return U."""
        return self.uses.used_by(self.name, name)

    @staticmethod
    def of_many(first: Floats, second: Floats, whole: Floats, own: Floats, bound: float) -> Floats:
        """Return E / (E + U) of many."""
        below = first + np.divide(own, whole, out=np.zeros(len(own)), where=whole > 0)
        values = np.divide(first, below, out=np.ones(len(own)), where=below > 0)
        return np.maximum(LEAST, values)


class Many:
    """Values of many (owner, group) at once; each round reads only the starts since the last."""

    def __init__(self, stock: Stock, pairs: Pairs) -> None:
        self._stock, self._pairs = stock, pairs
        self._first, self._second, self._own = np.zeros((3, len(pairs.keys)))
        for group, of_owner in zip(pairs.groups, pairs.rows, strict=True):
            rule, rows = stock.rule(group), list(of_owner.values())
            self._first[rows], self._second[rows] = rule.terms_of_many(of_owner)
            if rule.together():
                self._own[rows] = [rule.own(owner) for owner in of_owner]
        self._read = len(stock.uses.committed)

    def values(self) -> Floats:
        """Return the values as they are now, in the order of the keys."""
        stock, pairs, committed = self._stock, self._pairs, self._stock.uses.committed
        for group, owner in committed[self._read :]:
            row = pairs.rows[pairs.groups.index(group)].get(owner) if group in pairs.groups else None
            if row is not None:
                self._own[row] = stock.rule(group).own(owner)
        self._read = len(committed)
        top = stock.rule(ALL)
        of_groups = np.array([top.value(group) for group in pairs.groups]).take(pairs.place)
        whole = np.array([stock.rule(group).together() for group in pairs.groups]).take(pairs.place)
        own = top.of_many(self._first, self._second, whole, self._own, top.terms.bound)
        return np.where(of_groups > 0, (1 - OWN) * of_groups + OWN * own, 0.0)
