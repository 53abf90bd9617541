"""The rule `reserved`: a request may not delay a start that is reserved for another (time-ahead.md 1).

What runs and what is reserved is put on a timeline when it is first needed (`timeline.timeline`). The pass
adds its starts, and the reservations that it makes, moves or takes back; the action `Reserving` holds these.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from nqspy.core import resource_health
from nqspy.core.classes import is_served
from nqspy.core.gate.rule import Claim, Mask, Rule
from nqspy.core.gate.standing import StandingReservations
from nqspy.core.placement.placements import size_of
from nqspy.core.runtime import planned_walls
from nqspy.core.timeline.lengths import (
    guarantees_times,
    hole_wanted,
    length_of,
    passing_walls,
    probable_length,
)
from nqspy.core.timeline.profile import FOREVER, Amount, Claims
from nqspy.core.timeline.spans import headroom_of
from nqspy.core.timeline.timeline import Timeline
from nqspy.core.variants import sizes
from nqspy.model.actions import Reserving, Start
from nqspy.model.columns import Columns
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import MOMENT, Request, Reservation
from nqspy.model.site import Site
from nqspy.model.specs import sized

_DELAYS, _ENDLESS = reason_kinds(
    ReasonCode.RESERVED,
    would_delay="its run time of up to {asked:time} would delay the reserved start of {request}",
    would_delay_for_ever="it has no wall limit and would delay the reserved start of {request}",
)

Rules = Callable[[str], Sequence[Rule]]
"""Function that returns the rules for the requests of a queue."""
_NEVER = "it can never start with the present settings"


class Reservations(StandingReservations):
    """The reservations of one pass. ``early``: True if a request started before its reserved time;
    ``leaving``: requests that give way in it, ``returning``: suspended requests that it resumes. ``passing``:
    starts past a reservation without a time; ``until``: when each start that fills a hole is ended."""

    def __init__(self, site: Site, now: Instant, rules: Rules) -> None:
        super().__init__(site, now)
        self._rules = rules
        self._started: list[Request] = []
        self._known_timeline: Timeline | None = None
        self._reserved_pes: list[tuple[Request, int]] = []
        self._holes: dict[Seq, Instant] = {}
        self.until: dict[Seq, Instant] = {}
        self.passing: set[Seq] = set()
        self.early = False
        self.leaving: set[Seq] = set()
        self.returning: set[Seq] = set()

    @property
    def _timeline(self) -> Timeline:
        """Timeline of amounts held and reserved; built at first use."""
        if self._known_timeline is None:
            parts = self._started, self.leaving, self.returning
            self._known_timeline = Timeline(self._site, self._now, self._claims_of, *parts)
            for reserved in self._reserved_pes:
                self._known_timeline.reserve_pes(*reserved)
        return self._known_timeline

    @property
    def giving_way(self) -> Collection[Seq]:
        """Running requests that give way: the timeline counts their PEs as free."""
        return self.leaving if self._known_timeline is None else self._known_timeline.leaving

    def _claims_of(self, request: Request, suspended: bool) -> Iterator[Claim]:
        """Yield the amounts that rules count for a request; ``suspended``: only those of a suspended one."""
        for rule in self._rules(request.queue):
            if rule.counts_suspended or not suspended:
                yield from rule.claims(request)

    def build_timeline(self) -> None:
        """Build the timeline now if there are reservations, because the site will change."""
        if self._site.reserved:
            self._timeline  # noqa: B018 - made by being asked for

    @property
    def is_moving(self) -> bool:
        """True if something has become free since all reservations were last examined."""
        return self._site.freed > self._site.swept

    def opened_beside(self, queue: str) -> int:
        """Return how often requests of other queues gave up, or moved, a later reservation in this pass."""
        if self._known_timeline is None:
            return 0
        return self._known_timeline.opened.total() - self._known_timeline.opened[queue]

    # ------------------------------------------------------------ which requests delay a reservation

    def _has_holdings(self) -> bool:
        """True if something is held for a reservation, made before or in this pass."""
        timeline = self._known_timeline
        return bool(self._site.reserved or (timeline is not None and timeline.holdings))

    def delaying(self, request: Request) -> Reason | None:
        """Return a reason if a request, started now, would delay a reserved start of another; None: it would
        not, or it lacks free PEs anyway."""
        if not self._has_holdings():
            return None
        timeline, domain = self._timeline, self._site.domain_of(request.queue).name
        if self._site.held_by(request) > timeline.spans.idle.get(domain, 0):
            return None
        own_start = self.reservation_of(request)
        is_due = own_start is not None and own_start.at is not None and own_start.at <= self._now
        # Headroom is needed too, unless its time has come: that was reserved in addition to all older ones.
        may_pass = is_due and _is_for(own_start, request)
        claims = timeline.claims(request, not may_pass and self._passes_untimed(request))
        own = timeline.spans.lift(request.seq)
        self._holes.pop(request.seq, None)
        fits = timeline.fits(request, claims, own_start) or self._passes(request, claims)
        if own is not None:
            timeline.spans.add(request.seq, own)
        first = None if fits else timeline.spans.first(request.seq, claims)
        if first is None:
            return None
        at, seq = first
        id, until = self._site.id_of(seq), None if at >= FOREVER else Instant(at)
        length = length_of(self._site, request)
        if length >= FOREVER:
            return _ENDLESS("scheduler", id, until=until)
        return _DELAYS("scheduler", length, id, until=until)

    def _passes_untimed(self, request: Request) -> bool:
        """True if a request, by starting, passes an older reservation without a time."""
        reservation = self.reservation_of(request)
        return self._timeline.spans.is_untimed_before(
            None if reservation is None else (reservation.turn, request.seq)
        )

    def mask(self, queue: str, columns: Columns) -> Mask | None:
        """Return the rows of a queue that would delay a reservation by the PEs that they ask for; None: no
        row. A row with a reservation of its own is examined singly: it counts here only while nothing has
        become free, and until its time has come."""
        if not self._has_holdings():
            return None
        pes = "pes", self._site.domain_of(queue).name
        if not self._timeline.profile.has(pes):
            return None
        rows = self._too_wide(queue, columns, pes)
        if own := self.rows(queue):
            rows[own] = not self.is_moving
            rows[[each.slot for each in self._all_due if each.queue == queue and each.slot >= 0]] = False
        return rows

    def _too_wide(self, queue: str, columns: Columns, pes: Amount) -> Mask:
        """Return the rows that ask for more PEs than stay free for as long as they run."""
        profile, amounts = self._timeline.profile, [pes]
        if self._timeline.spans.has_untimed and profile.has(headroom_of(pes)):
            amounts.append(headroom_of(pes))
        rows: Mask = columns.pes > min(profile.free(each, self._now) for each in amounts)
        unsure = np.flatnonzero(~rows & (columns.pes > min(map(profile.least, amounts))))
        if len(unsure):
            if self._timeline.spans.has_untimed:
                walls = planned_walls(self._site.settings, queue, columns.wall)
            else:
                walls = passing_walls(self._site, queue, columns, lambda: self._may_take_chances([pes]))
            ends = self._now + walls[unsure]
            least = np.minimum.reduce([profile.least_until(each, ends) for each in amounts])
            rows[unsure] = columns.pes[unsure] > least
        return rows

    # ------------------------------------------------------------ by chance, by contract

    def _passes(self, request: Request, claims: Claims) -> bool:
        """True if a request may start although its wall limit runs into a reservation, as it probably ends
        before (``backfill=probable``) or is ended before (`Spec.contract`)."""
        queue = self._site.settings.queues.get(request.queue)
        if self._timeline.spans.has_untimed or queue is None:
            return False
        length = length_of(self._site, request)
        probable = probable_length(self._site, queue, request, length)
        if probable is not None:
            return self._timeline.profile.fits(claims, probable) and self._may_take_chances(claims)
        wanted = hole_wanted(queue, request, length)
        if wanted is None:
            return False
        end = self._timeline.until(request, claims)
        if end >= FOREVER or end - self._now < wanted:
            return False
        self._holes[request.seq] = Instant(end)
        return True

    def _may_take_chances(self, amounts: Collection[object]) -> bool:
        """True if a request that probably ends in time may start past the reservations of these amounts: none
        of them is guaranteed, for now, late or without a time."""
        for seq, held in self._timeline.holdings.items():
            if held.claims.keys().isdisjoint(amounts):
                continue
            # No chance is taken at the cost of a request that could start now, so that it cannot starve, or
            # with a time that is not known or over.
            request = self._site.requests[seq]
            if guarantees_times(self._site, request.queue) or held.begin in (self._now, FOREVER):
                return False
            reservation = self.reservation_of(request)
            is_late = reservation is not None and bool(reservation.late)
            if request.reservation is not None and (is_late or self.is_due(request)):
                return False
        return True

    def is_as_found(self, request: Request, action: Start) -> bool:
        """True if a start agrees with what `delaying` found last for its request: it passes a reservation
        without a time only if allowed, and ends within the hole that it fills."""
        hole = self._holes.get(request.seq)
        fits = hole is None or (action.until is not None and action.until <= hole)
        return fits and (action.passing or not self._passes_untimed(request))

    # ------------------------------------------------------------ making and keeping reservations

    def reserve(self, request: Request) -> None:
        """Reserve the earliest start for a request, unless the reservation that it has is no later. A request
        that can never start loses its reservation."""
        timeline, former = self._timeline, None if request.seq in self._begun else request.reservation
        timeline.spans.lift(request.seq)
        pes = 0
        if request.spec.mold is not None:
            # On the size on which it ends soonest and starts no later than reserved, else as it is reserved.
            best = self._soonest(request, former)
            if best is not None:
                request = best[0]
            elif former is not None and former.pes:
                request = sized(request, former.pes)
            else:
                request = sizes.least_of(self._site, request)
            pes = request.spec.ask.pes
        if not timeline.profile.ever(timeline.claims(request)):
            return self.drop(request, _NEVER)
        at = self._earliest(request, former)
        is_same = former is not None and former.pes == pes
        if is_same and former is not None and former.at is not None and (at is None or at >= former.at):
            return self._keep(request, former, at)
        if self._is_stopped_by(request, at):
            return None
        turn = self._next_turn() if former is None else former.turn
        if former is None or former.at != at or not is_same:
            self._change(request, Reservation(at, timeline.awaited(at), turn=turn, pes=pes))
            timeline.opened[request.queue] += former is not None
        return timeline.put(request, at, turn)

    def _soonest(self, request: Request, former: Reservation | None) -> tuple[Request, int] | None:
        def start_of(one: Request) -> int | None:
            at = self._earliest(one, former)
            return None if self._is_stopped_by(one, at) else at

        latest = None if former is None else former.at
        return sizes.soonest(self._site, self._now, request, start_of, latest)

    def soonest(self, request: Request) -> tuple[Request, int] | None:
        """Return a moldable request on the size on which it ends soonest, and its start, not later than its
        reserved one; None: no start is known."""
        spans = self._timeline.spans
        own = spans.lift(request.seq)
        found = self._soonest(request, self.reservation_of(request))
        if own is not None:
            spans.add(request.seq, own)
        return found

    def _earliest(self, request: Request, former: Reservation | None) -> Instant | None:
        """Return the first possible start; None: its time is unknown. A request that passes an older
        reservation without a time moves to an earlier start or another size only if enough headroom is left;
        without it a start is possible from its reserved time on."""
        timeline, at = self._timeline, None if former is None else former.at
        passing = self._passes_untimed(request)
        found = timeline.earliest(request, timeline.claims(request, passing), former)
        if passing and at is not None and _is_for(former, request) and (found is None or found > at):
            found = timeline.earliest(request, timeline.claims(request), former, after=at)
        return None if found is None else Instant(found)

    def _keep(self, request: Request, former: Reservation, at: Instant | None) -> None:
        """Keep a reservation at its time, or reserve the first possible start and record what delays it."""
        is_ahead = former.at is not None and former.at > self._now and not former.late
        if is_ahead and not guarantees_times(self._site, request.queue):
            # The requests that started past it by chance may still end in time.
            return self._timeline.put(request, former.at, former.turn)
        reserved = former.at if former.at is not None else self._now
        is_late = at is None or max(at, self._now) > reserved + MOMENT
        if is_late and at != former.at and not former.late:
            self._change(request, replace(former, late=self._timeline.cause_of_delay(request, former.at)))
        return self._timeline.put(request, at, former.turn)

    def _is_stopped_by(self, request: Request, start: int | None) -> bool:
        """True if a shift will have stopped a request's queue by that start, so the start is unknown."""
        closing, stop = self._site.closings.get(request.queue), self._site.upcoming_stops.get(request.queue)
        if closing is None:
            return False
        drains = stop is not None and stop.spill == "drain" and stop.at == closing
        return start is None or start + (length_of(self._site, request) if drains else 1) > closing

    def is_too_much(self, request: Request) -> bool:
        """True if a request asks for more than a rule allows when nothing else runs."""
        least = sizes.least_of(self._site, request)
        return any(count > most for _, count, most in self._claims_of(least, False))

    def is_shared(self, request: Request) -> bool:
        """True if rules refuse a request, and all of these count something shared, such as PEs or memory."""
        least = sizes.least_of(self._site, request)
        refusing = [rule for rule in self._rules(request.queue) if rule.refuses(least) is not None]
        return bool(refusing) and all(rule.shared for rule in refusing)

    # ------------------------------------------------------------ dropping reservations, starting requests

    def drop(self, request: Request, cause: str) -> None:
        self._timeline.give_up(request)
        if request.reservation is not None:
            self._change(request, None, cause)
            self._gave_up = True

    def review(self) -> None:
        """Take back reservations of more PEs than there are any more, of requests that need a broken
        resource, and of class queues. Record reservations of stopped queues as late if their time has come.
        """
        if not self._site.reserved:
            return
        site, broken = self._site, resource_health.broken(self._site)
        found = self._as_found
        for name, requests in () if found.sound else found.by_queue.items():
            size, by_class = size_of(site, name), is_served(site, name)
            for request in requests:
                if request.spec.ask.pes > size:
                    self.drop(request, _NEVER)
                elif by_class:
                    self.drop(request, f"queue {name} starts requests by class and reserves no starts")
                elif broken and (why := resource_health.why_blocked(site, request)) is not None:
                    self.drop(request, why.text)
        found.sound = not self.changes
        self._gave_up = False  # this pass has not examined the others yet
        for name in {request.queue for request in self._all_due} & site.settings.queues.keys():
            if not site.settings.queues[name].started:
                self.note_late(name, f"queue {name} is stopped")

    def note_late(self, queue: str, cause: str) -> None:
        """Record the due reservations of a queue as late, for this cause."""
        for request in self.due(queue):
            reservation = self.reservation_of(request)
            if reservation is not None and not reservation.late:
                self._change(request, replace(reservation, late=cause))

    def start(self, request: Request, of: Request, forced: bool = False) -> None:
        """Put a request that starts on the timeline and use up its reservation. ``of``: the array of an
        index, else the request; ``forced``: reservations do not matter."""
        hole = None if forced else self._holes.get(request.seq, self._holes.get(of.seq))
        former = of.reservation
        self.early = self.early or (former is not None and (former.at is None or former.at > self._now))
        if self._known_timeline is None and not self._site.reserved:
            self._started.append(request)
            return
        if passing := self._passes_untimed(of):
            self.passing.add(request.seq)
        self._timeline.give_up(of)
        self._begin(of)
        end = self._now + length_of(self._site, request)
        if hole is not None:
            self.until[request.seq] = hole
            end = min(end, hole)
        timeline = self._timeline
        fits = timeline.profile.fits(timeline.claims(request), end - self._now)
        timeline.start(request, end, passing)
        if not fits:  # it is forced, or a block was cleared for it: others may have to be kept elsewhere
            others = [self._site.requests[seq] for seq in timeline.holdings]
            timeline.place_over(replace(each, reservation=self.reservation_of(each)) for each in others)

    def resume(self, request: Request) -> None:
        self.returning.add(request.seq)
        if self._known_timeline is not None and request.pes_released:
            self._known_timeline.resume(request)

    def reserve_pes(self, candidate: Request, pes: int) -> None:
        """Hold ``pes`` PEs, free or about to be, on the timeline for a waiting candidate."""
        self._reserved_pes.append((candidate, pes))
        if self._known_timeline is not None:
            self._known_timeline.reserve_pes(candidate, pes)

    def made_before_start(self) -> Reserving | None:
        """Return the reservation changes so far as an action, if they freed something; None: they did not."""
        return self._flush(0) if self.eased else None

    def made(self) -> Reserving | None:
        """Return the reservations made, changed or taken back since the last such action, as an action; None:
        nothing changed. Its ``as_of`` (`Site.swept`) is `Site.freed` if all reservations were examined, less
        if the next pass is to examine them again."""
        freed, goes_on = self._site.freed, self._site.swept == self._site.freed - 1
        was_used = self.is_moving and (self.changes or self.early or goes_on) and self._any_reserved()
        if not self.pending and not was_used:
            return None
        return self._flush(freed - self.go_on if self.is_moving else 0)

    def _flush(self, as_of: int) -> Reserving:
        made, self.pending, self.eased = self.pending, {}, set()
        return Reserving(made, as_of, {seq: why for seq, why in self.causes.items() if seq in made})


def _is_for(reservation: Reservation | None, ask: Request) -> bool:
    """True if a reservation is for the size on which a request asks to start."""
    return reservation is not None and reservation.pes in (0, ask.spec.ask.pes)
