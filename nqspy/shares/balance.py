"""Accounts of a domain: what groups, and users inside a group, are owed. They are the two accounts of the
deficit rule, exactly as semantics.md 1 defines them ("The deficit rule, exactly"). The scheduler, ``show
shares`` and the reports all use them; nothing here decides.

*W*, the groups with work: a group with a request that runs, or with a queued one that could start. Runs and
ends are events; each pass reports what could start (`events.Decided.ready`, only what changed: the number of
PEs for which each owner in each group has startable requests, at most the machine's). So between two passes W
costs nothing, however many wait, and a replay sees what was seen. An absence of less than `GRACE` is none:
between the end of a chain's link and the start of the next lies a pass.

*Time* passes in steps: every event that changes a rate, W, or the terms first lets the time since the last
one pass at the rates that held (`Level.advance`), in pieces of at most `PIECE` since the target bends with
the long account. Between two events nothing is computed. A running request counts as charged at its *rate*
(`Request.rate`); when its use is reported, the difference to what was counted is corrected at once
(`Level.correct`), in its own account and, as part of what all were entitled to, in those of all. Sums of
rates are whole numbers, and everything is added up in the order of names, so that the same events give the
same digits.

The groups' level counts the whole machine. Each group's users are a level of their own, of equal weight, over
the PEs that the group holds; it only moves on with events of that group.
"""

from collections.abc import Callable, Iterable, Mapping

from nqspy.model.accounts import Entry, account_of
from nqspy.model.domains import APPLICATION, account_key, account_keys
from nqspy.model.ids import Instant
from nqspy.model.people import Group
from nqspy.model.requests import State
from nqspy.model.site import Site
from nqspy.shares.division import Division, alike
from nqspy.shares.level import UNKNOWN_RUN, Divide, Level, Terms


