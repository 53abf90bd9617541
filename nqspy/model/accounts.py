"""Decayed use of groups and their users, and other data on which quotas rest. Half of a use is forgotten in
each half-life (``set usage half_life=``). Accounts, shares, caps and reports use it; times in ms."""

from dataclasses import dataclass, field
from functools import lru_cache
from math import expm1, log, log2

from nqspy.model.ids import Instant


def remaining(span: float, half_life: int) -> float:
    """Return the part (0 to 1) of a use that is left after ``span`` ms: half after each half-life (ms)."""
    part: float = 2.0 ** (-span / half_life)
    return part


@lru_cache(256)  # many uses over one span are charged at one instant
def remaining_of_even(span: float, half_life: int) -> float:
    """Return the part of a use that is left at the end of a ``span`` (ms) over which it was evenly spread:
    the integral of 2^(-t/h) over the span, divided by the span. The longer the span, the less is left."""
    x = span / half_life * log(2)
    return -expm1(-x) / x if x > 1e-6 else 1.0


def span_to(part: float, half_life: int) -> float:
    """Return the time (ms) after which 1 / ``part`` of a use is left."""
    return log2(part) * half_life


def lasting_use(rate: float, half_life: int) -> float:
    """Return the decayed use (ms) of an account that is charged at this rate (ms each ms) for ever."""
    return rate * half_life / log(2)


@dataclass(slots=True)
class Entry:
    """Both accounts of what one group, or one user in a group, is owed, in the unit that is charged (ms). (No
    Struct: it is written whenever time passes, and writing a Struct takes twice as long.) ``past`` (L) and
    ``present`` (S) as of ``asof``; both stand still while the member is not in W, the set of members with
    work. ``away``: since when it is not in W (None: it is). ``ready``: PEs for which its requests could start
    (users only). ``entitled``, ``got``, ``whole``: its entitlement, its charge and the charge of all while it
    was in W, since the shift began. ``left``: the charge of all ever until it left W (groups only)."""

    past: float = 0.0
    present: float = 0.0
    asof: Instant = Instant(0)
    away: Instant | None = Instant(0)
    ready: int = 0
    entitled: float = 0.0
    got: float = 0.0
    whole: float = 0.0
    left: float = 0.0

    def copy(self) -> "Entry":
        """Return an independent copy."""
        made = Entry.__new__(Entry)  # a pass copies many
        made.past, made.present, made.asof, made.away = self.past, self.present, self.asof, self.away
        made.ready, made.entitled, made.got = self.ready, self.entitled, self.got
        made.whole, made.left = self.whole, self.left
        return made


@dataclass(slots=True)
class Account:
    """Decayed use of a group, or of a user in a group: ``value`` (ms of CPU time or PE time) as of instant
    ``at``. ``recent``: use of the last 20 requests that ended (groups only), from which the use of running
    ones is estimated. ``entry``: what the account is owed."""

    value: float = 0.0
    at: Instant = Instant(0)
    recent: list[int] = field(default_factory=list)
    entry: Entry = field(default_factory=Entry)

    def copy(self) -> "Account":
        """Return an independent copy."""
        return Account(self.value, self.at, list(self.recent), self.entry.copy())

    def at_time(self, now: Instant, half_life: int) -> float:
        """Return the use (ms) decayed from ``at`` to ``now``: half is forgotten in each half-life."""
        if not self.value or now <= self.at:
            return self.value
        return self.value * remaining(now - self.at, half_life)

    def add(self, more: float, at: Instant, half_life: int) -> None:
        """Let the account decay to the instant ``at``, then add ``more`` use (ms)."""
        if at > self.at:
            self.value *= remaining(at - self.at, half_life)
            self.at = at
        self.value += more


RECENT = 20


def account_of(accounts: dict[str, Account], key: str) -> Account:
    """Return the account of a key; create it if there is none."""
    found = accounts.get(key)
    if found is None:
        found = accounts[key] = Account()
    return found


@dataclass(slots=True)
class DomainPast:
    """Other data on which the quotas of a domain rest (`Site.past`). ``runs``: wall times (ms) of its last 20
    requests that ended; ``spent``: whole charge of its groups so far (`balance.Level`)."""

    runs: list[int] = field(default_factory=list)
    spent: float = 0.0

    def copy(self) -> "DomainPast":
        """Return an independent copy."""
        return DomainPast(list(self.runs), self.spent)
