"""Share rules: the value of groups and users, from what they are owed, unless an exit gives it (semantics.md
1, ``set global share_rule``). Each rule is a file of this folder and a line in the list of `rules`.

All rules consider only groups and users that have work now, distinguish any two that differ, and stay within
[0, 1]. A group of share 0 has 0, all others more. A user has 0.9 of the group's value and 0.1 of the value by
the same rule among the users of the group.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple, Protocol

from nqspy.model.ids import Instant
from nqspy.model.site import Site
from nqspy.shares.level import Standing, Terms

LEAST = 0.01
"""Least value of a group or user with a share."""

OWN = 0.1
"""Part of a user's own value; the rest is the group's value."""

ALL = ""
"""The level of the groups; the name of a group is the level of its users."""


class Charge(NamedTuple):
    """Use of an attempt since its last charge. ``more``: all of it (ms); ``missing``: the part that its rate
    did not count; ``span``: time over which it was used (ms)."""

    group: str
    owner: str
    more: int
    missing: float
    span: int


class Committed:
    """Committed use (ms) at a level: ``whole``, and by name in ``each``."""

    def __init__(self) -> None:
        self.whole, self.each = 0.0, dict[str, float]()

    def add(self, name: str, more: float) -> None:
        """Add ``more`` committed use (ms) of a group or user."""
        self.each[name] = self.each.get(name, 0.0) + more
        self.whole += more


class Uses(Protocol):
    """Part of a ledger (`FairShare`) that rules use. ``level``: `ALL` (groups), or a group (its users)."""

    @property
    def committed(self) -> Sequence[tuple[str, str]]:
        """The (group, owner) of each start charged so far in this pass."""

    @property
    def uncounted(self) -> Sequence[tuple[str, str, float]]:
        """Group, owner and reported use of running requests since their charge, minus the estimate (ms)."""

    def committed_at(self, level: str) -> Committed:
        """Return the committed use at a level; later starts are added to the returned object."""

    def used_by(self, level: str, name: str) -> float:
        """Return the use (ms) of a group or user at a level, committed use included."""


class ShareRule(ABC):
    """A share rule. The accounts of all rules are kept up to date, so that another one can be set at any
    time: `advance` and `charge` are called for each. An object is the rule in force at one level in one pass.

    - ``word``, ``means``: the word of ``set global share_rule``, and its meaning.
    - ``corrects``: True if what running requests used beyond the estimate is charged in a pass.
    - ``standing``: entitlement, target and what is owed of those that have work.
    """

    word: ClassVar[str]
    means: ClassVar[str]
    corrects: ClassVar[bool] = False

    def __init__(self, standing: Standing, terms: Terms, uses: Uses, level: str) -> None:
        self.standing, self.terms, self.uses, self.level = standing, terms, uses, level

    @classmethod  # noqa: B027 - a rule may do nothing
    def advance(cls, site: Site, domain: str, at: Instant, groups: Iterable[str]) -> None:
        """Let time pass up to ``at`` in the accounts of a domain's groups, and of users of these groups."""

    @classmethod  # noqa: B027 - a rule may do nothing
    def charge(cls, site: Site, domain: str, at: Instant, uses: Sequence[Charge]) -> None:
        """Charge uses to the accounts of a domain, after letting time pass up to ``at``."""

    def value(self, name: str) -> float:
        """Return the value of a group or user, from 0 to 1."""
        return self.values((name,))[0]

    @abstractmethod
    def values(self, names: Iterable[str]) -> list[float]:
        """Return the values of groups or users of this level, from 0 to 1."""
