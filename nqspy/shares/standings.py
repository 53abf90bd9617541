"""Values of groups and users of a domain in one pass, by the share rule in force (semantics.md 1)."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np

from nqspy.model.columns import Floats, Pairs
from nqspy.model.ids import Instant
from nqspy.model.site import Site
from nqspy.shares.balance import balance_of
from nqspy.shares.level import Level, Work
from nqspy.shares.rule import ALL, OWN, ShareRule, Uses
from nqspy.shares.rules import RULES


class Stock:
    """Share values (0 to 1) of groups and users of a domain in one pass. ``startable``: returns the PEs that
    could start by ``GROUP:USER`` (None: as the last pass reported them)."""

    def __init__(
        self,
        site: Site,
        domain: str,
        now: Instant,
        uses: Uses,
        startable: Callable[[], Mapping[str, int]] | None,
    ) -> None:
        self._now, self.uses, self._kind = now, uses, RULES[site.settings.global_.share_rule]
        self._balance = balance_of(site, domain)
        self._startable = startable
        self._rules: dict[str, ShareRule] = {}
        self._accounts: dict[str, Level] = {}

    def value(self, owner: str | None, group: str) -> float:
        """Return the value of a user in a group, or (``owner`` None) of the group; 0: it has no share."""
        if self._balance.is_bare(group):
            return 0.0
        of_group = self.rule(ALL).value(group)
        return of_group if owner is None else (1 - OWN) * of_group + OWN * self.rule(group).value(owner)

    def rule(self, level: str) -> ShareRule:
        """Return the share rule in force, made for a level (`ALL`: groups) with what is owed there now."""
        rule = self._rules.get(level)
        if rule is None:
            stored, terms = self._stored(level), self._balance.terms
            if level in self._newly or self._missing(level) or any(w.rate for w in stored.work.values()):
                standing = self.accounts(level).standing(terms)
            else:
                standing = stored.standing(terms, self._now)
            rule = self._rules[level] = self._kind(standing, terms, self.uses, level)
        return rule

    def accounts(self, level: str) -> Level:
        """Return a copy of a level's accounts, brought up to now, with the work that could start now."""
        if level not in self._accounts:
            terms = self._balance.terms
            copy = self._accounts[level] = self._stored(level).copy()
            copy.advance(self._now, terms)
            copy.change(self._newly.get(level, {}), terms)
            if self._kind.corrects:
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
        """Return the use (ms) at a level that rates did not count (`Uses.uncounted`), by group or user."""
        return self._missing_by_level.get(level, {})

    @cached_property
    def _missing_by_level(self) -> Mapping[str, Mapping[str, float]]:
        missing = defaultdict[str, dict[str, float]](lambda: defaultdict(float))
        for group, owner, more in self.uses.uncounted:
            if more:
                missing[ALL][group] += more
                missing[group][owner] += more
        return missing


class Many:
    """Share values of many (owner, group) at once; those of a group's users are computed anew only after a
    start in it."""

    def __init__(self, stock: Stock, pairs: Pairs) -> None:
        self._stock, self._pairs = stock, pairs
        self._rows = dict(zip(pairs.groups, pairs.rows, strict=True))
        self._own, self._stale, self._read = np.zeros(len(pairs.keys)), set(pairs.groups), 0

    def values(self) -> Floats:
        """Return the present values in the order of the pairs; 0: the group has no share."""
        stock, committed = self._stock, self._stock.uses.committed
        self._stale |= {group for group, _ in committed[self._read :] if group in self._rows}
        self._read = len(committed)
        for group in self._stale:
            rows = self._rows[group]
            self._own[list(rows.values())] = stock.rule(group).values(rows)
        self._stale.clear()
        of_groups = np.array([stock.value(None, group) for group in self._rows]).take(self._pairs.place)
        return np.where(of_groups > 0, (1 - OWN) * of_groups + OWN * self._own, 0.0)
