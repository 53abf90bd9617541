"""What follows from events beside the requests themselves: use that is charged, settings, shifts, health, the
machine.

Called by `lifecycle.apply` only.
"""

import dataclasses
from collections.abc import Collection, Iterable

from msgspec import structs
from msgspec.structs import replace

from nqspy.model import events as ev
from nqspy.model import registry
from nqspy.model.accounts import RECENT, Account, account_of
from nqspy.model.balance import Balance
from nqspy.model.charging import amount, begun, charged, counted, uncharged
from nqspy.model.configure import apply_changes, renamed
from nqspy.model.consumables import away_now, resources_of
from nqspy.model.domains import APPLICATION, account_key, account_keys
from nqspy.model.health import Pressure, ResourceState
from nqspy.model.ids import Instant
from nqspy.model.lifetimes import key_of, run_of
from nqspy.model.machine import Found
from nqspy.model.moved_out import with_move
from nqspy.model.owed import PE, faded
from nqspy.model.requests import STARTED, Attempt, Request, State, Used
from nqspy.model.shifts import ShiftState
from nqspy.model.site import Site
from nqspy.model.wall_limits import planned_wall

_RUNNING = State.RUNNING  # to look up a member costs as a call does

# ---------------------------------------------------------------- use


def charge(site: Site, samples: Collection[tuple[Request, Used]], at: Instant) -> None:
    """Books what attempts used since they were last charged, to their groups and to their owners in these
    (semantics.md 1): as if each had used it evenly over the wall time it ran since, so that the account is
    the decayed integral of its use however long that is. What they are owed is corrected by what had not been
    counted yet."""
    by_domain: dict[str, list[tuple[Request, Used]]] = {}
    if site.is_divided():
        for request, used in samples:
            by_domain.setdefault(_domain(site, request), []).append((request, used))
    elif samples:
        by_domain[APPLICATION] = list(samples)
    for domain, found in by_domain.items():
        balance = site.balance_of(domain)
        _charge(site, domain, balance, found, at)
        _note(site, domain, balance)


def _domain(site: Site, request: Request) -> str:
    return site.domain_of(request.queue).name if site.is_divided() else APPLICATION


def _charge(
    site: Site, domain: str, balance: Balance, found: Collection[tuple[Request, Used]], at: Instant
) -> None:
    measure, held_by = site.settings.usage.charge, site.held_by
    missing: dict[str, dict[str, float]] = {}
    booked: list[_Booked] = []
    for request, used in found:
        spec, run = request.spec, request.attempt
        assert run is not None
        span, more = uncharged(run, at), amount(used, measure, request, held_by) - run.charged
        of_group, owner = missing.setdefault(spec.group, {}), spec.owner
        of_group[owner] = of_group.get(owner, 0.0) + more - counted(request, at, span)
        booked.append((request, run, used, more, span))
    balance.charge(at, missing)
    _book(site, domain, balance, booked, at)


def _amount(site: Site, request: Request, used: Used) -> int:
    return amount(used, site.settings.usage.charge, request, site.held_by)


_Booked = tuple[Request, Attempt, Used, int, int]
"""A request with its attempt, what that has used, how much of it (ms) is not charged yet, and since when
(`uncharged`)."""


def _book(site: Site, domain: str, balance: Balance, booked: Iterable[_Booked], at: Instant) -> None:
    accounts, requests, keys = site.accounts, site.touched.requests, site.touched.accounts
    charge, half_life = site.settings.usage.charge, site.settings.usage.half_life
    for request, former, used, more, span in booked:
        spec = request.spec
        requests.add(request.seq)
        if more:
            ran = used.wall - former.used.wall
            more_now = more * faded(ran if 0 < ran < span else span, half_life)
            theirs = account_keys(domain, spec.group, spec.owner)
            keys.update(theirs)
            for key in theirs:
                account = accounts.get(key) or account_of(accounts, key)
                account.add(more_now, at, half_life)
        request.attempt = made = charged(request, used, more, at, span, charge)
        if made.rate != former.rate:
            balance.recharge(spec.group, spec.owner, made.rate - former.rate)


def _note(site: Site, domain: str, balance: Balance) -> None:
    """The rows of all accounts that changed will be written."""
    whole = domain == APPLICATION  # its keys are the bare ones
    site.touched.accounts.update(
        balance.changed if whole else (account_key(domain, key) for key in balance.changed)
    )
    site.past_of(domain).spent = balance.groups.spent or 0.0
    balance.changed.clear()


