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

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from nqspy.core.totals import ALL
from nqspy.model.columns import Floats
from nqspy.model.ids import Instant
from nqspy.model.level import Level, Standing
from nqspy.model.owed import Terms, Work
from nqspy.model.pairs import Pairs
from nqspy.model.site import Site

LEAST = 0.01
"""The least value of anybody with a share."""

OWN = 0.1
"""Part of a user's value that is his own; the rest is his group's."""


class Sums(Protocol):
    """What is committed at a level by now: in all, and of each."""

    @property
    def whole(self) -> float: ...
    @property
    def each(self) -> Mapping[str, float]: ...


class Uses(Protocol):
    """What the rules ask of a ledger; ``level``: `ALL` for the groups, a group for its users."""

    @property
    def committed(self) -> Sequence[tuple[str, str]]:
        """(group, owner) of each start debited so far."""

    @property
    def uncounted(self) -> Sequence[tuple[str, str, float]]:
        """Group, owner and how much of what running requests are known to have used since they were charged,
        beyond what they count as."""

    def committed_at(self, level: str) -> "Sums":
        """What is committed; what is later is in it too."""

    def used_by(self, level: str, name: str) -> float:
        """Use with what is committed."""


class Stock:
    """Values of groups and users of a domain in one pass. ``startable``: what could start when it began."""

    def __init__(
        self,
        site: Site,
        domain: str,
        now: Instant,
        uses: Uses,
        startable: Callable[[], Mapping[str, int]] | None,
    ) -> None:
        self._site, self._now, self.uses = site, now, uses
        self._balance = site.balance_of(domain)
        self._startable = startable
        self._is_deficit = site.settings.global_.share_rule == "deficit"
        self._rules: dict[str, ShareRule] = {}
        self._accounts: dict[str, Level] = {}

    def value(self, owner: str | None, group: str) -> float:
        """The value of a user in a group, or of the group."""
        of_group = (self._rules.get(ALL) or self.rule(ALL)).value(group)
        if owner is None or not of_group:
            return of_group
        return (1 - OWN) * of_group + OWN * self.rule(group).value(owner)

    def rule(self, level: str) -> "ShareRule":
        """The rule in force, at one level."""
        found = self._rules.get(level)
        if found is None:
            make = Deficit if self._is_deficit else Decayed
            balance, standing = self._balance, self._standing(level)
            is_bare = balance.is_bare if level == ALL else None
            found = self._rules[level] = make(standing, balance.terms, self.uses, level, is_bare)
        return found

    def _standing(self, level: str) -> Standing:
        # A copy only where who has work changes, or time passes in which somebody is charged.
        kept, terms, missing = self._kept(level), self._balance.terms, self._missing(level)
        if level not in self._newly:
            if not missing and not kept.rate():
                return kept.resting(self._now, terms)
            if missing and self._is_deficit and kept.at >= self._now:
                found = kept.corrected(missing, terms)
                if found is not None:
                    return found
        return self.accounts(level).standing(terms)

    def accounts(self, level: str) -> Level:
        """The accounts of a level as they stand now: a copy."""
        if level not in self._accounts:
            terms = self._balance.terms
            found = self._accounts[level] = self._kept(level).copy()
            found.advance(self._now, terms)
            found.change(self._newly.get(level, {}), terms)
            if self._is_deficit:
                found.correct(self._missing(level), terms)
        return self._accounts[level]

    def _kept(self, level: str) -> Level:
        return self._balance.groups if level == ALL else self._balance.users(level)

    @cached_property
    def _newly(self) -> Mapping[str, Mapping[str, Work]]:
        """By how many PEs what could start differs from what was known, by level; where it does."""
        known = self._balance.startable()
        now = known if self._startable is None else self._startable()
        found: dict[str, dict[str, Work]] = {}
        for pair in sorted({pair for pair, _ in now.items() ^ known.items()}):
            if more := now.get(pair, 0) - known.get(pair, 0):
                group, _, owner = pair.partition(":")
                found.setdefault(group, {})[owner] = Work(ready=more)
                found.setdefault(ALL, {}).setdefault(group, Work()).ready += more
        return found

    def _missing(self, level: str) -> Mapping[str, float]:
        """What was used at a level and not counted, by group or user."""
        return self._missing_of_groups if level == ALL else self._missing_of_users.get(level, {})

    @cached_property
    def _missing_of_groups(self) -> Mapping[str, float]:
        found: dict[str, float] = {}
        for group, _, more in self.uses.uncounted:
            if more:
                found[group] = found.get(group, 0.0) + more
        return found

    @cached_property
    def _missing_of_users(self) -> Mapping[str, Mapping[str, float]]:
        found = defaultdict[str, dict[str, float]](lambda: defaultdict(float))
        for group, owner, more in self.uses.uncounted:
            if more:
                found[group][owner] += more
        return found


