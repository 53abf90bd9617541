"""Promised starts (time-ahead.md 1): whoever starts past one that waits does not take what is kept for it.

What runs and what was promised is laid out over time when somebody asks for it (`laid_out`), from what runs
and from the promises of the site; starts of a pass and new promises are added. Who waits for what runs
without a wall limit has a promise without a time; until the time is known, all that start past him hold
together no more than is spare beside what he needs (`untimed`).
"""

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from nqspy.core.gate.promised import PassPromises
from nqspy.core.gate.rule import Claim, Mask, Rule
from nqspy.core.runtime import planned_walls
from nqspy.core.timeline.layout import Layout
from nqspy.core.timeline.lengths import (
    MOMENT,
    hole_wanted,
    length_of,
    passing_walls,
    probable_length,
    promises_times,
)
from nqspy.core.timeline.profile import FOREVER, Amount, Claims
from nqspy.core.timeline.spans import spare_of
from nqspy.core.variants import sizes as mold
from nqspy.model.actions import Reserving, Start
from nqspy.model.columns import Columns, Floats
from nqspy.model.ids import Instant, Seq
from nqspy.model.molded import sized
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Request
from nqspy.model.reservation import Reservation
from nqspy.model.site import Site

_DELAYS, _ENDLESS = reason_kinds(
    ReasonCode.RESERVED,
    would_delay="for its wall time of {asked:time} it would hold what is kept for {request}",
    would_delay_for_ever="it has no wall limit, and would hold what is kept for {request}",
)

Rules = Callable[[str], Sequence[Rule]]
"""Function that returns the rules for the requests of a queue."""
_NEVER = "as things are it can never start"


