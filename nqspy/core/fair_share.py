"""Use and entitlement of groups and users as they stand in one pass: what fair share is computed from
(semantics.md 1).

Use of a group or user = its decayed account + what its running requests used since they were last charged
+ what is *committed*: the use that each running request, and each start decided in this pass, is still
expected to make. What was not charged yet counts as if it had been used evenly since; where nobody has told
of it, as the request's rate says. The stock share term is `stock`'s.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from math import fsum
from weakref import proxy

from nqspy.core.runtime import cpu_limit, wall_limit
from nqspy.core.stock import Stock
from nqspy.core.totals import ALL, Totals
from nqspy.model import people
from nqspy.model.charging import amount, counted, uncharged
from nqspy.model.domains import APPLICATION
from nqspy.model.ids import Instant, Seq
from nqspy.model.owed import faded
from nqspy.model.people import Group
from nqspy.model.requests import Attempt, Request, State, Used
from nqspy.model.site import Site

_EXITING, _RUNNING = State.EXITING, State.RUNNING  # asked of each that runs: to look up a member is dear

EXPECTED_MS = 60_000
"""What a request is expected to use where neither its group's past nor any limit says more."""

ACTIVE_MS = 1.0
"""Decayed use (ms) from which a user without requests still counts as active: no account decays to 0."""


def entitlements(groups: Mapping[str, Group]) -> dict[str, float]:
    """Each group's nominal part of the whole, ``default`` included: what it has while all have work."""
    return people.entitlements(people.with_default(groups))


Booked = tuple[str, str, Attempt | None, float, float]
"""Of a running or chosen request: its group and owner, the attempt that was charged (None: it has none yet),
what it has used since, and what it is still expected to use."""


class Committed:
    """What is committed at a level, ``whole`` and by name."""

    __slots__ = ("each", "whole")

    def __init__(self, booked: Iterable[Booked] = ()) -> None:
        """``booked``: what is committed already, of groups."""
        whole = 0.0
        each: dict[str, float] = {}
        for name, _, _, _, more in booked:
            each[name] = each.get(name, 0.0) + more
            whole += more
        self.whole, self.each = whole, each

    def add(self, name: str, more: float) -> None:
        """So much more of one."""
        self.each[name] = self.each.get(name, 0.0) + more
        self.whole += more


