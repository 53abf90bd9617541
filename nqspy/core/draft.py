"""The working copy of one pass: the proposals so far. `views` shows them to user exits.

Nothing else in a pass is mutable; the site is only read. Every feature sees the proposals of earlier ones.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from nqspy.core.consumables import UnitBoard
from nqspy.core.gate.gate import Gate
from nqspy.core.gate.room import Room
from nqspy.model.actions import Action, Hold, Migrate, Move, Redate, Requeue, Reserving, Resume, Suspend
from nqspy.model.board import Board
from nqspy.model.cause import Cause
from nqspy.model.columns import Columns, Ints
from nqspy.model.consumables import Units
from nqspy.model.domains import APPLICATION
from nqspy.model.facts import Promise, plain
from nqspy.model.ids import Instant, Seq, member
from nqspy.model.indices import nth
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reach, Reason, ReasonCode, quoted, reason_kinds
from nqspy.model.requests import PRIME, Request, State, Used
from nqspy.model.shapes import Lacked
from nqspy.model.site import Site
from nqspy.model.transitions import born
from nqspy.ports import Answer, Exits, PassView, RequestView
from nqspy.shares import FairShare

(SHUT_OUT,) = reason_kinds(
    ReasonCode.STOPPED,
    "that must end, or an operator must take its rank away (schedule request ID system)",
    shut_out="waits behind the prime request {request}, which has {domain} to itself",
)
(_MOVED,) = reason_kinds(ReasonCode.HELD, "the next pass examines it", moved="is moving to queue {queue}")


@dataclass(slots=True)
class Choice:
    """A start that a pass proposes, on these PEs with these units; ``forced``: past the limits. ``follow``:
    what `elected` exits want after it (redate, hold, move). ``lacked``, ``cleared``: as in `actions.Start`.
    ``reserving``: changes of reservations that come before it."""

    request: Request
    forced: bool = False
    pes: tuple[int, ...] = ()
    units: Units = ()
    lacked: Lacked = ()
    cleared: bool = False
    follow: list[Action] = field(default_factory=list)
    reserving: Reserving | None = None


class Draft:
    """Proposals of one pass over ``site`` at ``now``. ``samples``: use so far of running attempts, as
    reported.

    - ``before``, ``after``: proposed actions of the plan, in this order; starts are added to ``after`` when
      the chooser has run, then moves of what runs.
    - ``gate``: the chooser's gate, and ``blockers``: requests that let none of their queue start, by queue,
      once it has run.
    - ``chosen``: starts in order; ``started``: their requests; ``starting``: their numbers.
    - ``reasons``: of single requests so far; ``closing``: of queues, for their other requests; ``reach``: of
      requests that the refusal of another reaches.
    - ``offered``: candidates offered to jobselect and the answers, by queue; ``views``: requests as exits see
      them, by `views.request_view`; ``view``: the pass as exits see it, by `views.view_of`.
    - ``short_domains``: domains in which some request waits only for PEs.
    - ``resumed``: suspended requests that go on; ``leaving``: numbers of running ones that give way.
    - ``shut``: why queues start nothing in this pass, by name; ``barred``: why no queue does.
    - ``startable``: returns the PEs that could start in a domain as the pass began, by ``GROUP:OWNER`` (None:
      as the last pass reported them).
    - ``asked``: the domain for which exits are asked for shares at the moment.
    - ``priorities``: share values by domain and by owner and group, until the next start; ``rounds``: starts.
    - ``proposals``: number of starts and changes of waiting requests so far.
    - ``acting``: name of the feature that acts, if a domain may leave it out, else empty.
    """

    def __init__(self, site: Site, now: Instant, exits: Exits, samples: Mapping[Seq, Used]) -> None:
        self.site, self.now, self.exits, self.samples = site, now, exits, samples
        self.before: list[Action] = []
        self.chosen: list[Choice] = []
        self.started: list[Request] = []
        self.rooms = Room(site, self.started)
        self.after: list[Action] = []
        self.reasons: dict[Seq, Reason] = {}
        self.closing: dict[str, Reason] = {}
        self.reach: list[Reach] = []
        self.offered: defaultdict[str, list[tuple[RequestView, Answer | None]]] = defaultdict(list)
        self.views: dict[Seq, Any] = {}
        self.view: PassView | None = None
        self.short_domains: set[str] = set()
        self.resumed: list[Request] = []
        self.shut: dict[str, Reason] = {}
        self.barred: Reason | None = None
        self.proposals = 0
        self.priorities: dict[str, dict[tuple[str, str], float]] = {}
        self.rounds = 0
        self.asked, self.acting = APPLICATION, ""
        self.startable: Callable[[str], Mapping[str, int]] | None = None
        self._ledgers: dict[str, FairShare] = {}
        self._dates: dict[str, Ints] = {}
        self._removed: dict[str, list[int]] = {}
        self.starting: set[Seq] = set()
        self._indices: dict[Seq, int] = {}  # indices started, by array
        self.leaving: set[Seq] = set()
        self.gate: Gate | None = None
        self.blockers: dict[str, Request] = {}

    def board(self, queue: str) -> Board:
        """Return the PEs of a queue's domain with their holders, starts of this pass included."""
        return self.rooms.board(queue)

    def room(self, queue: str) -> int:
        """Return the number of PEs that one request of a queue could be given now."""
        return self.rooms.pes(queue)

    @cached_property
    def ledger(self) -> FairShare:
        """Use and entitlement of accounts in all domains, with this pass's starts; computed at first use."""
        return self._make_ledger(None)

    def ledger_of(self, domain: str) -> FairShare:
        """Return use and entitlement of accounts in a domain, with the starts of this pass."""
        if not self.site.is_divided():
            return self.ledger
        if domain not in self._ledgers:
            self._ledgers[domain] = self._make_ledger(domain)
        return self._ledgers[domain]

    def _make_ledger(self, domain: str | None) -> FairShare:
        return FairShare(self.site, self.now, self.samples, self.started, self.startable, domain)

    @cached_property
    def units(self) -> UnitBoard:
        """Free units of consumables, without those taken by starts of this pass."""
        return UnitBoard(self.site)

    @cached_property
    def awaiting(self) -> dict[str, list[Request]]:
        """Requests that wait for others and therefore are in no queue's columns, by owner."""
        by_owner: dict[str, list[Request]] = {}
        requests = self.site.requests
        for seq in set().union(*self.site.dependants.values()):
            if (request := requests.get(seq)) is not None and request.slot < 0 and request.awaits():
                by_owner.setdefault(request.owner, []).append(request)
        return by_owner

    @cached_property
    def prime(self) -> dict[str, Request]:
        """The first prime request that runs or may start in each domain that has one, by domain."""
        site, primes = self.site, list[Request]()
        primes += (r for r in site.started.values() if r.rank == PRIME and r.state is not State.EXITING)
        for queue, columns in self.waiting:
            if queue.kind == "batch" and queue.started and columns.most("rank") >= PRIME:
                primes += map(columns.request, (columns.rank == PRIME).nonzero()[0].tolist())
        found: dict[str, Request] = {}
        for request in sorted(primes, key=_by_start):
            domain = site.domain_of(request.queue)
            if not domain.is_command:  # there its applications are prime
                found.setdefault(domain.name, request)
        return found

    def shut_out(self, queue: str) -> Reason | None:
        """Return why no other request of a queue starts or resumes: its domain has a prime one; None: not."""
        site = self.site
        domain = site.domain_of(queue).name if self.prime else ""
        if (prime := self.prime.get(domain)) is None:
            return None
        where = f"domain {domain}" if site.is_divided() else "the machine"
        return SHUT_OUT("operator", site.id_of(prime.seq), where)

    def close(self) -> None:
        """Drop the views made for exits, which refer to the draft, so that its memory is freed at once."""
        self.views.clear()
        self.offered.clear()
        self.view = None

    # ------------------------------------------------------------ proposals

    def is_short(self, queue: str) -> bool:
        """True if a request of any queue in that queue's domain is recorded as waiting only for PEs."""
        return bool(self.short_domains) and self.board(queue).domain.name in self.short_domains

    def say_short(self, queue: str) -> None:
        """Record in ``short_domains`` that a request of that queue waits only for PEs."""
        self.short_domains.add(self.board(queue).domain.name)

    def remaining_of(self, request: Request) -> int:
        """Return how many starts a request is ready for (an array: indices), less those of this pass."""
        return request.multiplicity - self._indices.get(request.seq, 0)

    def what_starts(self, request: Request) -> Request:
        """Return what a start of a request starts: itself, or the next index of an array as a request."""
        if request.array is None:
            return request
        index = nth(request.array.ready, self._indices.get(request.seq, 0))
        return born(request, member(request.seq, index))

    def choose(
        self, request: Request, forced: bool = False, pes: tuple[int, ...] = (), of: Request | None = None
    ) -> Choice:
        """Propose to start a request on these PEs, take units of its consumables (which must be free), and
        charge its group. Share values are computed anew after it. ``of``: array of an index."""
        wanted = request.spec.ask.consumables
        starts = bool(pes) or self.site.domain_of(request.queue).is_command
        choice = Choice(request, forced, pes, self.units.give(wanted, pes) if wanted and starts else ())
        if "ledger" in self.__dict__:
            self.ledger.commit(request)
        for ledger in self._ledgers.values():
            ledger.commit(request)
        self.chosen.append(choice)
        self.started.append(request)
        self.proposals += 1
        self.starting.add(request.seq)
        if of is not None and of is not request:
            self._indices[of.seq] = self._indices.get(of.seq, 0) + 1
        if of is None or not self.remaining_of(of) or of is request:
            self._removed.setdefault(request.queue, []).append((of or request).slot)
        self.priorities.clear()
        self.rounds += 1
        return choice

    def follow(self, choice: Choice, actions: Iterable[Action]) -> list[Request]:
        """Record what exits want after a start; return the waiting requests redated, held or moved by it."""
        changed: list[Request] = []
        for action in actions:
            if isinstance(action, Redate):
                seqs = tuple(seq for seq in action.seqs if seq not in self.starting)
                if seqs:
                    action = replace(action, seqs=seqs, cause=choice.request.seq)
                    choice.follow.append(action)
                    changed += self._redate(seqs, action.date)
                continue
            choice.follow.append(action)
            if isinstance(action, (Hold, Move)):
                changed += self._withdraw(action)
        return changed

    def _redate(self, seqs: Sequence[Seq], date: Instant) -> list[Request]:
        requests = self.site.requests
        self.proposals += 1
        waiting = [r for seq in seqs if (r := requests.get(seq)) is not None and r.slot >= 0]
        for queue in {request.queue for request in waiting}:
            if queue not in self._dates:
                self._dates[queue] = self.site.waiting[queue].date.copy()
            self._dates[queue][[r.slot for r in waiting if r.queue == queue]] = date
        return waiting

    def _withdraw(self, action: Hold | Move) -> list[Request]:
        request = self.site.requests.get(action.seq)
        if request is None or request.slot < 0 or request.slot in self.removed(request.queue):
            return []
        self._removed.setdefault(request.queue, []).append(request.slot)
        self.proposals += 1
        if isinstance(action, Hold):
            self.reasons[request.seq] = quoted(ReasonCode.HELD, action.who, action.text)
        else:
            self.reasons[request.seq] = _MOVED(f"queue {request.queue}", action.queue)
        return [request]

    # ------------------------------------------------------------ running requests give way and return

    def running(self) -> list[Request]:
        """Return the running requests that the acting feature may preempt, earliest start first. Requests
        that were asked to end or give way already are left out."""
        going = (r for r in self._listing(self.site.started) if r.state is State.RUNNING and not r.ending)
        return sorted((r for r in going if r.seq not in self.leaving), key=_by_start)

    def released(self) -> list[Request]:
        """Return the suspended requests without PEs that the acting feature may keep suspended, by start.
        Requests that were asked to end, that a person suspended, or that this pass resumes are left out."""
        if not self.site.paused:
            return []
        back = {request.seq for request in self.resumed}
        listed = (r for r in self._listing(self.site.paused) if not r.ending)
        away = (r for r in listed if r.pause and r.pause.pes_released and not r.pause.cause.is_person)
        return sorted((r for r in away if r.seq not in back), key=_by_start)

    def _listing(self, requests: Mapping[Seq, Request]) -> Iterable[Request]:
        """Return those of these requests on which the acting feature may act: their domains list it."""
        site, acting = self.site, self.acting
        if not acting or all(domain.lists(acting) for domain in site.settings.domains.values()):
            return requests.values()
        return (each for each in requests.values() if site.domain_of(each.queue).lists(acting))

    def suspend(
        self,
        request: Request,
        cause: Cause,
        text: str,
        *,
        pes_released: bool,
        page_out: bool = False,
        leaving: bool = False,
        by: str = "",
    ) -> None:
        """Propose to suspend a running request. Its PEs become free at once if ``pes_released``, or once it
        has moved out if ``leaving``; its memory if ``page_out``. ``by``: feature, if not the acting one."""
        action = Suspend(request.seq, request.attempts, cause, text, pes_released, page_out, leaving, by=by)
        self.before.append(action)
        self.leaving.add(request.seq)
        if pes_released:
            self.board(request.queue).release(request.pes)

    def requeue(self, request: Request, cause: Cause, text: str) -> None:
        """Propose to end a running request, which then waits again; its PEs are free after it has ended."""
        self.before.append(Requeue(request.seq, request.attempts, cause, text))
        self.leaving.add(request.seq)

    def store_fact(self, key: str, value: Any, by: str = "") -> None:
        """Propose to store a value (None: to delete it) under a key for later passes; see `model.facts`."""
        self.before.append(Promise(key, plain(value), by=by))

    def keep_suspended(self, request: Request, reason: Reason) -> None:
        """Keep a suspended request suspended in this pass, for this reason."""
        self.reasons[request.seq] = reason

    def resume(self, request: Request, cause: Cause, pes: tuple[int, ...] = (), by: str = "") -> None:
        """Propose that a suspended request goes on, on ``pes`` if it gave up its own (empty: on its own)."""
        moved = pes if pes != request.pes else ()
        self.before.append(Resume(request.seq, request.attempts, cause, moved, by=by))
        self.resumed.append(request)
        if request.pes_released:
            self.rooms.hold(request.queue, pes or request.pes)

    def migrate(self, request: Request, pes: tuple[int, ...]) -> None:
        """Propose that a running request goes on, on other PEs of its domain."""
        self.after.append(Migrate(request.seq, request.attempts, pes))

    # ------------------------------------------------------------ waiting requests after the proposals

    def dates(self, queue: str) -> Ints:
        """Return the dates in queue of the rows of a queue, re-datings of this pass included."""
        dates = self._dates.get(queue)
        return dates if dates is not None else self.site.waiting[queue].date

    def redated(self, queue: str) -> Ints | None:
        """Return the dates of the rows of a queue if this pass has changed some, else None."""
        return self._dates.get(queue)

    def removed(self, queue: str) -> list[int]:
        """Return the rows of a queue that no longer wait, because this pass starts, holds or moves them."""
        return self._removed.get(queue, [])

    def date_of(self, request: Request) -> Instant:
        """Return the date in queue of a request, re-datings of this pass included."""
        if request.slot >= 0 and request.queue in self._dates:
            return Instant(int(self._dates[request.queue][request.slot]))
        return request.date_in_queue

    @cached_property
    def waiting(self) -> Sequence[tuple[Queue, Columns]]:
        """Queues with waiting requests, each with its columns, by priority (highest first), then by name."""
        queues = self.site.settings.queues
        served = [(queues[name], rows) for name, rows in self.site.waiting.items() if name in queues and rows]
        return sorted(served, key=lambda pair: (-pair[0].priority, pair[0].name))


def _by_start(request: Request) -> tuple[int, Seq]:
    return (request.started or 0, request.seq)