class ShareRule(ABC):
    """A rule at one level: ``parts`` are the entitlements of those who have work, ``targets`` these bent by
    the past."""

    def __init__(
        self, standing: Standing, terms: Terms, uses: Uses, name: str, is_bare: Callable[[str], bool] | None
    ) -> None:
        self.parts, self.targets, self._present = standing
        self.terms, self.uses, self.name = terms, uses, name
        self._is_bare = is_bare

    def value(self, name: str) -> float:
        """Of one group or user."""
        is_bare = self._is_bare
        if is_bare is not None and is_bare(name):
            return 0.0
        found = self._value(name)
        return found if found > LEAST else LEAST

    @abstractmethod
    def _value(self, name: str) -> float:
        """The same, before the least that everybody with a share has."""

    @abstractmethod
    def terms_of_many(self, names: Collection[str]) -> tuple[list[float], list[float]]:
        """What the values of many rest on that no start changes: first of all of them the one, then the
        other."""

    @abstractmethod
    def together(self) -> float:
        """What of all of the level it rests on."""

    @abstractmethod
    def own(self, name: str) -> float:
        """What of its own it rests on that starts change."""

    @staticmethod
    @abstractmethod
    def of_many(first: Floats, second: Floats, whole: Floats, own: Floats, bound: float) -> Floats:
        """The values of many: `terms_of_many`, `together` and `own` of each."""


class Deficit(ShareRule):
    """What a group was entitled to while it had work, less what it got."""

    def __init__(
        self, standing: Standing, terms: Terms, uses: Uses, name: str, is_bare: Callable[[str], bool] | None
    ) -> None:
        super().__init__(standing, terms, uses, name, is_bare)
        self._mean = sum(self._present.values()) / len(self._present) if self._present else 0.0
        self._committed, self._most = uses.committed_at(name), 2 * terms.bound
        self._range = 2 * self._most

    def _value(self, name: str) -> float:
        # K: what it is owed, what is committed included; who has no work, as who begins to have some.
        committed, most = self._committed, self._most
        present, target = self._present.get(name, self._mean), self.targets.get(name, 0.0)
        owed = present + target * committed.whole - committed.each.get(name, 0.0)
        return (most + (most if owed > most else -most if owed < -most else owed)) / self._range

    def terms_of_many(self, names: Collection[str]) -> tuple[list[float], list[float]]:
        """S and a of many."""
        present, targets, mean = self._present, self.targets, self._mean
        return [present.get(name, mean) for name in names], [targets.get(name, 0.0) for name in names]

    def together(self) -> float:
        """The sum of C."""
        return self._committed.whole

    def own(self, name: str) -> float:
        """C."""
        return self._committed.each.get(name, 0.0)

    @staticmethod
    def of_many(first: Floats, second: Floats, whole: Floats, own: Floats, bound: float) -> Floats:
        """(2b + K) / 4b."""
        owed = np.minimum(np.maximum(first + second * whole - own, -2 * bound), 2 * bound)
        return np.maximum(LEAST, (2 * bound + owed) / (4 * bound))


class Decayed(ShareRule):
    """The paper's fair share, among those who have work."""

    def _value(self, name: str) -> float:
        whole, entitled = self.together(), self.parts.get(name, 0.0)
        used = self.own(name) / whole if whole > 0 else 0.0
        return entitled / (entitled + used) if entitled + used > 0 else 1.0

    def terms_of_many(self, names: Collection[str]) -> tuple[list[float], list[float]]:
        """E of many, twice."""
        found = [self.parts.get(name, 0.0) for name in names]
        return found, found

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
        """As they stand now, in the order of the keys."""
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
