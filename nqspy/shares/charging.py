"""Charging of use: `engine.lifecycle` calls these functions at each event to charge attempts, and the
accounts of their groups and owners. Reports charge by the same `amount`."""

from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec import structs

from nqspy.model.accounts import RECENT, account_of
from nqspy.model.domains import APPLICATION, account_key
from nqspy.model.ids import Instant
from nqspy.model.requests import Attempt, Request, State, Used
from nqspy.model.site import Site
from nqspy.shares.balance import balance_of, terms_of
from nqspy.shares.level import PE
from nqspy.shares.rule import Charge
from nqspy.shares.rules import RULES

_RUNNING = State.RUNNING  # asked of each sample: to look up a member costs as much as the rest

MEASURABLE = 1_000
"""Least time (ms) over which the rate at which an attempt uses CPU time is measured."""


def amount(used: Used, charge: str, request: Request, held_by: Callable[[Request], int]) -> int:
    """Return the charge (ms) for a use: its CPU time if ``charge`` (`Usage.charge`) is ``cpu``, else its wall
    time times the PEs that ``held_by`` returns for the request."""
    return used.cpu if charge == "cpu" else used.wall * held_by(request)


def uncharged(attempt: Attempt, at: Instant) -> int:
    """Return the time (ms) from an attempt's last charge to ``at``; 0: it was never charged, or later."""
    last = attempt.charged_at
    return at - last if last is not None and last < at else 0


def counted(request: Request, at: Instant, span: int | None = None) -> float:
    """Return the use (ms) that an attempt is assumed to have had since its last charge, by its rate; 0: it
    does not run. ``span``: the time since then (`uncharged`), if the caller knows it."""
    run = request.attempt
    if run is None or request.state is not _RUNNING:
        return 0.0
    return run.rate * (uncharged(run, at) if span is None else span) / PE


# ---------------------------------------------------------------- events


def charge(site: Site, samples: Collection[tuple[Request, Used]], at: Instant) -> None:
    """Charge to groups and owners what attempts used since their last charge. ``samples``: requests with
    their whole use so far."""
    by_domain: dict[str, list[tuple[Request, Used]]] = {}
    if not site.is_divided() and samples:
        by_domain = {APPLICATION: [*samples]}
    else:
        for request, used in samples:
            by_domain.setdefault(_domain(site, request), []).append((request, used))
    for domain, some in by_domain.items():
        _charge(site, domain, some, at)
        _note(site, domain)


def _domain(site: Site, request: Request) -> str:
    return site.domain_of(request.queue).name if site.is_divided() else APPLICATION


def _charge(site: Site, domain: str, samples: Iterable[tuple[Request, Used]], at: Instant) -> None:
    measure, held_by = site.settings.usage.charge, site.held_by
    booked: list[_Booked] = []
    for request, used in samples:
        run = request.run
        span, more = uncharged(run, at), amount(used, measure, request, held_by) - run.charged
        booked.append((request, run, used, more, more - counted(request, at, span), span))
    _book(site, domain, booked, at)


_Booked = tuple[Request, Attempt, Used, int, float, int]
"""A request with its attempt as it was, what that has used, how much of it (ms) is not charged yet, how much
of that was not counted, and the time since its last charge (`uncharged`)."""


def _book(site: Site, domain: str, booked: Sequence[_Booked], at: Instant) -> None:
    """Charge attempts by each share rule; store what they are charged, and at which rate they go on."""
    uses: list[Charge] = []
    for request, run, used, more, missing, span in booked:
        ran = used.wall - run.used.wall
        over = ran if 0 < ran < span else span
        uses.append(Charge(request.spec.group, request.spec.owner, more, missing, over))
    for rule in RULES.values():
        rule.charge(site, domain, at, uses)
    balance, measure = balance_of(site, domain), site.settings.usage.charge
    for request, former, used, more, _, span in booked:
        site.touched.requests.add(request.seq)
        spec, rate = request.spec, former.rate
        measured = measure == "cpu" or site.domain_of(request.queue).rotates
        if span >= MEASURABLE and measured and request.state is _RUNNING:
            rate = round(more * PE / span) if more > 0 else 0
        last = at if span or former.charged_at is None else former.charged_at
        so_far = former.charged + more
        request.attempt = structs.replace(former, used=used, charged=so_far, charged_at=last, rate=rate)
        if rate != former.rate:
            balance.recharge(spec.group, spec.owner, rate - former.rate)


def _note(site: Site, domain: str) -> None:
    """Mark a domain's changed accounts as to be written, and store its whole charge (`DomainPast.spent`)."""
    balance = balance_of(site, domain)
    site.touched.accounts.update(balance.changed)
    site.past_of(domain).spent = balance.groups.spent or 0.0
    balance.changed.clear()


def _advance(site: Site, domain: str, at: Instant, groups: Iterable[str]) -> None:
    for rule in RULES.values():
        rule.advance(site, domain, at, groups)


def advance_all(site: Site, at: Instant) -> None:
    """Bring the accounts of all domains up to the instant ``at``, before their terms change."""
    for domain in site.shared():
        _advance(site, domain, at, balance_of(site, domain).levels())