class Reservations(PassPromises):
    """The promises of one pass. ``early``: whether a start came before its promise; ``leaving``: requests
    that give way in it, ``returning``: suspended ones that go on in it."""

    def __init__(self, site: Site, now: Instant, rules: Rules) -> None:
        super().__init__(site, now)
        self._rules = rules
        self._holes: dict[Seq, Instant] = {}
        self._until: dict[Seq, Instant] = {}
        self._passing: set[Seq] = set()
        self._starts: list[Request] = []
        self._laid_out: Layout | None = None
        self.early = False
        self.leaving: set[Seq] = set()
        self.returning: set[Seq] = set()

    @property
    def is_moving(self) -> bool:
        """Whether something has become free since all promises were last gone through."""
        return self._site.freed > self._site.swept

    def opened_beside(self, queue: str) -> int:
        """How often those of other queues have left to others what was kept for later."""
        if self._laid_out is None:
            return 0
        opened = self._laid_out.opened
        return sum(opened.values()) - opened.get(queue, 0)

    @property
    def _time(self) -> Layout:
        """What is held and kept when: laid out when somebody asks for it."""
        if self._laid_out is None:
            self._laid_out = Layout(
                self._site, self._now, self._claims_of, self._starts, self.leaving, self.returning
            )
        return self._laid_out

    def _claims_of(self, request: Request, resting: bool) -> Iterator[Claim]:
        """Return what the rules count of a request; ``resting``: of a suspended one."""
        for rule in self._rules(request.queue):
            if rule.counts_suspended or not resting:
                yield from rule.claims(request)

    def lay_out(self) -> None:
        """Looks at once at what runs and is promised: the site is about to change."""
        if self._site.reserved:
            self._time  # noqa: B018 - made by being asked for

    # ------------------------------------------------------------ without a time

    def _is_overdue(self, request: Request) -> bool:
        """Whether it was told a time in a queue that promises none, and that is over: from now on nobody
        takes chances at its cost, so that it does not starve."""
        if promises_times(self._site, request.queue) or request.reservation is None:
            return False
        return self._is_told_late(request) or self.is_due(request)

    def _is_told_late(self, request: Request) -> bool:
        told = self.told(request)
        return told is not None and bool(told.late)

    def _waits_for_luck(self, request: Request, former: Reservation) -> bool:
        """Whether those that started past it by chance may still have ended in time."""
        told = former.at is not None and former.at > self._now and not former.late
        return told and not promises_times(self._site, request.queue)

    def _takes_chances(self, amounts: Collection[object]) -> bool:
        """Whether all that is kept of these amounts is kept without a promised time, for nobody overdue."""
        kept = self._time.kept
        found = (seq for seq, held in kept.items() if not held[2].keys().isdisjoint(amounts))
        return not any(self._is_firm(self._site.requests[seq], kept[seq][0]) for seq in found)

    def _is_firm(self, request: Request, begin: int) -> bool:
        if promises_times(self._site, request.queue) or begin in (self._now, FOREVER):
            return True
        return self._is_overdue(request)

    def _passes(self, request: Request, claims: Claims) -> bool:
        """Whether it starts past what is kept though its wall limit reaches into it."""
        queue = self._site.settings.queues.get(request.queue)
        if self._time.spans.has_untimed or queue is None:
            return False
        length, profile = length_of(self._site, request), self._time.profile
        probable = probable_length(self._site, queue, request, length)
        if probable is not None:
            return profile.fits(claims, probable) and self._takes_chances(claims)
        wanted = hole_wanted(queue, request, length)
        if (
            wanted is None
            or (end := self._time.until(request, claims)) >= FOREVER
            or end - self._now < wanted
        ):
            return False
        self._holes[request.seq] = Instant(end)
        return True

    def has_hole(self, request: Request, until: Instant | None) -> bool:
        """Whether a start that was proposed with this end (None: with none) is what was found last
        (`delaying`)."""
        hole = self._holes.get(request.seq)
        return hole is None or (until is not None and until <= hole)

    def is_as_found(self, request: Request, action: Start) -> bool:
        """Whether a start was proposed as it was found last."""
        passing = action.passing or not self._passes_untimed(request)
        return passing and self.has_hole(request, action.until)

    def is_passing(self, seq: Seq) -> bool:
        """Whether one that this pass starts passes those who were promised no time."""
        return seq in self._passing

    def hole_of(self, seq: Seq) -> Instant | None:
        """When one that this pass starts is to be ended as its hole ends; None: it is in none."""
        return self._until.get(seq)

    # ------------------------------------------------------------ promises

    def _passes_untimed(self, request: Request) -> bool:
        """Whether its start passes some who were promised one before, but no time (`untimed`)."""
        told = self.told(request)
        return self._time.spans.is_untimed_before(None if told is None else (told.turn, request.seq))

    def _may_take(self, request: Request) -> Claims:
        """What must be free for it: of what is spare too, unless its time has come; it was promised that
        beside all who were promised a start before."""
        told = self.told(request)
        due = told is not None and told.at is not None and told.at <= self._now
        return self._time.claims(request, not due and self._passes_untimed(request))

    def reserve(self, request: Request) -> None:
        """Promises it the earliest start there is, or the one that it was promised before if that is no
        later."""
        time, former = self._time, None if request.seq in self._begun else request.reservation
        time.spans.lift(request.seq)
        pes = 0
        if request.spec.mold is not None:
            request = self._shaped(request, former)
            pes = request.spec.ask.pes
        if not time.profile.ever(time.claims(request)):
            return self.drop(request, _NEVER)
        at = self._earliest(request, former)
        is_same = former is not None and former.pes == pes
        if is_same and former is not None and former.at is not None and (at is None or at >= former.at):
            return self._keep_late(request, former, at)
        if self._is_shut_by_then(request, at):
            return None
        turn = self._next_turn() if former is None else former.turn
        made = Reservation(at, time.awaited(at), turn=turn, pes=pes)
        if former is None or former.at != at or not is_same:
            self._change(request, made)
            time.opened[request.queue] += former is not None
        return time.put(request, made.at, made.turn)

    def _shaped(self, request: Request, former: Reservation | None) -> Request:
        """A moldable request on the size on which it ends soonest, begun no later than it was promised; where
        there is none it is the size that it was promised, else the least."""
        found = self._soonest(request, former)
        if found is not None:
            return found[0]
        if former is not None and former.pes:
            return sized(request, former.pes)
        return mold.least_of(self._site, request)

    def _soonest(self, request: Request, former: Reservation | None) -> tuple[Request, int] | None:
        def start_of(one: Request) -> int | None:
            at = self._earliest(one, former)
            return None if self._is_shut_by_then(one, at) else at

        latest = None if former is None else former.at
        return mold.soonest(self._site, self._now, request, start_of, latest)

    def soonest(self, request: Request) -> tuple[Request, int] | None:
        """Where a moldable request would end soonest: the size, and its start, no later than promised."""
        time, told = self._time, self.told(request)
        own = time.spans.lift(request.seq)
        found = self._soonest(request, told)
        if own is not None and told is not None:
            time.spans.keep(request.seq, own)
        return found

    def _earliest(self, request: Request, former: Reservation | None) -> Instant | None:
        """The first start there can be. Who passes moves to an earlier one only as what is spare allows."""
        time = self._time
        told, passing = None if former is None else former.at, self._passes_untimed(request)
        found = time.earliest(request, time.claims(request, passing))
        if passing and told is not None and (found is None or found > told):
            found = time.earliest(request, time.claims(request))
            found = None if found is None else max(found, told)
        return None if found is None else Instant(found)

    def _keep_late(self, request: Request, former: Reservation, at: Instant | None) -> None:
        """The promise stands; where it cannot be kept, room is kept for the first start that there can be,
        and it is told why."""
        if self._waits_for_luck(request, former):
            return self._time.put(request, former.at, former.turn)
        told = former.at if former.at is not None else self._now
        is_late = at is None or max(at, self._now) > told + MOMENT
        if is_late and at != former.at and not former.late:
            self._change(request, replace(former, late=self._time.cause_of_delay(former.at)))
        return self._time.put(request, at, former.turn)

    def _is_shut_by_then(self, request: Request, start: int | None) -> bool:
        """Whether a shift will have stopped its queue: when it starts then nobody knows."""
        closing, stop = self._site.closings.get(request.queue), self._site.upcoming_stops.get(request.queue)
        if closing is None:
            return False
        drains = stop is not None and stop.spill == "drain" and stop.at == closing
        return start is None or start + (length_of(self._site, request) if drains else 1) > closing

    def is_too_much(self, request: Request) -> bool:
        """Whether it asks for more than a limit leaves when nobody else has anything."""
        least = mold.least_of(self._site, request)
        claims = (claim for rule in self._rules(request.queue) for claim in rule.claims(least))
        return any(count > most for _, count, most in claims)

    def drop(self, request: Request, cause: str) -> None:
        """It is promised nothing any more."""
        self._time.give_up(request)
        if request.reservation is not None:
            self._change(request, None, cause)

    def look_after(self) -> None:
        """Takes back the promises of those that ask for more PEs than there are any more, and tells that
        those cannot be kept whose queues are stopped when their time has come."""
        if not self._site.reserved:
            return
        for name, those in self._known.of.items():
            if those.widest > (size := self._site.size(name)):
                for request in those.requests:
                    if request.spec.ask.pes > size:
                        self.drop(request, _NEVER)
        for request in self._known.due(self._now):
            queue, told = self._site.settings.queues.get(request.queue), self.told(request)
            if told is not None and not told.late and queue is not None and not queue.started:
                self._change(request, replace(told, late=f"queue {queue.name} is stopped"))

    def start(self, request: Request, of: Request, forced: bool = False) -> None:
        """It is started; ``of``: the array whose index it is, or itself; ``forced``: whatever is kept."""
        hole = None if forced else self._holes.get(request.seq, self._holes.get(of.seq))
        former = of.reservation
        self.early = self.early or (former is not None and (former.at is None or former.at > self._now))
        if self._laid_out is None and not self._site.reserved:
            self._starts.append(request)
            return
        if passing := self._passes_untimed(of):
            self._passing.add(request.seq)
        self._time.give_up(of)
        self._begin(of)
        end = self._now + length_of(self._site, request)
        if hole is not None:
            self._until[request.seq] = hole
            end = min(end, hole)
        self._time.take(request, end, passing)

    def made(self) -> Reserving | None:
        """What this pass promises or takes back, as an action."""
        if not self.changes and not (self.early and self._promised()):
            return None
        return Reserving(self.changes, self._site.freed if self.is_moving else 0, self.causes)

    def is_shared(self, request: Request) -> bool:
        """Whether some limit keeps it back, and each that does counts what is taken from all."""
        rules, least = self._rules(request.queue), mold.least_of(self._site, request)
        found = [rule.shared for rule in rules if rule.refuses(least) is not None]
        return bool(found) and all(found)

    # ------------------------------------------------------------ who would delay whom

    def mask(self, queue: str, columns: Columns) -> Mask | None:
        """Rows of a queue that would hold what is kept for others, as far as PEs tell; None: none would."""
        if not self._is_kept():
            return None
        pes = "pes", self._site.domain_of(queue).name
        if not self._time.profile.has(pes):
            return None
        rows = self._holding(queue, columns, pes)
        known = self._known.of[queue]
        if known.rows:  # who is promised a start is judged by itself
            rows[known.places] = not self.is_moving
            rows[[request.slot for request in self.due(queue)]] = False
        return rows

    def _holding(self, queue: str, columns: Columns, pes: Amount) -> Mask:
        """Who asks for more PEs than are free for as long as he runs."""
        profile, amounts = self._time.profile, [pes]
        if self._time.spans.has_untimed and profile.has(spare_of(pes)):
            amounts.append(spare_of(pes))
        rows: Mask = columns.pes > min(profile.free(each, self._now) for each in amounts)
        open_ = np.flatnonzero(~rows & (columns.pes > min(map(profile.least, amounts))))
        if len(open_):
            ends = self._now + self._walls(queue, columns, pes)[open_]
            least = np.minimum.reduce([profile.least_until(each, ends) for each in amounts])
            rows[open_] = columns.pes[open_] > least
        return rows

    def _walls(self, queue: str, columns: Columns, pes: Amount) -> Floats:
        """How long the rows of a queue must find room at the least."""
        if self._time.spans.has_untimed:
            return planned_walls(self._site.settings, queue, columns.wall)
        return passing_walls(self._site, queue, columns, lambda: self._takes_chances([pes]))

    def _is_kept(self) -> bool:
        return bool(self._site.reserved or (self._laid_out is not None and self._laid_out.kept))

    def delaying(self, request: Request) -> Reason | None:
        """Who is promised what it would hold; None where it delays nobody, or there are too few PEs for it in
        any case."""
        if not self._is_kept():
            return None
        time, told = self._time, self.told(request)
        if self._site.held_by(request) > time.spans.idle.get(self._site.domain_of(request.queue).name, 0):
            return None
        claims = self._may_take(request)
        own = time.spans.lift(request.seq)
        self._holes.pop(request.seq, None)
        fits = time.fits(request, claims) or self._passes(request, claims)
        if own is not None and told is not None:
            time.spans.keep(request.seq, own)
        return None if fits else self._in_the_way(request)

    def _in_the_way(self, request: Request) -> Reason | None:
        first = self._time.spans.first(request.seq)
        if first is None:
            return None
        at, seq = first
        id, until = self._site.id_of(seq), None if at >= FOREVER else Instant(at)
        length = length_of(self._site, request)
        if length >= FOREVER:
            return _ENDLESS("scheduler", id, until=until)
        return _DELAYS("scheduler", length, id, until=until)
