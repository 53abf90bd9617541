"""The share rule *decayed*, the paper's fair share: E/(E + U), as fractions among those that have work. E is
the entitlement e of `division`, U the decayed use with committed use. The value is 1 if nothing was used."""

from collections.abc import Iterable, Sequence

from nqspy.model.accounts import account_of, remaining_of_even
from nqspy.model.domains import account_keys
from nqspy.model.ids import Instant
from nqspy.model.site import Site
from nqspy.shares.rule import LEAST, Charge, ShareRule


class Decayed(ShareRule):
    """Share rule of the paper: entitlement against decayed use, among those that have work."""

    word, means = "decayed", "E/(E + U) of entitlement and decayed use"

    @classmethod
    def charge(cls, site: Site, domain: str, at: Instant, uses: Sequence[Charge]) -> None:
        """Add each use to the accounts of its group and user as if it was spread evenly over its span: an
        account is the decayed integral of its use."""
        accounts, half_life = site.accounts, site.settings.usage.half_life
        for use in uses:
            if use.more:
                more = use.more * remaining_of_even(use.span, half_life)
                keys = account_keys(domain, use.group, use.owner)
                site.touched.accounts.update(keys)
                for key in keys:
                    (accounts.get(key) or account_of(accounts, key)).add(more, at, half_life)

    def values(self, names: Iterable[str]) -> list[float]:
        """Return entitlement / (entitlement + use) of each name, as parts of the whole; 1 if both are 0."""
        parts, used_by, level = self.standing.parts, self.uses.used_by, self.level
        whole, values = sum(used_by(level, each) for each in parts), list[float]()
        for name in names:
            entitled, used = parts.get(name, 0.0), used_by(level, name) / whole if whole > 0 else 0.0
            values.append(max(LEAST, entitled / (entitled + used) if entitled + used > 0 else 1.0))
        return values


RULE = Decayed
