"""What groups, and users inside a group, are owed: the two accounts of the deficit rule, exactly as
semantics.md 1 defines them ("The deficit rule, exactly"). The scheduler, ``show shares`` and the reports all
use this; nothing here decides.

*W*, who has work: a group with a request that runs, or with a queued one that could start. Runs and ends are
events; what could start the last pass says (`events.Decided.ready`, only what changed: the number of PEs for
which each owner in each group has startable requests, at most the machine's). So between two passes W costs
nothing, however many wait, and a replay sees what was seen. An absence of less than `GRACE` is none: between
the end of a chain's link and the start of the next lies a pass.

*Time* passes in steps: every event that changes a rate, W, or the terms first lets the time since the last
one pass at the rates that held (`Level.advance`), in pieces of at most `PIECE` since the target bends with
the long account. Between two events nothing is computed. A running request counts as charged at its *rate*
(`Request.rate`); when its use is told, the difference to what was counted is corrected at once
(`Level.correct`), in its own account and, as part of what all were entitled to, in everybody's. Sums of rates
are whole numbers, and everything is added up in the order of names, so that the same events give the same
digits.

The groups' level knows the whole machine. Each group's users are a level of their own, of equal weight, over
the PEs that the group holds; it only moves on with events of that group.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from nqspy.model.accounts import Account, Entry, account_of
from nqspy.model.domains import APPLICATION, account_key
from nqspy.model.ids import Instant
from nqspy.model.people import Group
from nqspy.model.requests import State
from nqspy.model.site import Site
from nqspy.shares.division import Division, alike
from nqspy.shares.level import UNKNOWN_RUN, Level, Terms


@dataclass(slots=True)
class Balance:
    """The accounts of a site (or of a report that follows its events). ``find`` gives the entry of an
    account's key (``g:GROUP``, ``u:GROUP:USER``), made where there is none, ``peek`` one that is there;
    ``changed``: keys whose entries changed, until whoever keeps them has taken note."""

    find: Callable[[str], Entry]
    peek: Callable[[str], Entry | None]
    terms: Terms = field(default_factory=Terms)
    changed: set[str] = field(default_factory=set)
    _division: Division = field(default_factory=lambda: Division({}, 1))
    _users: dict[str, Level] = field(default_factory=dict)
    _ready: dict[str, int] = field(default_factory=dict)
    groups: Level = field(init=False)

    def __post_init__(self) -> None:
        self.groups = Level(
            lambda name: self.find(f"g:{name}"),
            lambda name: self.peek(f"g:{name}"),
            self._divide,
            cuts=True,
            key="g:",
        )
        self.groups.spent = 0.0

    def _divide(self, wanted: Mapping[str, int]) -> dict[str, float]:
        return self._division.parts(wanted)

    @property
    def is_bare(self) -> Callable[[str], bool]:
        """Tells whether a group has no share, until the shares change."""
        return self._division.is_bare

    def users(self, group: str) -> Level:
        """The level of a group's users."""
        level = self._users.get(group)
        if level is None:
            level = Level(
                lambda name: self.find(f"u:{group}:{name}"),
                lambda name: self.peek(f"u:{group}:{name}"),
                lambda wanted: self._alike(group, wanted),
                key=f"u:{group}:",
            )
            level.at = self.groups.at
            self._users[group] = level
        return level

    def _alike(self, group: str, wanted: Mapping[str, int]) -> dict[str, float]:
        work = self.groups.work.get(group)
        return alike(wanted, max(1, work.pes if work is not None else 1))

    def tune(self, terms: Terms, groups: Mapping[str, Group]) -> None:
        """Other terms, other shares: from the instant on to which time has passed."""
        self.terms, self._division = terms, Division(groups, terms.pes, terms.machine or None)
        for level in (self.groups, *self._users.values()):
            level.forget()

    # ------------------------------------------------------------ what happens

    def advance(self, at: Instant, groups: Iterable[str] = ()) -> None:
        """Lets time pass for the groups, and for the users of these."""
        if self.groups.advance(at, self.terms):
            self.changed.update(self.groups.keys())
        for group in groups:
            level = self.users(group)
            if level.advance(at, self.terms):
                self.changed.update(level.keys())

    def levels(self) -> list[str]:
        """Return the groups whose users have a level."""
        return list(self._users)

    def recharge(self, group: str, owner: str, rate: int) -> None:
        """What an owner in a group is charged changes by so much (thousandths of a PE); time has passed
        before."""
        groups, users = self.groups, self.users(group)
        if group in groups.members() and owner in users.members():  # they stay in W
            groups.work[group].rate += rate
            users.work[owner].rate += rate
        else:
            self.change(group, owner, rate)

    def change(self, group: str, owner: str, rate: int = 0, pes: int = 0, ready: int = 0) -> None:
        """What an owner in a group does changes by so much; time has passed before."""
        terms, users = self.terms, self.users(group)
        self.groups.change_one(group, rate, pes, ready, terms)
        users.change_one(owner, rate, pes, ready, terms)
        if pes:
            users.forget()
        self.changed.update((f"g:{group}", f"u:{group}:{owner}"))

    def ready(self, pairs: Iterable[tuple[str, int]]) -> None:
        """Note what a pass found startable: PEs by ``GROUP:USER``; time has passed before."""
        for pair, pes in pairs:
            group, _, owner = pair.partition(":")
            self._ready[pair] = pes
            entry = self.peek(f"u:{pair}")
            before = entry.ready if entry is not None else 0
            if pes != before:
                self.find(f"u:{pair}").ready = pes
                self.change(group, owner, ready=pes - before)

    def restore(self, group: str, owner: str, pes: int) -> None:
        """What a pass had said before a restart."""
        self.change(group, owner, ready=pes)
        self._ready[f"{group}:{owner}"] = pes

    def startable(self) -> Mapping[str, int]:
        """What a pass said last: PEs by ``GROUP:USER``; who is left out has none."""
        return self._ready

    def charge(self, at: Instant, amounts: Mapping[str, Mapping[str, float]]) -> None:
        """Lets time pass, in which so much more was used than was counted, by group and owner."""
        terms, changed, known = self.terms, self.changed, self._users
        of_groups = {group: sum(of_users.values()) for group, of_users in amounts.items()}
        changed.update(self.groups.charge(at, of_groups, terms))
        for group, of_users in amounts.items():
            changed.update((known.get(group) or self.users(group)).charge(at, of_users, terms))

    def begin_period(self, keys: Iterable[str]) -> None:
        """Another shift is in force: what each was entitled to and got is counted anew; time has passed
        before."""
        for key in keys:
            entry = self.find(key)
            if entry.whole:
                entry.entitled = entry.got = entry.whole = 0.0
                self.changed.add(key)


