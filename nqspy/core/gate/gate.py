"""The gate: the place that decides if a request may start now, and if not, why. All parts of nqspy ask it."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from weakref import proxy

from nqspy.core.asked import violation
from nqspy.core.gate.arrays import ArrayLimit
from nqspy.core.gate.caps import Caps
from nqspy.core.gate.limits import Made, limits_of
from nqspy.core.gate.reserved import Reservations
from nqspy.core.gate.room import ALL_AWAY, FOREIGN, Room
from nqspy.core.gate.rule import IN_A_SHIFT, LESS, RAISED, CountLimit, Mask, Rule, any_of, gravest, wider
from nqspy.core.gate.shifts import TOGETHER, Drain, judged
from nqspy.core.gate.units import FreeUnits
from nqspy.core.placement.placements import size_of
from nqspy.core.resource_health import blocked_mask
from nqspy.model.columns import Columns
from nqspy.model.ids import Instant
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import Request, Spec, State
from nqspy.model.site import Site
from nqspy.shares import FairShare

NOW = 3
"""Rank of ``schedule request now``: only a lack of PEs or units holds such a request, no other limit."""
_LASTING = (LESS, RAISED, IN_A_SHIFT, TOGETHER)
_ROOM = (ReasonCode.NO_PES, ReasonCode.RESERVED)
_AWAY = (ALL_AWAY.name, FOREIGN.name)
"""Reasons that no end of a request removes."""
_EMPTY = "empty gate"
"""Name of `empty_gate` in `Site.memos`."""


class Which(StrEnum):
    """Selection of rules for `Gate.mask`. (It is a text, because other enumerations are slow as keys.)"""

    ALL = "limits, room and reservations"
    TIMED = "limits and reservations"
    LIMITS = "limits alone"
    OWNER = "limits that are not shared: those of users, groups and arrays"
    EVER = "limits and width as if nothing ran"


class Gate:
    """All rules that may refuse a start, with what runs under them; starts of a pass are added as they are
    decided.

    ``now``: the instant of the pass (None: of the last event). ``ledger`` returns use, with what starts
    commit, for the caps of groups; without it, use counts as it stood at the last event. ``room``: the boards
    of the pass. ``running``: what runs (None: what the site says). ``run_limits`` False leaves out the rules
    that hold a whole queue. ``version`` rises with every start and reservation: a mask is valid for one
    version. ``counts_candidates``: True once a candidate that does not start is counted too (`reserve_pes`).

    A suspended request that released its PEs counts only with what it still holds. A request that is exiting
    does not count: its processes have ended.
    """

    def __init__(
        self,
        site: Site,
        now: Instant | None = None,
        ledger: Callable[[], FairShare] | None = None,
        *,
        room: Room | None = None,
        running: Iterable[Request] | None = None,
        run_limits: bool = True,
    ) -> None:
        self.site, self.now = site, site.at if now is None else now
        self.room = room or Room(site)
        self._run_limits, at = run_limits, self.now
        self._caps = Caps(site, ledger or (lambda: FairShare(site, at, {})))
        self.arrays = ArrayLimit(site)
        self._units = FreeUnits(site) if site.settings.consumables else None
        self._limits: Made = {}
        self._by_queue: dict[str, list[Rule]] = {}
        known = proxy(self)  # a bound method would make a circle
        self.reserved = Reservations(site, self.now, lambda queue: known.rules(queue))  # noqa: PLW0108
        self.version, self.counts_candidates = 0, False
        self._masks_of, self._masks = 0, dict[tuple[str, Which], Mask | None]()
        self._missing: dict[str, Mask | None] = {}
        for request in site.started.values() if running is None else running:
            if request.state is not State.EXITING:
                self.count(request)

    def rules(self, queue: str) -> list[Rule]:
        """Return the limits for the requests of a queue, in the order in which reasons are looked for."""
        found = self._by_queue.get(queue)
        if found is None:
            found = [*limits_of(self.site, queue, self._limits)]
            if self._units is not None:
                found.append(self._units)
            if self._caps.bound:
                found.append(self._caps)
            if self.arrays.bound:
                found.append(self.arrays)
            stop = self.site.upcoming_stops.get(queue)
            if stop is not None and stop.spill == "drain":
                found.append(Drain(self.site, queue, self.now))
            self._by_queue[queue] = found
        return found

    # ------------------------------------------------------------ one request

    def refuses(self, ask: Request, forced: bool = False) -> Reason | None:
        """Return why a request may not start now: limits first, then room, then reservations. None: it may.
        ``forced``: only PE limits, units, a drain and a lack of room refuse it."""
        reason = self.limit(ask, forced) or self.room.refuses(ask)
        return reason or (None if forced else self.reserved.delaying(ask))

    def limit(self, ask: Request, forced: bool = False) -> Reason | None:
        """Return the limit that holds a request, first one that never lets it start; None: no limit does."""
        if ask.rank >= NOW:
            return None if self._units is None or ask.state is State.SUSPENDED else self._units.refuses(ask)
        reasons = self._reasons(ask, forced)
        return gravest(reasons) if reasons else None

    def never(self, ask: Request) -> Reason | None:
        """Return the limit that holds a request even when nothing else runs, until a person or a shift
        raises it or the request asks for less. None: no limit does, though some may be reached now."""
        return gravest(each for each in self._reasons(ask) if each.needed in _LASTING)

    def closed(self, queue: str) -> Reason | None:
        """Return the reached run limit that holds a whole queue; None: no run limit is reached."""
        limits = (rule for rule in self.rules(queue) if isinstance(rule, CountLimit) and rule.whole_queue)
        return next((rule.reason(1, 0, "") for rule in limits if rule.remaining() < 1), None)

    def waits_for_room(self, ask: Request, reason: Reason) -> bool:
        """True if a request is refused (``reason``) only for a shared amount (PEs, units, memory) of which
        there is enough once all others have ended: then a start may be reserved for it. PEs that are offline
        or used by foreign jobs do not come back by ends."""
        waits = (reason.code in _ROOM and reason.kind not in _AWAY) or self.reserved.is_shared(ask)
        return waits and not self.reserved.is_too_much(ask)

    def _reasons(self, ask: Request, forced: bool = False) -> list[Reason]:
        capped = None if forced or not self._caps.bound else self._caps.never(ask)
        found = [] if capped is None else [capped]
        returns = ask.state is State.SUSPENDED
        for rule in self.rules(ask.queue):
            if returns and (rule.counts_suspended or not ask.pes_released):
                continue  # it is counted already
            if rule.holds_forced or not (forced or (rule.whole_queue and not self._run_limits)):
                reason = rule.refuses(ask)
                if reason is not None:
                    found.append(reason)
        return [judged(self.site, ask, each) for each in found]

    # ------------------------------------------------------------ a whole queue

    def mask(self, queue: str, columns: Columns, which: Which = Which.ALL) -> Mask | None:
        """Return a mask of a queue's rows that the rules refuse now; None: no row. Rules that hold the whole
        queue count only with `Which.EVER`, if they let nothing run: `closed` returns the others."""
        if self._masks_of != self.version:
            self._masks_of, self._masks = self.version, {}
        key = queue, which
        if key not in self._masks:
            if which is Which.ALL:
                masks = [self.mask(queue, columns, Which.TIMED), self.room.mask(queue, columns)]
            elif which is Which.TIMED:
                masks = [self.mask(queue, columns, Which.LIMITS), self.reserved.mask(queue, columns)]
            else:
                ever = which is Which.EVER
                rules = (rule for rule in self.rules(queue) if not (which is Which.OWNER and rule.shared))
                masks = [
                    rule.mask(queue, columns, ever=ever) for rule in rules if ever or not rule.whole_queue
                ]
                masks.append(self.missing(queue, columns))
            self._masks[key] = any_of(masks)
        return self._masks[key]

    def missing(self, queue: str, columns: Columns) -> Mask | None:
        """Return the rows that could not start even if all requests ended: they ask for more PEs than the
        domain has, or need a broken resource."""
        if queue not in self._missing:
            wide = wider(columns, size_of(self.site, queue))
            self._missing[queue] = any_of((wide, blocked_mask(self.site, columns)))
        return self._missing[queue]

    def opens(self) -> Instant | None:
        """Return when a group at a cap may start again, because use will have decayed; None: unknown."""
        return self._caps.opens()

    # ------------------------------------------------------------ changes

    def add(self, ask: Request, of: Request, forced: bool = False) -> None:
        """Count a start of this pass under all rules. ``ask``: the request in the variant that starts;
        ``of``: its candidate (of an index, the array). ``forced``: it passes reservations."""
        self.count(ask)
        self.reserved.start(ask, of, forced)

    def resume(self, request: Request) -> None:
        """Count a suspended request as running again, under rules that did not count it while suspended."""
        self.reserved.resume(request)
        self._count_again(request)

    def drop(self, candidate: Request, cause: str) -> None:
        """Take back the reservation of a candidate; ``cause``: why, in words."""
        self.version += 1
        self.reserved.drop(candidate, cause)

    def is_reserved(self, candidate: Request) -> bool:
        """True if a candidate had a reservation before this pass and has not used it. An array uses its
        reservation with one index."""
        return candidate.reservation is not None and not self.reserved.has_begun(candidate)

    def reserve(self, candidate: Request) -> None:
        """Reserve the earliest possible start for a candidate."""
        self.version += 1
        self.reserved.reserve(candidate)

    def reserve_pes(self, candidate: Request, pes: tuple[int, ...]) -> None:
        """Reserve these PEs for a candidate until all are free, with its units and its room under limits."""
        free = set(self.room.board(candidate.queue).open().tolist())
        free.update(*(self.site.started[seq].pes for seq in self.reserved.giving_way))
        self.reserved.reserve_pes(candidate, len(free.intersection(pes)))
        self.room.reserve_pes(candidate, pes)
        if candidate.state is State.SUSPENDED:
            self._count_again(candidate)
        else:
            self.count(candidate)
            self.counts_candidates = True
            if self._units is not None:
                self._units.reserved_for = candidate.seq

    def count(self, request: Request) -> None:
        """Count a request as running under the limits, without regard to reservations."""
        self.version += 1
        for rule in self.rules(request.queue):
            if rule.counts_suspended or not request.pes_released:
                rule.add(request)

    def _count_again(self, request: Request) -> None:
        """Count a suspended request under the rules that ceased to count it when it gave back its PEs."""
        self.version += 1
        for rule in self.rules(request.queue) if request.pes_released else ():
            if not rule.counts_suspended:
                rule.add(request)


def empty_gate(site: Site) -> Gate:
    """Return a gate under which nothing runs. It is kept while only submissions happen, because a list of
    submissions asks it for each line."""
    if _EMPTY not in site.memos:
        site.memos[_EMPTY] = Gate(site, running=())
    gate: Gate = site.memos[_EMPTY]
    return gate


def never(site: Site, ask: Request) -> Reason | None:
    """Return the limit that lets a request start in no shift, even if nothing else runs; None: no limit."""
    reason = empty_gate(site).never(ask)
    return reason if reason is not None and reason.code is ReasonCode.NEVER else None


def refusal_of(site: Site, spec: Spec, queue: Queue) -> str | None:
    """Return why a batch queue can never run a request, on its smallest size, in a line; None: it can."""
    wrong = violation(site, spec, queue)
    if wrong is None:
        reason = never(site, Request(site.next_seq, spec, queue.name, State.QUEUED, site.at, site.at))
        wrong = reason.text if reason is not None else None
    return wrong
