"""The one state of an installation, without what has ended. Only `lifecycle.apply` changes it."""

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
from nqspy.model.machine import Found, offline_pes
from nqspy.model.output_paths import files
from nqspy.model.people import lineage
from nqspy.model.requests import Request, State
from nqspy.model.settings import Settings as Settings
from nqspy.model.shifts import ShiftState, UpcomingStop
from nqspy.model.transitions import STEPS, born, fits, is_in

_STANDARD = Domain(APPLICATION)
"""The domain of which nothing was set."""


@dataclass(slots=True)
class RequestCounts:
    """Requests that have not ended; owners and queues without any are not listed."""

    total: int = 0
    owners: dict[str, int] = field(default_factory=dict)
    queues: dict[str, int] = field(default_factory=dict)
    pairs: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, requests: Iterable[Request]) -> "RequestCounts":
        """Counted from the requests themselves."""
        made = cls()
        for request in requests:
            made.enter(request)
        return made

    def copy(self) -> "RequestCounts":
        """A copy of its own."""
        return RequestCounts(self.total, dict(self.owners), dict(self.queues), dict(self.pairs))

    def enter(self, request: Request) -> None:
        """Add a request, where it is now; of an array as many as have not begun."""
        self.count(request.spec.owner, request.queue, request.weight)

    def leave(self, request: Request) -> None:
        """Take a request out, where it still is."""
        self.count(request.spec.owner, request.queue, -request.weight)

    def count(self, owner: str, queue: str, by: int = 1) -> None:
        """``by`` more of an owner in a queue."""
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
    """The rows that the store has to write at the next commit."""

    requests: set[Seq] = field(default_factory=set)
    ended: dict[Seq, tuple[Request, Any]] = field(default_factory=dict)
    settings: set[str] = field(default_factory=set)
    accounts: set[str] = field(default_factory=set)
    lifetimes: set[Key] = field(default_factory=set)
    state: bool = False

    def clear(self) -> None:
        """Forget them, after the commit."""
        for each in (self.requests, self.ended, self.settings, self.accounts, self.lifetimes):
            each.clear()
        self.state = False


