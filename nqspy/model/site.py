"""The state of one installation, `Site`: settings, requests that have not ended, accounts, shift, resources.
Only `lifecycle.apply` changes it, event by event; passes, commands and displays read it."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from nqspy.model import consumables
from nqspy.model import events as ev
from nqspy.model.accounts import Account, DomainPast
from nqspy.model.board import Board, Holders, Mask, hold, pes_of, release
from nqspy.model.columns import Columns, Dictionary
from nqspy.model.domains import APPLICATION, Domain, account_key, names, split_key
from nqspy.model.health import Pressure, ResourceState
from nqspy.model.ids import Instant, Seq, array_key, array_of, full_id
from nqspy.model.lifetimes import Key, Lifetimes, MeasuredMove
from nqspy.model.machine import ForeignJob, Found, offline_pes
from nqspy.model.output_paths import files
from nqspy.model.people import lineage
from nqspy.model.requests import Request, State
from nqspy.model.settings import Settings as Settings
from nqspy.model.shifts import ShiftState, UpcomingStop
from nqspy.model.transitions import STEPS, born, fits, is_in

_STANDARD = Domain(APPLICATION)
"""Domain ``application`` with default settings, used while none of its settings is stored."""


@dataclass(slots=True)
class RequestCounts:
    """Numbers of requests that have not ended (`Site.tally`): in all, by owner, by queue, by (queue, owner).
    An array counts as its indices that have not begun. An owner or queue without requests has no entry."""

    total: int = 0
    owners: dict[str, int] = field(default_factory=dict)
    queues: dict[str, int] = field(default_factory=dict)
    pairs: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, requests: Iterable[Request]) -> "RequestCounts":
        """Return the counts of these requests."""
        made = cls()
        for request in requests:
            made.enter(request)
        return made

    def copy(self) -> "RequestCounts":
        """Return an independent copy."""
        return RequestCounts(self.total, dict(self.owners), dict(self.queues), dict(self.pairs))

    def enter(self, request: Request) -> None:
        """Count a request for its queue and its owner, by its present `Request.weight`."""
        self.count(request.spec.owner, request.queue, request.weight)

    def leave(self, request: Request) -> None:
        """Subtract a request's present `Request.weight`; to be called before the request changes."""
        self.count(request.spec.owner, request.queue, -request.weight)

    def count(self, owner: str, queue: str, by: int = 1) -> None:
        """Add ``by`` (negative: subtract) to the count in all, the owner's, the queue's and that of both."""
        self.total += by
        each: tuple[tuple[dict[Any, int], Any], ...] = (
            (self.owners, owner), (self.queues, queue), (self.pairs, (queue, owner))
        )  # fmt: skip
        for counts, key in each:
            if number := counts.get(key, 0) + by:
                counts[key] = number
            else:
                counts.pop(key, None)


@dataclass(slots=True)
class Touched:
    """Rows that the store writes at the next commit: numbers of ``requests``, keys of ``accounts`` and
    ``lifetimes``, paths of ``settings`` (``queue/night``). ``ended``: requests with the events that ended
    them. ``state``: True if the row with the site's other data changed."""

    requests: set[Seq] = field(default_factory=set)
    ended: dict[Seq, tuple[Request, Any]] = field(default_factory=dict)
    settings: set[str] = field(default_factory=set)
    accounts: set[str] = field(default_factory=set)
    lifetimes: set[Key] = field(default_factory=set)
    state: bool = False

    def clear(self) -> None:
        """Remove all entries, because the commit has stored them."""
        for each in (self.requests, self.ended, self.settings, self.accounts, self.lifetimes):
            each.clear()
        self.state = False