def _advance_all(site: Site, at: Instant) -> None:
    for domain in site.shared():
        site.balance_of(domain).advance_all(at)


def run(site: Site, request: Request, at: Instant) -> None:
    """An attempt begins, or goes on: it is charged from now on, until more is known as if it kept its PEs
    busy. To be called before its state says so."""
    domain, spec = _domain(site, request), request.spec
    balance = site.balance_of(domain)
    balance.advance(at, (spec.group,))
    request.attempt = made = begun(request, site.held_by(request), at)
    balance.change(spec.group, spec.owner, made.rate, spec.ask.pes)
    _note(site, domain, balance)


def rest(site: Site, request: Request, at: Instant) -> None:
    """An attempt is suspended: what it used up to now is charged as far as it is known. To be called before
    its state says so."""
    if request.state is State.RUNNING:
        domain, run = _domain(site, request), request.run
        balance, span = site.balance_of(domain), uncharged(run, at)
        balance.advance(at, (request.group,))
        more = round(counted(request, at, span))
        _book(site, domain, balance, [(request, run, run.used, more, span)], at)
        _leave(balance, request)
        _note(site, domain, balance)


def settle(site: Site, request: Request, used: Used, at: Instant) -> None:
    """An attempt is over, which used so much."""
    domain = _domain(site, request)
    balance = site.balance_of(domain)
    _charge(site, domain, balance, [(request, used)], at)
    if request.state is _RUNNING:
        _leave(balance, request)
    _note(site, domain, balance)


def _leave(balance: Balance, request: Request) -> None:
    spec = request.spec
    balance.change(spec.group, spec.owner, -request.run.rate, -spec.ask.pes)


def ready(site: Site, pairs: tuple[tuple[str, int], ...], at: Instant) -> None:
    """A pass says what could start, by ``GROUP:OWNER`` (`domains.account_key`)."""
    by_domain: dict[str, list[tuple[str, int]]] = {}
    for key, pes in pairs:
        domain, _, pair = key.rpartition("/")
        by_domain.setdefault(domain or APPLICATION, []).append((pair, pes))
    for domain, found in by_domain.items():
        balance = site.balance_of(domain)
        balance.ready(found, at)
        _note(site, domain, balance)


def _account(site: Site, key: str) -> Account:
    site.touched.accounts.add(key)
    return account_of(site.accounts, key)


def remember(site: Site, request: Request, event: ev.Ended) -> None:
    """Keeps what a request used in all: its group's next are expected to use about as much, and those like
    it to run about as long."""
    used = event.used
    ask = request.spec.ask
    run = run_of(event, planned_wall(site.settings, request.queue, ask), ask.best_guess)
    if run is not None:
        site.touched.lifetimes.update(site.lifetimes.add(key_of(request), run, site.n))
    domain = _domain(site, request)
    recent = _account(site, account_key(domain, f"g:{request.spec.group}")).recent
    runs = site.past_of(domain).runs
    recent.append(_amount(site, request, used))
    runs.append(used.wall)
    del recent[:-RECENT], runs[:-RECENT]
    site.balance_of(domain).terms = site.terms(domain)
    site.touched.state = True


def usage_corrected(site: Site, event: ev.UsageCorrected, at: Instant) -> None:
    """A person set what a group counts as having used."""
    site.touched.accounts.update(site.correct_use(event.group, event.value, at))


def moved_out(site: Site, request: Request, event: ev.MovedOut, at: Instant) -> None:
    """Remembers how long it took to leave its PEs: the next ones will take about as long."""
    site.moves = with_move(site.moves, len(request.pes), event.took)
    site.touched.state = True


# ---------------------------------------------------------------- settings, shifts, the machine


def settings_changed(site: Site, event: ev.SettingsChanged, at: Instant) -> None:
    """Carries the changes out; what hangs on them is counted anew."""
    heads = {renamed(change.path).partition("/")[0] for change in event.changes}
    if "server" in heads:
        _keep_name(site)
    if "usage" in heads:
        _settle(site, at)
    if heads & _TERMS:
        _advance_all(site, at)
    apply_changes(site.settings, event.changes, upsert=True)
    if "usage" in heads:
        _count_anew(site, at)
    if heads & _TERMS:
        _tune(site)
    for change in event.changes:
        _touch_settings(site, change.path)
    settled = [kind.settle(site) for kind in registry.objects() if kind.head in heads]
    site.touched.state = site.touched.state or any(settled)


_TERMS = {"usage", "group", "machine", "domain"}
"""Settings on which the deficit rule depends."""