def begin(site: Site, request: Request, at: Instant) -> None:
    """Begin to charge an attempt that starts or resumes, at first as if all its PEs were busy. Called before
    its state changes."""
    domain, spec = _domain(site, request), request.spec
    _advance(site, domain, at, (spec.group,))
    rate = request.run.rate or site.held_by(request) * PE
    request.attempt = structs.replace(request.run, rate=rate, charged_at=at)
    balance_of(site, domain).change(spec.group, spec.owner, rate, spec.ask.pes)
    _note(site, domain)


def charge_suspended(site: Site, request: Request, at: Instant) -> None:
    """Charge an attempt, before it is suspended, for the use assumed since its last charge; end its rate."""
    if request.state is _RUNNING:
        domain, run = _domain(site, request), request.run
        span = uncharged(run, at)
        _book(site, domain, [(request, run, run.used, round(counted(request, at, span)), 0.0, span)], at)
        _leave(site, domain, request)
        _note(site, domain)


def settle(site: Site, request: Request, used: Used, at: Instant) -> None:
    """Charge an attempt that has ended for what is not charged yet of its whole use, and stop its rate."""
    domain = _domain(site, request)
    _charge(site, domain, [(request, used)], at)
    if request.state is _RUNNING:
        _leave(site, domain, request)
    _note(site, domain)


def _leave(site: Site, domain: str, request: Request) -> None:
    spec = request.spec
    balance_of(site, domain).change(spec.group, spec.owner, -request.run.rate, -spec.ask.pes)


def ready(site: Site, pairs: Iterable[tuple[str, int]], at: Instant) -> None:
    """Record the PEs that could start, as a pass reports them, by domain, group and owner (`account_key`)."""
    by_domain: dict[str, list[tuple[str, int]]] = {}
    for key, pes in pairs:
        domain, _, pair = key.rpartition("/")
        by_domain.setdefault(domain or APPLICATION, []).append((pair, pes))
    for domain, some in by_domain.items():
        groups = dict.fromkeys(pair.partition(":")[0] for pair, _ in some)
        _advance(site, domain, at, groups)
        balance_of(site, domain).ready(some)
        _note(site, domain)


def remember(site: Site, request: Request, used: Used) -> None:
    """Store use and run time of an ended request. From them the use of its group's next requests, and the
    bound b of the deficit rule, are estimated."""
    domain = _domain(site, request)
    key = account_key(domain, f"g:{request.spec.group}")
    recent, runs = account_of(site.accounts, key).recent, site.past_of(domain).runs
    recent.append(amount(used, site.settings.usage.charge, request, site.held_by))
    runs.append(used.wall)
    del recent[:-RECENT], runs[:-RECENT]
    balance_of(site, domain).terms = terms_of(site, domain)
    site.touched.accounts.add(key)
    site.touched.state = True


def correct_use(site: Site, group: str, value: int, at: Instant) -> None:
    """Set the decayed use of a group with all below it to ``value`` (ms): scale the accounts of these groups
    and their users, or set its own account if all are 0."""
    half_life, former = site.settings.usage.half_life, site.use_of(group, at)
    keys = site.accounts_of(group) if former else [f"g:{group}"]
    for key in keys:
        account = account_of(site.accounts, key)
        part = account.at_time(at, half_life) / former if former else 1.0
        account.value, account.at = value * part, max(account.at, at)
    site.touched.accounts.update(keys)


def tune(site: Site) -> None:
    """Apply changed settings of shares, half-life, payback and PEs to the accounts of all domains."""
    for domain in site.shared():
        balance = balance_of(site, domain)
        balance.tune(terms_of(site, domain), site.settings.groups)
        _note(site, domain)


def before_settings(site: Site, heads: Collection[str], at: Instant) -> None:
    """Bring accounts up to ``at`` before settings change; ``heads``: their first words, like ``usage``."""
    if "usage" in heads:
        for key, account in site.accounts.items():
            account.value = account.at_time(at, site.settings.usage.half_life)
            account.at = at
            site.touched.accounts.add(key)
    if not _TERMS.isdisjoint(heads):
        advance_all(site, at)


def after_settings(site: Site, heads: Collection[str], at: Instant) -> None:
    """Charge by changed settings from now on (``heads``: see `before_settings`). Use of running attempts so
    far counts as charged, so that only later use is charged."""
    for request in site.started.values() if "usage" in heads else ():
        former, rate = request.run, site.held_by(request) * PE
        if request.state is _RUNNING:
            balance = balance_of(site, _domain(site, request))
            balance.change(request.group, request.owner, rate - former.rate)
        so_far = amount(former.used, site.settings.usage.charge, request, site.held_by)
        request.attempt = structs.replace(former, charged=so_far, charged_at=at, rate=rate)
        site.touched.requests.add(request.seq)
    if not _TERMS.isdisjoint(heads):
        tune(site)


_TERMS = {"usage", "group", "machine", "domain"}
"""Heads of the settings on which `terms_of` and shares depend."""


def begin_period(site: Site, at: Instant) -> None:
    """Set to 0 what each account was entitled to and got, because a new shift begins (all domains)."""
    advance_all(site, at)
    for domain in site.shared():
        balance = balance_of(site, domain)
        balance.begin_period([key for key, _ in site.accounts_in(domain)])
        _note(site, domain)