@dataclass(slots=True)
class Site:
    """The state. ``n``, ``at``: number and instant of the last applied event. ``waiting``: columns of queued
    requests, by queue. ``started``: requests with an attempt; ``paused``: the suspended ones. ``holders``:
    requests by held PE (`board`). ``units``: holders of units; ``turns``: last unit given of each consumable;
    ``away``: holders that offline units had when they went offline. ``moves``: the last moves off PEs
    (`lifetimes`). ``dates``: heap of (eligible, seq) of requests that wait for a date (entries may be stale).
    ``dependants``: requests that wait for another, by its number (`Request.unmet`). ``writers``: requests
    that write a file, by path (`output_paths.files`). ``members``: indices of each array that are requests.
    ``limited``: arrays with a limit of running indices. ``reserved``: queued requests with a reservation;
    ``freed``: number of the last event that may free PEs or reservations; ``swept``: value of ``freed`` when
    all reservations were last examined. ``tally``: counts of requests. ``accounts``: use of ``g:GROUP`` and
    ``u:GROUP:USER`` (`domains.account_key`); ``past``: other data of quotas, by domain. ``lifetimes``: run
    times of ended requests. ``resources``: last result of each probe. ``foreign``: jobs that nqspy did not
    start (`foreign_pes`). ``promises``: stored facts of features,
    by name (`facts`). ``upcoming_stops``: next stop of each queue by a shift with a spill; ``closings``:
    instant at which any shift next stops it; the engine computes both, they are not stored. ``loaded_exits``:
    content hashes of the user exits in force, by name (None: unknown). ``reported``: day of the last reported
    night. ``former``: host parts of old identifiers. ``misfits``: number of events that did not fit their
    request's state, ``misfit``: text of the last. ``changed``: number of the last event that can change what
    a pass decides. ``memos``: results of passes, valid while only submissions follow. ``balances``: what is
    owed in each domain (`shares.balance_of`). The last two are not stored."""

    settings: Settings = field(default_factory=Settings)
    found: Found = field(default_factory=Found)
    host: str = "localhost"
    zone: str = "UTC"
    requests: dict[Seq, Request] = field(default_factory=dict)
    waiting: dict[str, Columns] = field(default_factory=dict)
    started: dict[Seq, Request] = field(default_factory=dict)
    paused: dict[Seq, Request] = field(default_factory=dict)
    holders: Holders = field(default_factory=dict)
    units: consumables.UnitHolders = field(default_factory=dict)
    turns: dict[str, str] = field(default_factory=dict)
    moves: tuple[MeasuredMove, ...] = ()
    away: dict[str, dict[str, Seq]] = field(default_factory=dict, compare=False)
    dates: list[tuple[Instant, Seq]] = field(default_factory=list)
    dependants: dict[Seq, dict[Seq, None]] = field(default_factory=dict)
    writers: dict[str, dict[Seq, None]] = field(default_factory=dict)
    members: dict[Seq, dict[Seq, None]] = field(default_factory=dict)
    limited: dict[Seq, None] = field(default_factory=dict)
    reserved: dict[Seq, None] = field(default_factory=dict)
    tally: RequestCounts = field(default_factory=RequestCounts)
    accounts: dict[str, Account] = field(default_factory=dict)
    past: dict[str, DomainPast] = field(default_factory=lambda: {APPLICATION: DomainPast()})
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    shift: ShiftState = field(default_factory=ShiftState)
    resources: dict[str, ResourceState] = field(default_factory=dict)
    pressure: Pressure = field(default_factory=Pressure)
    foreign: tuple[ForeignJob, ...] = ()
    promises: dict[str, dict[str, Any]] = field(default_factory=dict)
    upcoming_stops: dict[str, UpcomingStop] = field(default_factory=dict)
    closings: dict[str, Instant] = field(default_factory=dict, compare=False)
    files: dict[str, str] = field(default_factory=dict)
    loaded_exits: dict[str, str] | None = None
    reported: str = ""
    former: tuple[str, ...] = ()
    numbers: Dictionary = field(default_factory=Dictionary)
    next_seq: Seq = 1
    n: int = 0
    at: Instant = Instant(0)
    changed: int = field(default=0, compare=False)
    freed: int = field(default=0, compare=False)
    swept: int = field(default=0, compare=False)
    memos: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    misfits: int = field(default=0, compare=False)
    misfit: str = field(default="", compare=False)
    touched: Touched = field(default_factory=Touched)
    balances: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    _boards: dict[str, Board] = field(default_factory=dict, repr=False, compare=False)

    def shared(self) -> list[str]:
        """Return the names of all domains that may have accounts: those set, and former ones in `past`."""
        if len(self.past) == 1 and APPLICATION in self.past and not self.is_divided():
            return [APPLICATION]
        return list(dict.fromkeys((*self.domains(), *self.past)))

    def accounts_in(self, domain: str | None) -> Iterator[tuple[str, Account]]:
        """Yield (key without the domain, account) for the accounts of a domain (None: of all domains)."""
        for key, account in self.accounts.items():
            where, bare = split_key(key)
            if domain in (None, where):
                yield bare, account

    def own_accounts(self, group: str, domain: str | None) -> list[Account]:
        """Return the accounts of a group itself, not of its users, in a domain (None: in all domains)."""
        key, of = f"g:{group}", self.accounts.get
        domains = self.shared() if domain is None else (domain,)
        return [account for each in domains if (account := of(account_key(each, key))) is not None]

    def past_of(self, domain: str) -> DomainPast:
        """Return the `DomainPast` of a domain; store an empty one if it has none."""
        if domain not in self.past:
            self.past[domain] = DomainPast()
        return self.past[domain]

    @property
    def name(self) -> str:
        """Host part of the identifiers of requests: ``server name`` if set, else the host's short name."""
        return self.settings.server.name or self.host

    @property
    def names(self) -> tuple[str, ...]:
        """All host parts that identifiers of this home have, or had once."""
        return self.name, self.host, *self.former

    @property
    def timezone(self) -> str:
        """Name of the time zone of shifts and reports: ``server timezone`` if set, else the machine's."""
        return self.settings.server.timezone or self.zone

    def id_of(self, seq: Seq) -> str:
        """Return the full identifier of a request: ``17.ymp``."""
        return full_id(seq, self.name)

    def pes(self) -> int:
        """Return the number of PEs of the machine: ``machine pes`` if set, else that of the CPUs found."""
        return len(self.found.cpus) if (pes := self.settings.machine.pes) is None else pes

    def domains(self) -> list[str]:
        """Return the names of the domains, ``application`` first."""
        return names(self.settings.domains)

    def is_divided(self) -> bool:
        """True if there is a domain in addition to ``application``."""
        domains = self.settings.domains
        return bool(domains) and len(domains) > (APPLICATION in domains)

    def domain(self, name: str = APPLICATION) -> Domain:
        """Return the settings of a domain; for an unknown name (of old queues) those of ``application``."""
        domains = self.settings.domains
        return (domains.get(name) or domains.get(APPLICATION) or _STANDARD) if domains else _STANDARD

    def domain_of(self, queue: str) -> Domain:
        """Return the settings of the domain from which the requests of a queue get their PEs."""
        found = self.settings.queues.get(queue)
        return self.domain(APPLICATION if found is None else found.domain)

    def held_by(self, request: Request) -> int:
        """Return how many PEs a request holds and is charged for while it runs: 0 in a command domain."""
        return self.domain_of(request.queue).held_by(request.spec.ask.pes)

    def domains_by_queue(self) -> dict[str, str]:
        """Return the name of the domain of each queue."""
        return {name: self.domain_of(name).name for name in self.settings.queues}

    def pes_of(self, domain: Domain) -> Mask:
        """Return a mask over the machine's PEs: True for the PEs of a domain, offline ones included."""
        return pes_of(self.settings.domains, domain.name, self.pes())

    def board(self, domain: str = APPLICATION) -> Board:
        """Return the board of a domain with the present holders of its PEs, as a copy to be changed."""
        found = self.domain(domain)
        own, barred = self.pes_of(found), (self.offline(), self.foreign_pes())
        cached = self._boards.get(domain)
        if cached is None or not cached.is_of(found, own, *barred):
            cached = self._boards[domain] = Board(found, own, self.holders, *barred)
        return cached.copy()

    def hold(self, request: Request) -> None:
        """Record a request as holder of its PEs, in `holders` and in the cached boards."""
        hold(self.holders, request.seq, pes := request.pes)
        for board in self._boards.values():
            board.hold(pes)

    def release(self, request: Request) -> None:
        """Remove a request as holder of its PEs, from `holders` and the cached boards."""
        release(self.holders, request.seq, pes := request.pes)
        for board in self._boards.values():
            board.release(pes)

    def note_away(self) -> None:
        """Compute ``away`` anew: for each unit offline now, its holder when it went offline (0: none)."""
        self.away = {
            name: {
                unit: self.away.get(name, {}).get(unit, self.units.get(name, {}).get(unit, 0))
                for unit in consumables.offline_of(each, self.found, self.resources)
            }
            for name, each in self.settings.consumables.items()
        }

    def offline(self) -> tuple[int, ...]:
        """Return the PEs on which nothing may start: set offline, or without their CPU."""
        return offline_pes(self.settings.machine, self.found, self.pes())

    def foreign_pes(self) -> tuple[int, ...]:
        """Return the PEs that foreign jobs use, in ascending order: nothing may start on them either."""
        return tuple(sorted({pe for job in self.foreign for pe in job.pes})) if self.foreign else ()

    def columns(self, queue: str) -> Columns:
        """Return the columns of the queued requests of a queue; store empty ones if it has none."""
        columns = self.waiting.get(queue)
        if columns is None:
            columns = self.waiting[queue] = Columns()
        return columns

    def busy(self) -> set[tuple[str, str]]:
        """Return the pairs (group, owner) that have a queued or started request."""
        found = {(request.group, request.owner) for request in self.started.values()}
        for columns in self.waiting.values():
            for number in columns.by_pair().nonzero()[0].tolist():
                group, _, owner = self.numbers.pairs.names[number].partition(":")
                found.add((group, owner))
        return found

    def accounts_of(self, group: str) -> list[str]:
        """Return the keys of the accounts of a group, groups below it, and their users, in all domains."""
        groups = self.settings.groups
        inside = {name for name in (*groups, group) if group in lineage(groups, name)}
        return [key for key in self.accounts if split_key(key)[1].split(":", 2)[1] in inside]

    def use_of(self, group: str, at: Instant) -> float:
        """Return the charged use (ms, decayed to ``at``) of a group and all below it, in all domains."""
        half_life = self.settings.usage.half_life
        keys = (key for key in self.accounts_of(group) if split_key(key)[1].startswith("g:"))
        return sum(self.accounts[key].at_time(at, half_life) for key in keys)

    def note_reserved(self, requests: Iterable[Request], swept: int) -> None:
        """Make ``reserved`` agree with these requests: it has those with a reservation and lacks the others.
        If one leaves it, set ``freed`` to the last event's number. Raise the site's ``swept`` to ``swept``
        (`events.Reserved.as_of`) if that is greater."""
        self.swept = max(self.swept, swept)
        for request in requests:
            if request.reservation is not None:
                self.reserved[request.seq] = None
            elif self.reserved.pop(request.seq, False) is None:
                self.freed = self.n

    def watch_for(self, request: Request) -> None:
        """Add a request to those of ``dependants``, ``writers``, ``members``, ``limited`` that it is in."""
        for index, key in self._links(request):
            index.setdefault(key, {})[request.seq] = None
        if request.array is not None and request.spec.array and request.spec.array.limit is not None:
            self.limited[request.seq] = None

    def watch_no_more(self, request: Request) -> None:
        """Remove a request from ``dependants``, ``writers``, ``members`` and ``limited``."""
        for index, key in self._links(request):
            fellows = index.get(key, {})
            fellows.pop(request.seq, None)
            if not fellows:
                index.pop(key, None)
        self.limited.pop(request.seq, None)

    def _links(self, request: Request) -> Iterator[tuple[dict[Any, dict[Seq, None]], Any]]:
        """Yield (index, key) for each entry of a request in ``writers``, ``dependants`` and ``members``."""
        output, array = request.spec.output, array_of(request.seq)
        if output.stdout is not None or output.stderr is not None:
            yield from ((self.writers, file) for file in files(request.seq, request.spec, request.queue))
        if request.unmet or request.array is not None:
            yield from ((self.dependants, each) for each in request.awaits())
        if array is not None:
            yield self.members, array

    def to_be(self, seq: Seq) -> Request | None:
        """Return the request with this key. For an index that its array still has, return the request that it
        would become, without storing it. None: neither exists."""
        found, array = self.requests.get(seq), self.requests.get(array_of(seq) or 0)
        return born(array, seq) if found is None and array is not None and is_in(array, seq) else found

    def named(self, seq: Seq) -> Seq:
        """Return the key of array ``17[]`` if ``seq`` is 17 and only the array exists, else ``seq``."""
        return seq if seq in self.requests or (array := array_key(seq)) not in self.requests else array

    def next_date(self) -> Instant | None:
        """Return the earliest date for which a request waits (state waiting); None: none waits for a date."""
        while self.dates:
            date, seq = self.dates[0]
            request = self.requests.get(seq)
            if request is not None and request.state is State.WAITING and request.eligible == date:
                return date
            heapq.heappop(self.dates)
        return None

    def causes_of_retries(self) -> dict[str, int]:
        """Return by cause how many requests wait for a new try of a failed start or delivery of output."""
        dated = (self.requests.get(seq) for seq in {seq for _, seq in self.dates})
        causes = [r.retry.text for r in dated if r is not None and r.retry and r.state is State.WAITING]
        causes += [r.run.undelivered for r in self.started.values() if r.state is State.EXITING]
        return Counter(cause for cause in causes if cause)

    def due(self, now: Instant) -> tuple[Seq, ...]:
        """Return the requests in state waiting with a start date or retry up to ``now``, in order of that."""
        found, todo = set(), [0]
        while todo:  # only the part of the heap whose dates have come is walked
            place = todo.pop()
            if place < len(self.dates) and self.dates[place][0] <= now:
                todo += (2 * place + 1, 2 * place + 2)
                date, seq = self.dates[place]
                request = self.requests.get(seq)
                if request is not None and request.state is State.WAITING and request.eligible == date:
                    found.add((date, seq))
        return tuple(seq for _, seq in sorted(found))

    def count(self, queue: str) -> int:
        """Return the number of requests in a queue that have not ended (arrays: as in `RequestCounts`)."""
        return self.tally.queues.get(queue, 0)


_OF_MANY = frozenset(kind for kind in STEPS if hasattr(kind, "seqs"))


def concerned(site: Site, event: Any) -> Iterable[Request]:
    """Return the existing requests that an event names. If it does not fit the state of a request, that
    request is left out, and `misfit` records the event."""
    if type(event) in _OF_MANY:
        return (request for seq in event.seqs for request in _fitting(site, seq, event))
    return _fitting(site, event.seq, event)


def _fitting(site: Site, seq: Seq, event: Any) -> tuple[Request, ...]:
    request = site.requests.get(seq)
    if request is None:
        return ()
    if fits(request, event):
        return (request,)
    misfit(site, request, event)
    return ()


def misfit(site: Site, request: Request, event: ev.Event) -> None:
    """Count an event that does not fit its request's state, and so changes nothing, in ``site.misfits``, and
    write ``site.misfit``, which managers get as an alarm. (In tests it raises.)"""
    run = f", attempt {request.run.number}" if request.attempt is not None else ""
    site.misfits += 1
    site.misfit = f"request {request.seq} is {request.state}{run}: event {event.kind} {event} does not fit"