class Balance:
    """Accounts of a domain (`balance_of`), built from the stored accounts and from what runs; `charging`
    keeps them up to date at each event. ``terms``: in force; ``groups``: level of the groups; ``changed``:
    keys of accounts with rows to write."""

    def __init__(self, site: Site, domain: str) -> None:
        self._accounts, self._domain = site.accounts, domain
        self.changed: set[str] = set()
        self._users: dict[str, Level] = {}
        self._ready: dict[str, int] = {}
        self.groups = self._level("g:", self._parts, cuts=True)
        self.groups.spent = site.past[domain].spent if domain in site.past else 0.0
        self.tune(terms_of(site, domain), site.settings.groups)
        known = [((*key.split(":", 2), "")[:3], account.entry) for key, account in site.accounts_in(domain)]
        # The clock of each level stands where the accounts of its members in W do.
        latest = {self.groups: Instant(0)}
        for (kind, group, _), entry in known:
            level = self.groups if kind == "g" else self.users(group)
            at = entry.asof if entry.away is None else Instant(0)
            latest[level] = max(latest.get(level, Instant(0)), at)
        for level, at in latest.items():
            level.at = at or site.at
        for (kind, group, owner), entry in known:
            if kind == "u" and entry.ready:
                self.change(group, owner, ready=entry.ready)
                self._ready[f"{group}:{owner}"] = entry.ready
        for request in site.started.values():
            if request.state is State.RUNNING and site.domain_of(request.queue).name == domain:
                self.change(request.group, request.owner, request.run.rate, request.spec.ask.pes)
        self.changed.clear()

    def _level(self, beginning: str, divide: Divide, cuts: bool = False) -> Level:
        """Return a new level. ``beginning``: how the keys of its accounts begin, without the domain."""
        key = account_key(self._domain, beginning)

        def peek(name: str) -> Entry | None:
            account = self._accounts.get(key + name)
            return None if account is None else account.entry

        return Level(lambda name: account_of(self._accounts, key + name).entry, peek, divide, cuts, key)

    def _parts(self, wanted: Mapping[str, int]) -> dict[str, float]:
        return self._division.parts(wanted)  # by the shares in force

    @property
    def is_bare(self) -> Callable[[str], bool]:
        """Function that returns True for a group without a share; valid until shares change."""
        return self._division.is_bare

    def users(self, group: str) -> Level:
        """Return the level of a group's users; create it if there is none."""
        level = self._users.get(group)
        if level is None:

            def divide(wanted: Mapping[str, int]) -> dict[str, float]:
                work = self.groups.work.get(group)
                return alike(wanted, max(1, work.pes if work is not None else 1))

            level = self._users[group] = self._level(f"u:{group}:", divide)
            level.at = self.groups.at
        return level

    def tune(self, terms: Terms, groups: Mapping[str, Group]) -> None:
        """Apply other terms and shares from now on. Call `advance` before, because it uses the old ones."""
        self.terms, self._division = terms, Division(groups, terms.pes, terms.machine or None)
        for level in (self.groups, *self._users.values()):
            level.forget()

    # ------------------------------------------------------------ what happens

    def advance(self, at: Instant, groups: Iterable[str] = ()) -> None:
        """Bring the accounts of all groups, and of the users of ``groups``, up to the instant ``at``."""
        if self.groups.advance(at, self.terms):
            self.changed.update(self.groups.keys())
        for group in groups:
            level = self.users(group)
            if level.advance(at, self.terms):
                self.changed.update(level.keys())

    def levels(self) -> list[str]:
        """Return the names of the groups for which a level of users exists."""
        return list(self._users)

    def recharge(self, group: str, owner: str, rate: int) -> None:
        """Add ``rate`` (1/1000 PE, may be negative) to the rate at which a user in a group is charged."""
        groups, users = self.groups, self.users(group)
        if group in groups.members() and owner in users.members():  # they stay in W
            groups.work[group].rate += rate
            users.work[owner].rate += rate
        else:
            self.change(group, owner, rate)

    def change(self, group: str, owner: str, rate: int = 0, pes: int = 0, ready: int = 0) -> None:
        """Add to a user's work from now on: rate (1/1000 PE), PEs in use, startable PEs; negative: less."""
        terms, users = self.terms, self.users(group)
        self.groups.change_one(group, rate, pes, ready, terms)
        users.change_one(owner, rate, pes, ready, terms)
        if pes:
            users.forget()
        self.changed.update(account_keys(self._domain, group, owner))

    def ready(self, pairs: Iterable[tuple[str, int]]) -> None:
        """Record the PEs that a pass found startable, by ``GROUP:USER``; others keep their number."""
        for pair, pes in pairs:
            group, _, owner = pair.partition(":")
            self._ready[pair] = pes
            key = account_key(self._domain, f"u:{pair}")
            account = self._accounts.get(key)
            before = 0 if account is None else account.entry.ready
            if pes != before:
                account_of(self._accounts, key).entry.ready = pes
                self.change(group, owner, ready=pes - before)

    def startable(self) -> Mapping[str, int]:
        """Return the PEs of waiting requests that could start, as the last pass reported them, by
        ``GROUP:USER``; others have none."""
        return self._ready

    def charge(self, at: Instant, amounts: Mapping[str, Mapping[str, float]]) -> None:
        """Let time pass up to ``at``; charge use (ms) that rates did not count in it, by group and owner."""
        terms, changed, known = self.terms, self.changed, self._users
        of_groups = {group: sum(of_users.values()) for group, of_users in amounts.items()}
        changed.update(self.groups.charge(at, of_groups, terms))
        for group, of_users in amounts.items():
            changed.update((known.get(group) or self.users(group)).charge(at, of_users, terms))

    def begin_period(self, keys: Iterable[str]) -> None:
        """Set to 0 what the accounts with these keys were entitled to and got: a new shift begins."""
        for each in keys:
            key = account_key(self._domain, each)
            entry = account_of(self._accounts, key).entry
            if entry.whole:
                entry.entitled = entry.got = entry.whole = 0.0
                self.changed.add(key)


def balance_of(site: Site, domain: str = APPLICATION) -> Balance:
    """Return the accounts (`Balance`) of a domain; made at the first call and stored in `Site.balances`."""
    balance: Balance | None = site.balances.get(domain)
    if balance is None:
        balance = site.balances[domain] = Balance(site, domain)
    return balance


def terms_of(site: Site, domain: str = APPLICATION) -> Terms:
    """Return the terms of the deficit rule in force in a domain."""
    usage, past = site.settings.usage, site.past.get(domain)
    run = sum(past.runs) / len(past.runs) if past is not None and past.runs else UNKNOWN_RUN
    there = site.domain(domain)
    pes = int(site.pes_of(there).sum()) if site.is_divided() else site.pes()
    return Terms(pes * there.depth, usage.half_life, usage.payback / 100, run, site.pes())


def division_of(site: Site, domain: str = APPLICATION) -> Division:
    """Return the division of a domain's PEs by the shares in force."""
    return Division(site.settings.groups, terms_of(site, domain).pes, site.pes())
