"""Use of groups and their users, other bases of quotas, and decay: half of a use is forgotten in each
half-life (``set usage half_life=``). Accounts, shares, caps, reports rest on it; times in ms."""

from dataclasses import dataclass, field
from functools import lru_cache
from math import expm1, log, log2

from nqspy.model.ids import Instant


def remaining(span: float, half_life: int) -> float:
    """Return the part of a use that is left after a span."""
    left: float = 2.0 ** (-span / half_life)
    return left


@lru_cache(256)  # many uses over one span are charged at one instant
def remaining_of_even(span: float, half_life: int) -> float:
    """Return the part that is left, at the end of a span, of a use that was even over it: the integral of
    2^(-t/h) over the span, divided by the span. It is less the longer the span."""
    x = span / half_life * log(2)
    return -expm1(-x) / x if x > 1e-6 else 1.0


def span_to(part: float, half_life: int) -> float:
    """Return the span after which only 1 / ``part`` of a use is left."""
    return log2(part) * half_life


def lasting_use(rate: float, half_life: int) -> float:
    """Return the decayed use of a rate (ms each ms) that holds for ever."""
    return rate * half_life / log(2)


@dataclass(slots=True)
class Entry:
    """Both accounts of one group, or of one user in a group, in the unit that is charged (ms). (No Struct: it
    is written to whenever time passes, which takes a Struct twice as long.) ``past`` (L) and ``present`` (S)
    as of ``asof``, both frozen while it is away; ``away``: since when it is not in W, None while it is;
    ``ready``: PEs for which its requests could start (users only). ``entitled``, ``got`` and ``whole``: what
    it was entitled to, was charged, and all were charged while it was in W, since the present shift began;
    ``left``: what all had been charged ever when it left W (groups only)."""

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
        """A copy of its own."""
        made = Entry.__new__(Entry)  # a pass copies many
        made.past, made.present, made.asof, made.away = self.past, self.present, self.asof, self.away
        made.ready, made.entitled, made.got = self.ready, self.entitled, self.got
        made.whole, made.left = self.whole, self.left
        return made


@dataclass(slots=True)
class Account:
    """Decayed use of a group or of a user in a group: ``value`` (ms of CPU, or of PE time) as it stood at
    instant ``at``. ``recent``: use of the last 20 requests that ended (groups only), what a running one is
    expected to use; ``entry``: what it is owed."""

    value: float = 0.0
    at: Instant = Instant(0)
    recent: list[int] = field(default_factory=list)
    entry: Entry = field(default_factory=Entry)

    def copy(self) -> "Account":
        """A copy of its own."""
        return Account(self.value, self.at, list(self.recent), self.entry.copy())

    def at_time(self, now: Instant, half_life: int) -> float:
        """Return its value at ``now``: half is forgotten after each half-life."""
        if not self.value or now <= self.at:
            return self.value
        return self.value * remaining(now - self.at, half_life)

    def add(self, more: float, at: Instant, half_life: int) -> None:
        """So much more was used by then."""
        if at > self.at:
            self.value *= remaining(at - self.at, half_life)
            self.at = at
        self.value += more


RECENT = 20


def account_of(accounts: dict[str, Account], key: str) -> Account:
    """The account of that key, made where there is none."""
    found = accounts.get(key)
    if found is None:
        found = accounts[key] = Account()
    return found


@dataclass(slots=True)
class DomainPast:
    """Base of quotas in a domain besides the accounts: wall time (ms) of its last 20 requests that ended, and
    what all its groups were charged while time passed (`balance.Level`)."""

    runs: list[int] = field(default_factory=list)
    spent: float = 0.0

    def copy(self) -> "DomainPast":
        """A copy of its own."""
        return DomainPast(list(self.runs), self.spent)