def _tune(site: Site) -> None:
    for domain in site.shared():
        balance = site.balance_of(domain)
        balance.tune(site.terms(domain), site.settings.groups)
        _note(site, domain, balance)


def _touch_settings(site: Site, path: str) -> None:
    path = renamed(path)
    kind, name, _ = registry.split(path)
    if kind is None or not kind.named:
        site.touched.settings.add(path.partition("/")[0])
        return
    names = kind.all(site.settings) if name == "*" else (name,)
    site.touched.settings.update(f"{kind.head}/{each}" for each in names)


def _settle(site: Site, at: Instant) -> None:
    for key, account in site.accounts.items():
        account.value = account.at_time(at, site.settings.usage.half_life)
        account.at = at
        site.touched.accounts.add(key)


def _count_anew(site: Site, at: Instant) -> None:
    # What was charged so far is counted in the new measure, so that only later use is charged by it.
    for request in site.started.values():
        former, rate = request.run, site.held_by(request) * PE
        if request.state is State.RUNNING:
            balance = site.balance_of(_domain(site, request))
            balance.change(request.group, request.owner, rate - former.rate)
        charged = _amount(site, request, former.used)
        request.attempt = structs.replace(former, charged=charged, charged_at=at, rate=rate)
        site.touched.requests.add(request.seq)


def shift_changed(site: Site, event: ev.ShiftChanged, at: Instant) -> None:
    """Another shift is in force."""
    _advance_all(site, at)
    for domain in site.shared():
        balance = site.balance_of(domain)
        balance.begin_period([key for key, _ in site.accounts_in(domain)])
        _note(site, domain, balance)
    site.shift = ShiftState(event.shift, event.fired, event.manual, event.until, since=at)
    site.touched.state = True


def shift_failed(site: Site, event: ev.ShiftFailed, at: Instant) -> None:
    """Remembers which shift could not be entered, so that this is told once, and why."""
    site.shift = dataclasses.replace(site.shift, failed=event.shift, failed_text=event.text)
    site.touched.state = True


def _keep_name(site: Site) -> None:
    """Remember the host part of identifiers before it may change."""
    if site.name not in site.former:
        site.former = (*site.former, site.name)
        site.touched.state = True


def machine_found(site: Site, event: ev.MachineFound, at: Instant) -> None:
    """The executor looked at the machine."""
    _advance_all(site, at)
    site.found = Found(event.cpus, event.memory, event.offline, event.devices)
    _keep_name(site)
    site.host, site.zone = event.host, event.zone
    site.touched.state = True
    _tune(site)


def exit_off(site: Site, event: ev.ExitOff, at: Instant) -> None:
    """Switches an exit off."""
    apply_changes(site.settings, (ev.Change("set", f"exit/{event.exit}/enabled", False),))
    site.touched.settings.add(f"exit/{event.exit}")


def files_applied(site: Site, event: ev.FilesApplied, at: Instant) -> None:
    """Remembers which files of ``queues.d`` are in force."""
    site.files = dict(event.files)
    site.touched.state = True


# ---------------------------------------------------------------- health


def resource_changed(site: Site, event: ev.ResourceChanged, at: Instant) -> None:
    """A resource was found broken, or well again; one that nobody watches is not noted."""
    known = (kind.all(site.settings) for kind, _ in registry.listed())
    units = (resources_of(each, site.found) for each in site.settings.consumables.values())
    if any(event.name in names for names in (*known, *units)):
        site.resources[event.name] = ResourceState(event.state, at, event.text)
        note_away(site)
        site.touched.state = True


def note_away(site: Site) -> None:
    """Units went offline, or came back."""
    site.away = away_now(site.away, site.units, site.settings.consumables, site.found, site.resources)


def pressure_changed(site: Site, event: ev.PressureChanged, at: Instant) -> None:
    """The memory has become scarce, has still to give way, or is no longer scarce."""
    site.pressure = Pressure(
        event.level, at, event.used, event.text, event.resident, event.total, event.people
    )
    site.touched.state = True


def pressure_answered(site: Site) -> None:
    """A request gave way or came back: whether that sufficed the next reading tells."""
    site.pressure = replace(site.pressure, answered=True)
    site.touched.state = True


def restored(site: Site, event: ev.Restored, at: Instant) -> None:
    """No number and no attempt that was given out is given out again."""
    site.next_seq = max(site.next_seq, event.next_seq)
    for seq, attempt in event.attempts:
        request = site.requests.get(seq)
        if request is not None and request.state not in STARTED:
            request.attempts = max(request.attempts, attempt)
            site.touched.requests.add(seq)
    site.touched.state = True