def balance_of(site: Site, domain: str = APPLICATION) -> Balance:
    """Return what groups and users are owed in a domain, built from the accounts and what runs when it is
    first asked for."""
    balance: Balance | None = site.balances.get(domain)
    if balance is None:
        balance = site.balances[domain] = _made(site, domain)
    return balance


def terms_of(site: Site, domain: str = APPLICATION) -> Terms:
    """Return the terms in force in a domain."""
    usage, past = site.settings.usage, site.past.get(domain)
    run = sum(past.runs) / len(past.runs) if past is not None and past.runs else UNKNOWN_RUN
    there = site.domain(domain)
    pes = int(site.pes_of(there).sum()) if site.is_divided() else site.pes()
    return Terms(pes * there.depth, usage.half_life, usage.payback / 100, run, site.pes())


def division_of(site: Site, domain: str = APPLICATION) -> Division:
    """Return how the PEs of a domain are divided by the shares in force."""
    return Division(site.settings.groups, terms_of(site, domain).pes, site.pes())


def _made(site: Site, domain: str) -> Balance:
    accounts, known = site.accounts, list(site.accounts_in(domain))

    def peek(key: str) -> Entry | None:
        account = accounts.get(account_key(domain, key))
        return account.entry if account is not None else None

    def find(key: str) -> Entry:
        return account_of(accounts, account_key(domain, key)).entry

    made = Balance(find, peek)
    made.tune(terms_of(site, domain), site.settings.groups)
    _set_clocks(site, made, known)
    made.groups.spent = site.past[domain].spent if domain in site.past else 0.0
    for key, account in known:
        kind, group, owner = (*key.split(":", 2), "")[:3]
        if kind == "u" and account.entry.ready:
            made.restore(group, owner, account.entry.ready)
    for request in site.started.values():
        if request.state is State.RUNNING and site.domain_of(request.queue).name == domain:
            made.change(request.group, request.owner, request.run.rate, request.spec.ask.pes)
    made.changed.clear()
    return made


def _set_clocks(site: Site, balance: Balance, accounts: Iterable[tuple[str, Account]]) -> None:
    """Each level's clock stands where the accounts of those in W do."""
    latest = {balance.groups: Instant(0)}
    for key, account in accounts:
        kind, group, _ = (*key.split(":", 2), "")[:3]
        level = balance.groups if kind == "g" else balance.users(group)
        at = account.entry.asof if account.entry.away is None else Instant(0)
        latest[level] = max(latest.get(level, Instant(0)), at)
    for level, at in latest.items():
        level.at = at or site.at
