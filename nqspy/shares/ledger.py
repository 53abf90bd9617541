"""Use and entitlement of groups and users in one pass, the basis of fair share (semantics.md 1).

Use of a group or user is the sum of

- its decayed account,
- the use of its running requests since they were last charged: evenly spread over that time, and estimated by
  the request's rate where the executor has reported none,
- its *committed* use: the use still expected of each running request and each start of this pass.

`standings` computes the share term.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from math import fsum
from weakref import proxy

from nqspy.model import people
from nqspy.model.accounts import remaining_of_even
from nqspy.model.domains import APPLICATION
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Attempt, Request, State, Used
from nqspy.model.settings import cpu_limit, wall_limit
from nqspy.model.site import Site
from nqspy.shares.charging import amount, counted, uncharged
from nqspy.shares.rule import ALL, Committed
from nqspy.shares.standings import Stock

EXPECTED_MS = 60_000
"""Expected use (ms) of a request if neither its group's past nor a limit is known."""

ACTIVE_MS = 1.0
"""Least decayed use (ms) with which a user without requests is active: no account decays to 0."""


Booked = tuple[str, str, Attempt | None, float, float]
"""Group and owner of a request, its attempt (None: a start of this pass), its use (ms) since the last charge,
and the use (ms) still expected."""


class Totals:
    """Sums of use (ms) at an instant: decayed accounts and bookings.

    - ``all``: the whole; ``owners``: by user; ``pairs``: by group and user.
    - ``groups``: by group, with all groups below it; ``lasting``: the booked part of that.
    - ``levels``: of a group itself (`ALL`, group), and of a user in it (group, user).
    """

    def __init__(self, site: Site, now: Instant, domain: str | None = None) -> None:
        """Sum the accounts of a ``domain`` (None: of all)."""
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

    def book(self, bookings: Iterable[tuple[str, str, float]]) -> None:
        """Add to the sums use (ms) that the accounts do not hold yet: group, owner, amount."""
        for group, owner, more in bookings:
            self._add_group(group, more)
            for name in people.lineage(self._tree, group):
                self.lasting[name] = self.lasting.get(name, 0.0) + more
            self._add_user(group, owner, more)

    def _add_group(self, group: str, more: float) -> None:
        self.all += more
        self.levels[ALL, group] = self.levels.get((ALL, group), 0.0) + more
        for name in people.lineage(self._tree, group):
            self.groups[name] = self.groups.get(name, 0.0) + more

    def _add_user(self, group: str, owner: str, more: float) -> None:
        key = (group, owner)
        self.pairs[key] = self.pairs.get(key, 0.0) + more
        self.levels[key] = self.levels.get(key, 0.0) + more
        self.owners[owner] = self.owners.get(owner, 0.0) + more


