"""Sums of use: decayed accounts and what is booked beside them, by group, by user, and by user in a group."""

from collections.abc import Iterable

from nqspy.model import people
from nqspy.model.ids import Instant
from nqspy.model.site import Site

ALL = ""
"""The level of the groups, beside those of their users."""

Booking = tuple[str, str, float]
"""Group, owner, and how much."""


class Totals:
    """Use at an instant. ``all``: the whole; ``groups``: with all below them, ``lasting`` what of that was
    booked; ``levels``: of a group itself (`ALL`, group) and of a user in it (group, user)."""

    def __init__(self, site: Site, now: Instant, domain: str | None = None) -> None:
        """``domain``: the only one whose accounts count; None: all."""
        self._tree = site.settings.groups
        self.all = 0.0
        self.groups: dict[str, float] = {}
        self.lasting: dict[str, float] = {}
        self.owners: dict[str, float] = {}
        self.levels: dict[tuple[str, str], float] = {}
        self.pairs: dict[tuple[str, str], float] = {}
        half_life = site.settings.usage.half_life
        for key, account in site.accounts_in(domain):
            kind, _, rest = key.partition(":")
            value = account.at_time(now, half_life)
            if kind == "g":
                self._add_group(rest, value)
            else:
                group, _, owner = rest.partition(":")
                self._add_user(group, owner, value)

    def book(self, bookings: Iterable[Booking]) -> None:
        """Adds what the accounts do not hold yet."""
        for group, owner, amount in bookings:
            self._add_group(group, amount)
            for name in people.lineage(self._tree, group):
                self.lasting[name] = self.lasting.get(name, 0.0) + amount
            self._add_user(group, owner, amount)

    def _add_group(self, group: str, amount: float) -> None:
        self.all += amount
        self.levels[ALL, group] = self.levels.get((ALL, group), 0.0) + amount
        for name in people.lineage(self._tree, group):
            self.groups[name] = self.groups.get(name, 0.0) + amount

    def _add_user(self, group: str, owner: str, amount: float) -> None:
        key = (group, owner)
        self.pairs[key] = self.pairs.get(key, 0.0) + amount
        self.levels[key] = self.levels.get(key, 0.0) + amount
        self.owners[owner] = self.owners.get(owner, 0.0) + amount