@dataclass(slots=True)
class Site:
    """The state. ``n`` and ``at`` are number and instant of the last event applied. ``waiting``: columns of
    the queued requests, by queue; ``started``: requests with an attempt; ``paused``: those of them that are
    suspended; ``holders``: which of them hold a PE (`board`); ``units``: which hold a unit, ``turns``: which
    unit of each consumable was given last, ``away``: what held those offline when they went; ``moves``: what
    the last moves off PEs took (`lifetimes`); ``dates``: heap of (eligible, seq) of requests that wait for
    their date (entries may be stale); ``dependants``: requests that wait for another one, by its number
    (`Request.unmet`); ``writers``: which requests that have not ended write a file, by its path
    (`output_paths.files`); ``members``: indices of each array that are their own requests; ``limited``:
    arrays of which not all indices may run at a time; ``reserved``: queued requests that were promised a
    start, ``freed``: number of the last event that left something to others, ``swept``: up to which of these
    the promises were gone through; ``tally``: how many requests there are; ``accounts``: ``g:GROUP`` and
    ``u:GROUP:USER`` (`domains.account_key`); ``past``: by domain; ``lifetimes``: how long requests ran;
    ``resources``: how each that is watched was found, once it was; ``promises``: of features, by their names
    (`promises`); ``upcoming_stops``: when a shift stops a queue next, by queue: worked out by the engine from
    settings and time, and no part of what is kept, as ``closings``: when any shift stops it;
    ``loaded_exits``: content hashes of the user exits in force, by name (None: not known); ``reported``: day
    of the last night that was reported; ``former``: host parts that its identifiers have had; ``misfits``:
    how many events did not fit their request's state, ``misfit`` the last one; ``changed``: number of the
    last event that was more than a record; ``memos``: what passes noted that holds until more happens than
    submissions; ``balances``: what is owed in each domain (`shares.balance_of`); not kept either."""

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
        """The domains that there are, and former ones with accounts that are still kept."""
        if len(self.past) == 1 and APPLICATION in self.past and not self.is_divided():
            return [APPLICATION]
        return list(dict.fromkeys((*self.domains(), *self.past)))

    def accounts_in(self, domain: str | None) -> Iterator[tuple[str, Account]]:
        """The accounts of a domain (None: of all) by their keys there."""
        for key, account in self.accounts.items():
            where, bare = split_key(key)
            if domain in (None, where):
                yield bare, account

    def own_accounts(self, group: str, domain: str | None) -> list[Account]:
        """The accounts that a group itself has in a domain (None: in all)."""
        key, of = f"g:{group}", self.accounts.get
        domains = self.shared() if domain is None else (domain,)
        return [account for each in domains if (account := of(account_key(each, key))) is not None]

    def past_of(self, domain: str) -> DomainPast:
        """Return what was in a domain."""
        if domain not in self.past:
            self.past[domain] = DomainPast()
        return self.past[domain]

    @property
    def name(self) -> str:
        """Host part of identifiers."""
        return self.settings.server.name or self.host

    @property
    def names(self) -> tuple[str, ...]:
        """All host parts that identifiers of this home have, or have had."""
        return self.name, self.host, *self.former

    @property
    def timezone(self) -> str:
        """Zone of the shifts."""
        return self.settings.server.timezone or self.zone

    def id_of(self, seq: Seq) -> str:
        """Full identifier of a request."""
        return full_id(seq, self.name)

    def pes(self) -> int:
        """Return how many PEs there are."""
        return len(self.found.cpus) if (pes := self.settings.machine.pes) is None else pes

    def domains(self) -> list[str]:
        """The domains there are, ``application`` first."""
        return names(self.settings.domains)

    def is_divided(self) -> bool:
        """True if there is a domain besides ``application``."""
        domains = self.settings.domains
        return bool(domains) and len(domains) > (APPLICATION in domains)

    def domain(self, name: str = APPLICATION) -> Domain:
        """Settings of a domain; of ``application`` if it is none: queues once could name any."""
        domains = self.settings.domains
        return (domains.get(name) or domains.get(APPLICATION) or _STANDARD) if domains else _STANDARD

    def domain_of(self, queue: str) -> Domain:
        """The domain from which a queue's requests get their PEs."""
        found = self.settings.queues.get(queue)
        return self.domain(APPLICATION if found is None else found.domain)

    def held_by(self, request: Request) -> int:
        """Return how many PEs a request holds while it runs, and is charged for."""
        return self.domain_of(request.queue).held_by(request.spec.ask.pes)

    def domains_by_queue(self) -> dict[str, str]:
        """The domain of each queue, by name."""
        return {name: self.domain_of(name).name for name in self.settings.queues}

    def pes_of(self, domain: Domain) -> Mask:
        """Which of the machine's PEs a domain has."""
        return pes_of(self.settings.domains, domain.name, self.pes())

    def board(self, domain: str = APPLICATION) -> Board:
        """A domain's PEs as they are held now, to be changed by whoever asks."""
        found = self.domain(domain)
        own, offline, cached = self.pes_of(found), self.offline(), self._boards.get(domain)
        if cached is None or not cached.is_of(found, own, offline):
            cached = self._boards[domain] = Board(found, own, self.holders, offline)
        return cached.copy()

    def hold(self, request: Request) -> None:
        """A request holds its PEs from now on."""
        hold(self.holders, request.seq, pes := request.pes)
        for board in self._boards.values():
            board.hold(pes)

    def release(self, request: Request) -> None:
        """Take its PEs from a request."""
        release(self.holders, request.seq, pes := request.pes)
        for board in self._boards.values():
            board.release(pes)

    def note_away(self) -> None:
        """Note what held each unit that is offline when it went, 0: nothing."""
        self.away = {
            name: {
                unit: self.away.get(name, {}).get(unit, self.units.get(name, {}).get(unit, 0))
                for unit in consumables.offline_of(each, self.found, self.resources)
            }
            for name, each in self.settings.consumables.items()
        }

    def offline(self) -> tuple[int, ...]:
        """PEs on which nothing may be started: their CPU is gone, or they are set offline."""
        return offline_pes(self.settings.machine, self.found, self.pes())

    def columns(self, queue: str) -> Columns:
        """The waiting requests of a queue."""
        columns = self.waiting.get(queue)
        if columns is None:
            columns = self.waiting[queue] = Columns()
        return columns

    def busy(self) -> set[tuple[str, str]]:
        """(group, owner) of all requests that are queued or started."""
        found = {(request.group, request.owner) for request in self.started.values()}
        for columns in self.waiting.values():
            for number in columns.by_pair().nonzero()[0].tolist():
                group, _, owner = self.numbers.pairs.names[number].partition(":")
                found.add((group, owner))
        return found

    def accounts_of(self, group: str) -> list[str]:
        """Keys of the accounts of a group, of all groups below it, and of their users, in all domains."""
        groups = self.settings.groups
        inside = {name for name in (*groups, group) if group in lineage(groups, name)}
        return [key for key in self.accounts if split_key(key)[1].split(":", 2)[1] in inside]

    def use_of(self, group: str, at: Instant) -> float:
        """Decayed use (ms) of a group and all below it, as far as it was charged."""
        half_life = self.settings.usage.half_life
        keys = (key for key in self.accounts_of(group) if split_key(key)[1].startswith("g:"))
        return sum(self.accounts[key].at_time(at, half_life) for key in keys)

    def promised(self, requests: Iterable[Request], swept: int) -> None:
        """Notes which of these have a promised start now; ``swept`` as there."""
        self.swept = max(self.swept, swept)
        for request in requests:
            if request.reservation is not None:
                self.reserved[request.seq] = None
            elif self.reserved.pop(request.seq, False) is None:
                self.freed = self.n

    def watch_for(self, request: Request) -> None:
        """Note what a request waits for, the files it writes, and the array it belongs to."""
        for index, key in self._links(request):
            index.setdefault(key, {})[request.seq] = None
        if request.array is not None and request.spec.array and request.spec.array.limit is not None:
            self.limited[request.seq] = None

    def watch_no_more(self, request: Request) -> None:
        """Forget what a request waited for, its files, and its array."""
        for index, key in self._links(request):
            fellows = index.get(key, {})
            fellows.pop(request.seq, None)
            if not fellows:
                index.pop(key, None)
        self.limited.pop(request.seq, None)

    def _links(self, request: Request) -> Iterator[tuple[dict[Any, dict[Seq, None]], Any]]:
        """The indexes that name a request, each with the key under which it does."""
        output, array = request.spec.output, array_of(request.seq)
        if output.stdout is not None or output.stderr is not None:
            yield from ((self.writers, file) for file in files(request.seq, request.spec, request.queue))
        if request.unmet or request.array is not None:
            yield from ((self.dependants, each) for each in request.awaits())
        if array is not None:
            yield self.members, array

    def to_be(self, seq: Seq) -> Request | None:
        """A request, or an index of an array that could become one of its own as that would be."""
        found, array = self.requests.get(seq), self.requests.get(array_of(seq) or 0)
        return born(array, seq) if found is None and array is not None and is_in(array, seq) else found

    def named(self, seq: Seq) -> Seq:
        """Return what an identifier means: a bare number that is no request's is an array's."""
        return seq if seq in self.requests or (array := array_key(seq)) not in self.requests else array

    def next_date(self) -> Instant | None:
        """The next instant at which a dated request becomes eligible."""
        while self.dates:
            date, seq = self.dates[0]
            request = self.requests.get(seq)
            if request is not None and request.state is State.WAITING and request.eligible == date:
                return date
            heapq.heappop(self.dates)
        return None

    def causes_of_retries(self) -> dict[str, int]:
        """Return why requests could not start or deliver their output for a while, each with their number."""
        dated = (self.requests.get(seq) for seq in {seq for _, seq in self.dates})
        causes = [r.retry.text for r in dated if r is not None and r.retry and r.state is State.WAITING]
        causes += [r.run.undelivered for r in self.started.values() if r.state is State.EXITING]
        return Counter(cause for cause in causes if cause)

    def due(self, now: Instant) -> tuple[Seq, ...]:
        """Requests with dates that have come, by date and sequence number."""
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
        """Requests of any state in a queue."""
        return self.tally.queues.get(queue, 0)


_OF_MANY = frozenset(kind for kind in STEPS if hasattr(kind, "seqs"))


def concerned(site: Site, event: Any) -> Iterable[Request]:
    """The requests that an event concerns, as far as they are there and it fits them."""
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
    """An event that cannot have happened: it changes nothing, and is told (tests raise instead)."""
    run = f", attempt {request.run.number}" if request.attempt is not None else ""
    site.misfits += 1
    site.misfit = f"request {request.seq} is {request.state}{run}: event {event.kind} {event} does not fit"