class FairShare:
    """Use (ms of CPU, or of PE time with ``set usage charge=pe_wall``) and entitlement at ``now``, by group
    and by user.

    - ``committed``: (group, owner) of each start charged so far in this pass.
    - ``uncounted``: group, owner, and the reported use (ms) of a running request since its charge minus the
      use that its rate counts.
    - ``domain``: only its use counts (None: that of all, added up).

    An undefined group is entitled to nothing; ``default`` always exists.
    """

    def __init__(
        self,
        site: Site,
        now: Instant,
        samples: Mapping[Seq, Used],
        chosen: Iterable[Request] = (),
        startable: Callable[[str], Mapping[str, int]] | None = None,
        domain: str | None = None,
    ) -> None:
        """Book what runs and what this pass starts (``chosen``). ``startable``: returns the PEs that could
        start in a domain when the pass began; None: as the last pass reported them."""
        self.now, self.domain = now, domain
        self._site = site
        self._samples = samples
        self._sums: Totals | None = None
        self._booked: list[Booked] = []
        self._summed = 0  # number of bookings in the totals
        self._means: dict[str | None, float | None] = {}
        shared = site.shared() if domain is None else [domain]
        self._only = shared[0] if len(shared) == 1 else None  # the only domain, if there is one
        self._by_cpu = site.settings.usage.charge == "cpu"
        # Summed at the first question, and from then on with each start.
        self._groups: Committed | None = None
        self._users: defaultdict[str, Committed] | None = None
        self._startable = startable
        self.committed: list[tuple[str, str]] = []
        self.uncounted: list[tuple[str, str, float]] = []
        self._book_running(site.started.values())
        for request in chosen:
            self.commit(request)

    # ------------------------------------------------------------ use

    def counts(self, request: Request) -> bool:
        """True if the domain of a request is one that this ledger counts."""
        return self.domain is None or self._site.domain_of(request.queue).name == self.domain

    def commit(self, request: Request) -> None:
        """Charge group and owner the expected use of a start of this pass, if its domain counts."""
        if not self.counts(request):
            return
        group, owner, due = request.spec.group, request.spec.owner, self.expected(request)
        self._booked.append((group, owner, None, 0.0, due))
        self.committed.append((group, owner))
        if self._groups is not None:
            self._groups.add(group, due)
        if self._users is not None:
            self._users[group].add(owner, due)

    def expected(self, request: Request) -> float:
        """Return the expected use (ms) of a whole run: the mean of its group's last ended requests, else of
        all groups', else its limit, else `EXPECTED_MS` (per PE for PE time); at most its limit."""
        site, ask, group = self._site, request.spec.ask, request.spec.group
        limit: float | None
        if self._by_cpu:
            limit = cpu_limit(site.settings, request.queue, ask)
        else:
            wall = wall_limit(site.settings, request.queue, ask)
            limit = None if wall is None else wall * site.held_by(request)
        mean = self._means[group] if group in self._means else self._mean(group)
        if mean is None:
            expected = EXPECTED_MS if self._by_cpu else EXPECTED_MS * site.held_by(request)
            mean = expected if limit is None else limit
        return mean if limit is None or mean <= limit else limit

    def _mean(self, group: str | None) -> float | None:
        """Return the mean use (ms) of a group's last ended requests, else of all groups'; None: there was no
        such request."""
        if group not in self._means:
            every = self._site.accounts_in(self.domain) if group is None else ()
            own = [] if group is None else self._site.own_accounts(group, self._only)
            recent = [value for account in (*own, *(each for _, each in every)) for value in account.recent]
            known = None if recent or group is None else self._mean(None)
            self._means[group] = sum(recent) / len(recent) if recent else known
        return self._means[group]

    def _book_running(self, started: Iterable[Request]) -> None:
        """Book the use of running requests since their last charge, and the use still expected."""
        now, sample, held_by = self.now, self._samples.get, self._site.held_by
        charge = self._site.settings.usage.charge
        book, not_counted = self._booked.append, self.uncounted.append
        for request in started if self.domain is None else filter(self.counts, started):
            run, spec, reported = request.attempt, request.spec, sample(request.seq)
            assert run is not None, "it was started"
            group, owner, state = spec.group, spec.owner, request.state
            if reported is not None:
                so_far: float = amount(reported, charge, request, held_by)
            elif run.charged_at is not None:
                so_far = run.charged + counted(request, now)
            else:
                so_far = amount(run.used, charge, request, held_by)
            more, due = so_far - run.charged, 0.0
            if state is not State.EXITING and (expected := self.expected(request)) > so_far:
                due = expected - so_far
            book((group, owner, run, more, due))
            if reported is not None and state is State.RUNNING:
                not_counted((group, owner, more - counted(request, now)))

    def usage(self, group: str | None = None, owner: str | None = None) -> float:
        """Return use as a fraction of the whole, 0 if there is none: of a group and all below, of a user, or
        of a user in a group."""
        totals = self._totals
        if totals.all <= 0:
            return 0.0
        if group is None:
            return totals.owners.get(owner, 0.0) / totals.all if owner is not None else 1.0
        if owner is None:
            return totals.groups.get(group, 0.0) / totals.all
        return totals.pairs.get((group, owner), 0.0) / totals.all

    def use(self, group: str) -> float:
        """Return the use (ms) of a group with all groups below it, committed use included."""
        return self._totals.groups.get(group, 0.0)

    def lasting(self, group: str) -> float:
        """Return the part of a group's use (ms) that is committed or not yet charged: it does not decay."""
        return self._totals.lasting.get(group, 0.0)

    @property
    def total(self) -> float:
        """Use (ms) of all groups together, committed use included."""
        return self._totals.all

    @property
    def _totals(self) -> Totals:
        # The deficit rule needs no totals: they are summed at the first question, in the order of the
        # bookings.
        if self._sums is None:
            self._sums = Totals(self._site, self.now, self.domain)
        new, self._summed = self._booked[self._summed :], len(self._booked)
        half_life, bookings = self._site.settings.usage.half_life, list[tuple[str, str, float]]()
        for group, owner, run, more, due in new:
            if run is not None and more > 0:
                due += more * remaining_of_even(uncharged(run, self.now), half_life)
            bookings.append((group, owner, due))
        self._sums.book(bookings)
        return self._sums

    # ------------------------------------------------------------ entitlement

    def share(self, group: str | None = None, owner: str | None = None) -> float:
        """Return the entitlement now, as a fraction of the whole, of a group, a user in it, or a user in all
        groups. Groups without work leave their parts to siblings (`people.entitled_now`); active users of a
        group have equal parts of it."""
        if group is None:
            if owner is None:
                return 1.0
            return fsum(self.share(each, owner) for each, user in self._active if user == owner)
        entitled = self._entitled.get(group, 0.0)
        return entitled if owner is None else entitled / max(1, self._active_users[group])

    # ------------------------------------------------------------ the share term

    def stock(self, owner: str | None, group: str) -> float:
        """Return the stock share term (0: no share, to 1) of a user in a group, or of the group (``owner``
        None): that by ``set global share_rule``, whatever an exit gives."""
        return self.stocks.value(owner, group)

    @cached_property
    def stocks(self) -> Stock:
        """The stock share terms computed from this ledger."""
        domain = self.domain or APPLICATION
        startable = partial(self._startable, domain) if self._startable is not None else None
        return Stock(self._site, domain, self.now, proxy(self), startable)  # a proxy makes no circle

    def committed_at(self, level: str) -> Committed:
        """Return the committed use of groups (`ALL`) or users of group ``level``; later starts go into it."""
        if level == ALL:
            if self._groups is None:
                self._groups = Committed()
                for group, _, _, _, due in self._booked:
                    self._groups.add(group, due)
            return self._groups
        if self._users is None:
            self._users = defaultdict(Committed)
            for group, owner, _, _, due in self._booked:
                self._users[group].add(owner, due)
        return self._users[level]

    def used_by(self, level: str, name: str) -> float:
        """Return the use (ms) of a group itself (level `ALL`) or of a user of group ``level``, with committed
        use."""
        return self._totals.levels.get((level, name), 0.0)

    @cached_property
    def _busy(self) -> set[tuple[str, str]]:
        # Requests started by this pass count as queued: no group falls idle or wakes up during a pass.
        return self._site.busy() | set(self.committed)

    @cached_property
    def _entitled(self) -> dict[str, float]:
        groups = people.with_default(self._site.settings.groups)
        return people.entitled_now(groups, {group for group, _ in self._busy})

    @cached_property
    def _active(self) -> set[tuple[str, str]]:
        return self._busy | {key for key, used in self._totals.pairs.items() if used >= ACTIVE_MS}

    @cached_property
    def _active_users(self) -> Counter[str]:
        return Counter(group for group, _ in self._active)
