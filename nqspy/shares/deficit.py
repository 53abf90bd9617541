"""The share rule *deficit*: entitlement of a group while it had work, minus its use.

S and a are those of `level` now, b is its bound, and C is the committed use (`ledger`):

    K = clip(S + a * sum(C) - C_own, -2b, 2b)        value = max(0.01, (2b + K) / 4b)
"""

from collections.abc import Iterable, Sequence

from nqspy.model.ids import Instant
from nqspy.model.site import Site
from nqspy.shares.balance import balance_of
from nqspy.shares.level import Standing, Terms
from nqspy.shares.rule import LEAST, Charge, ShareRule, Uses


class Deficit(ShareRule):
    """Share rule by deficit: entitlement of a group while it had work, minus its use."""

    word, means = "deficit", "entitlement of a group while it had work, minus its use"
    corrects = True

    def __init__(self, standing: Standing, terms: Terms, uses: Uses, level: str) -> None:
        super().__init__(standing, terms, uses, level)
        present = standing.present.values()
        self._mean = sum(present) / len(present) if present else 0.0
        self._committed = uses.committed_at(level)

    @classmethod
    def advance(cls, site: Site, domain: str, at: Instant, groups: Iterable[str]) -> None:
        """Let time pass up to ``at`` in the accounts of the groups, and of the users of these groups."""
        balance_of(site, domain).advance(at, groups)

    @classmethod
    def charge(cls, site: Site, domain: str, at: Instant, uses: Sequence[Charge]) -> None:
        """Let time pass in the accounts, and charge what was not counted in it."""
        missing: dict[str, dict[str, float]] = {}
        for use in uses:
            of_group = missing.setdefault(use.group, {})
            of_group[use.owner] = of_group.get(use.owner, 0.0) + use.missing
        balance_of(site, domain).charge(at, missing)

    def values(self, names: Iterable[str]) -> list[float]:
        """Return max(0.01, (2b + K) / 4b) of each name; a member without work counts with the mean S."""
        present, targets, committed = self.standing.present, self.standing.targets, self._committed
        most, whole, values = 2 * self.terms.bound, committed.whole, []
        for name in names:
            owed = present.get(name, self._mean) + targets.get(name, 0.0) * whole
            owed -= committed.each.get(name, 0.0)
            owed = most if owed > most else -most if owed < -most else owed
            values.append(max(LEAST, (most + owed) / (2 * most)))
        return values


RULE = Deficit