class FairShare:
    """Use (ms of CPU, or of PE time where ``set usage charge=pe_wall``) and entitlement, by group and by
    user.

    ``now`` is the instant it is made for; ``committed``: (group, owner) of each start debited so far;
    ``uncounted``: group, owner and how much of what running requests are known to have used since they were
    charged, beyond what they count as; ``domain``: the only one of which it tells (None: of all, added up). A
    group that is not defined is entitled to nothing; ``default`` always exists.
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
        """``startable``: what could start in a domain when the pass began; None: what the last pass said."""
        self.now, self.domain = now, domain
        self._site = site
        self._samples = samples
        self._sums: Totals | None = None
        self._booked: list[Booked] = []
        self._summed = 0  # so many of them are in the totals
        self._means: dict[str, float | None] = {}
        shared = site.shared() if domain is None else [domain]
        self._only = shared[0] if len(shared) == 1 else None  # the only domain, if there is but one
        self._by_cpu = site.settings.usage.charge == "cpu"
        # Added up when somebody asks for them, and from then on with each start.
        self._groups: Committed | None = None
        self._users: defaultdict[str, Committed] | None = None
        self._startable = startable
        self.committed: list[tuple[str, str]] = []
        self.uncounted: list[tuple[str, str, float]] = []
        self._take_running(site.started.values())
        for request in chosen:
            self.commit(request)

    # ------------------------------------------------------------ use

    def tells_of(self, request: Request) -> bool:
        """Whether it is about the domain of a request."""
        return self.domain is None or self._site.domain_of(request.queue).name == self.domain

    def commit(self, request: Request) -> None:
        """Debits group and owner by what a start decided in this pass, if it is told of, is expected to
        use."""
        if not self.tells_of(request):
            return
        group, owner, left = request.spec.group, request.spec.owner, self.expected(request)
        self._booked.append((group, owner, None, 0.0, left))
        self.committed.append((group, owner))
        if self._groups is not None:
            self._groups.add(group, left)
        if self._users is not None:
            self._users[group].add(owner, left)

    def expected(self, request: Request) -> float:
        """What a run of this request is expected to use: the mean of its group's last ended requests, else
        of all groups', else what it asks for; at most its limit."""
        spec, means = request.spec, self._means
        if self._by_cpu:
            limit: float | None = cpu_limit(self._site.settings, request.queue, spec.ask)
        else:
            limit = self._pe_time_limit(request)
        mean = means[spec.group] if spec.group in means else self._mean(spec.group)
        if mean is None:
            mean = limit if limit is not None else EXPECTED_MS * self._per_ms(request)
        return mean if limit is None or mean <= limit else limit

    def _mean(self, group: str) -> float | None:
        recent = self._recent(group)
        found = self._means[group] = sum(recent) / len(recent) if recent else self._mean_of_all
        return found

    def _recent(self, group: str) -> list[int]:
        """What the last requests of a group used."""
        accounts = self._site.own_accounts(group, self._only)
        if len(accounts) == 1:
            return accounts[0].recent
        return [value for account in accounts for value in account.recent]

    def _take_running(self, started: Iterable[Request]) -> None:
        """Books what those that run have used since they were charged, and are still expected to use."""
        now, sample, held_by = self.now, self._samples.get, self._site.held_by
        charge = self._site.settings.usage.charge
        book, not_counted = self._booked.append, self.uncounted.append
        for request in started if self.domain is None else filter(self.tells_of, started):
            run, spec, told = request.attempt, request.spec, sample(request.seq)
            assert run is not None, "it was started"
            group, owner, state = spec.group, spec.owner, request.state
            if told is not None:
                so_far: float = amount(told, charge, request, held_by)
            elif run.charged_at is not None:
                so_far = run.charged + counted(request, now)
            else:
                so_far = amount(run.used, charge, request, held_by)
            more, left = so_far - run.charged, 0.0
            if state is not _EXITING and (expected := self.expected(request)) > so_far:
                left = expected - so_far
            book((group, owner, run, more, left))
            if told is not None and state is _RUNNING:
                not_counted((group, owner, more - counted(request, now)))

    def usage(self, group: str | None = None, owner: str | None = None) -> float:
        """Use as a fraction of the whole: of a group with all below it, of a user, of a user in a group."""
        totals = self._totals
        if totals.all <= 0:
            return 0.0
        if group is None:
            return totals.owners.get(owner, 0.0) / totals.all if owner is not None else 1.0
        if owner is None:
            return totals.groups.get(group, 0.0) / totals.all
        return totals.pairs.get((group, owner), 0.0) / totals.all

    def use(self, group: str) -> float:
        """Use (ms) of a group with all below it, committed use included."""
        return self._totals.groups.get(group, 0.0)

    def lasting(self, group: str) -> float:
        """What of that (ms) is committed or not charged yet, and so does not decay."""
        return self._totals.lasting.get(group, 0.0)

    @property
    def total(self) -> float:
        """The whole use."""
        return self._totals.all

    @property
    def _totals(self) -> Totals:
        # The deficit rule asks for none of them: they are added up when somebody does, in the same order.
        if self._sums is None:
            self._sums = Totals(self._site, self.now, self.domain)
        new, self._summed = self._booked[self._summed :], len(self._booked)
        self._sums.book(
            (group, owner, self._faded(run, more) + left) for group, owner, run, more, left in new
        )
        return self._sums

    def _faded(self, run: Attempt | None, more: float) -> float:
        if run is None or more <= 0:
            return 0.0
        return more * faded(uncharged(run, self.now), self._site.settings.usage.half_life)

    def _pe_time_limit(self, request: Request) -> float | None:
        wall = wall_limit(self._site.settings, request.queue, request.spec.ask)
        return None if wall is None else wall * self._site.held_by(request)

    def _per_ms(self, request: Request) -> int:
        return 1 if self._by_cpu else self._site.held_by(request)

    @cached_property
    def _mean_of_all(self) -> float | None:
        accounts = self._site.accounts_in(self.domain)
        recent = [value for _, account in accounts for value in account.recent]
        return sum(recent) / len(recent) if recent else None

    # ------------------------------------------------------------ entitlement

    def share(self, group: str | None = None, owner: str | None = None) -> float:
        """What a group is entitled to now, as a fraction of the whole: what groups without work leave has
        gone to their siblings (`people.entitled_now`). A user has an equal part of his group's among its
        active users."""
        if group is None:
            if owner is None:
                return 1.0
            return fsum(self.share(each, owner) for each, user in self._active if user == owner)
        entitled = self._entitled.get(group, 0.0)
        return entitled if owner is None else entitled / max(1, self._active_users.get(group, 0))

    # ------------------------------------------------------------ the share term

    def stock(self, owner: str | None, group: str) -> float:
        """The stock share term of one user in one group, of the group without a user: as ``set global
        share_rule`` says (`stock`)."""
        return self.stocks.value(owner, group)

    @cached_property
    def stocks(self) -> Stock:
        """The rule in force, over this ledger."""
        domain = self.domain or APPLICATION
        startable = partial(self._startable, domain) if self._startable is not None else None
        return Stock(self._site, domain, self.now, proxy(self), startable)  # no circle: it goes with the pass

    def committed_at(self, level: str) -> Committed:
        """What is committed by now: of groups (`ALL`), or of the users of the group ``level``; what is
        committed later is in it too."""
        if level == ALL:
            if self._groups is None:
                self._groups = Committed(self._booked)
            return self._groups
        if self._users is None:
            self._users = defaultdict(Committed)
            for group, owner, _, _, left in self._booked:
                self._users[group].add(owner, left)
        return self._users[level]

    def used_by(self, level: str, name: str) -> float:
        """Use, committed use included: of a group itself (`ALL`), or of a user of the group ``level``."""
        return self._totals.levels.get((level, name), 0.0)

    @cached_property
    def _busy(self) -> set[tuple[str, str]]:
        # What this pass chose was queued when it began: no group falls idle or wakes up during a pass.
        return self._site.busy() | set(self.committed)

    @cached_property
    def _entitled(self) -> dict[str, float]:
        groups = people.with_default(self._site.settings.groups)
        return people.entitled_now(groups, {group for group, _ in self._busy})

    @cached_property
    def _active(self) -> set[tuple[str, str]]:
        return self._busy | {key for key, used in self._totals.pairs.items() if used >= ACTIVE_MS}

    @cached_property
    def _active_users(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for group, _owner in self._active:
            found[group] = found.get(group, 0) + 1
        return found
