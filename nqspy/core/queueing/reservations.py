"""Promised starts (time-ahead.md 1): what runs, and what was promised, laid out over time, so that whoever
starts past one that waits does not take what is kept for it.

A profile is made when somebody asks for it, from what runs and from the promises of the site; starts of a
pass and new promises are added. A request is reckoned to run as long as it may (`runtime.planned_wall`). What
runs without a wall limit has no known end: who waits for that has a promise without a time, and until the
time is known nothing starts that would hold what he needs besides.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from nqspy.core.profile import FOREVER, Claims, Profile, held_up_by
from nqspy.core.queueing.expected_ends import end_of, length_of, planned_end
from nqspy.core.queueing.limit_rules import LimitRule, Mask
from nqspy.core.queueing.passing import hole_wanted, passing_walls, probable_length, promises_times
from nqspy.core.queueing.untimed import Untimed
from nqspy.model.actions import Reserving
from nqspy.model.columns import Columns
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Request, State
from nqspy.model.reservation import Reservation
from nqspy.model.site import Site

_DELAYS, _ENDLESS = reason_kinds(
    ReasonCode.RESERVED,
    would_delay="for its wall time of {asked:time} it would hold what is kept for {request}",
    would_delay_for_ever="it has no wall limit, and would hold what is kept for {request}",
)

MISSED = 60_000
"""ms after its promised time from which on a start is told to be late though nothing held it up."""
SHOWN = 3
"""So many are named as those that hold up another."""
MOMENT = 1_000
"""What starting may take, ms: limits count from then. So much more is no delay that anybody is told of."""

_Held = tuple[int, int, Claims]
"""From when until when somebody has which amounts."""


class Reservations:
    """The promises of one pass. ``rules``: what holds for the requests of a queue; ``changes``: promises made
    or moved in this pass, ``causes`` why some are taken back, ``missed``: those of starts that come too late,
    ``early``: whether a start came before its promise; ``leaving``: requests that give way in it."""

    def __init__(self, site: Site, now: Instant, rules: Callable[[str], Sequence[LimitRule]]) -> None:
        self._site, self._now, self._rules = site, now, rules
        self._kept: dict[Seq, _Held] = {}
        self._holes: dict[Seq, Instant] = {}
        self._until: dict[Seq, Instant] = {}
        self._starts: list[Request] = []
        self._begun: set[Seq] = set()
        self._untimed = Untimed()
        self._idle: dict[str, int] = {}
        self.changes: dict[Seq, Reservation | None] = {}
        self.missed: dict[Seq, Reservation | None] = {}
        self.causes: dict[Seq, str] = {}
        self.early = False
        self.leaving: set[Seq] = set()

    @property
    def is_moving(self) -> bool:
        """Whether something has become free since all promises were last gone through."""
        return self._site.freed > self._site.swept

    def count(self, queue: str) -> int:
        """How many of a queue have a promise."""
        requests = self._site.requests
        return sum(requests[seq].queue == queue for seq in self._promised())

    def _promised(self) -> dict[Seq, Reservation]:
        """Who has a promise, with those of this pass."""
        requests, gone = self._site.requests, self._begun
        kept = {seq: requests[seq].reservation for seq in self._site.reserved if seq not in gone}
        return {seq: each for seq, each in (kept | self.changes).items() if each is not None}

    # ------------------------------------------------------------ laid out over time

    @cached_property
    def _profile(self) -> Profile:
        profile, domains = Profile(self._now), self._site.domains()
        for name in domains:
            profile.provide(("pes", name), self._site.board(name).slots())
        ends = [(end_of(self._site, self._now, request), request) for request in self._site.started.values()]
        self._running = [(end, request.seq) for end, request in ends if request.pes]
        going = [(end, request) for end, request in ends if request.state is not State.EXITING]
        going += [(self._now + length_of(self._site, request), request) for request in self._starts]
        taken = [(self._now, min(end, FOREVER + 1), self._claims(each, profile)) for end, each in going]
        self._put_promised(profile, taken)
        return profile

    def _put_promised(self, profile: Profile, taken: Iterable[_Held]) -> None:
        """Those whose time is to come, beside what is taken; those whose time is over, those told none."""
        requests = [self._site.requests[seq] for seq in self._site.reserved]
        over = [each for each in requests if self._is_over(each)]
        timed = [each for each in requests if self.time_of(each) < FOREVER and not self._is_over(each)]
        self._kept = {each.seq: self._held(profile, each, self.time_of(each)) for each in timed}
        profile.begin([*taken, *self._kept.values()])  # of these promises none begins now
        self._idle = {name: profile.free(("pes", name), self._now) for name in self._site.domains()}
        for request in sorted(over, key=lambda each: (self.time_of(each), each.seq)):
            self._put_overdue(profile, request)
        for request in requests:
            if self.time_of(request) == FOREVER:
                self._put(profile, request, request.reservation)

    def lay_out(self) -> None:
        """Looks at once at what runs and is promised: the site is about to change."""
        if self._site.reserved:
            self._profile  # noqa: B018 - made by being asked for

    def _take(self, profile: Profile, request: Request, until: int) -> None:
        """It runs from now to then."""
        claims = self._claims(request, profile)
        profile.hold(self._now, min(until, FOREVER + 1), claims)
        domain = self._site.domain_of(request.queue).name
        self._idle[domain] = self._idle.get(domain, 0) - claims.get(("pes", domain), 0)

    def _claims(self, request: Request, profile: Profile) -> Claims:
        """What a request holds while it runs; the profile learns how much of it there is."""
        claims: dict[object, int] = {}
        resting = request.pes_released or request.seq in self.leaving
        if not resting:
            claims["pes", self._site.domain_of(request.queue).name] = request.spec.ask.pes
        for rule in self._rules(request.queue):
            if resting and not rule.shared:
                continue
            for amount, count, most in rule.claims(request):
                profile.provide(amount, most)
                claims[amount] = claims.get(amount, 0) + count
        return claims

    def _put(self, profile: Profile, request: Request, kept: Reservation | None) -> None:
        if kept is not None:
            begin = FOREVER if kept.at is None else kept.at
            self._keep(profile, request.seq, self._held(profile, request, begin))

    def _held(self, profile: Profile, request: Request, begin: int) -> _Held:
        begin = max(begin, self._now)
        return begin, min(begin + length_of(self._site, request), FOREVER + 1), self._claims(request, profile)

    def _keep(self, profile: Profile, seq: Seq, held: _Held) -> None:
        self._kept[seq] = held
        if held[0] < FOREVER:
            return profile.hold(*held)
        return self._untimed.add(seq, held[2])

    # ------------------------------------------------------------ without a time

    def _is_over(self, request: Request) -> bool:
        """Whether the time that it was told is over or cannot be kept: were each of several kept room from
        now on, none could start beside the others."""
        told = request.reservation
        return told is not None and told.at is not None and (bool(told.late) or told.at <= self._now)

    def _is_overdue(self, request: Request) -> bool:
        """Whether it was told a time in a queue that promises none, and that is over: from now on nobody
        takes chances at its cost, so that it does not starve."""
        if promises_times(self._site, request.queue) or request.reservation is None:
            return False
        return self._is_told_late(request) or self.is_due(request)

    def _is_told_late(self, request: Request) -> bool:
        told = self.changes.get(request.seq, request.reservation)
        return told is not None and bool(told.late)

    def _put_overdue(self, profile: Profile, request: Request) -> None:
        """At the first start there can be beside all others: they were promised theirs with it in mind."""
        found = profile.earliest(self._claims(request, profile), length_of(self._site, request))
        self._put(profile, request, Reservation(None if found is None else Instant(found)))

    def _waits_for_luck(self, request: Request, former: Reservation) -> bool:
        """Whether those that started past it by chance may still have ended in time."""
        told = former.at is not None and former.at > self._now and not former.late
        return told and not promises_times(self._site, request.queue)

    def _takes_chances(self, amounts: Collection[object]) -> bool:
        """Whether all that is kept of these amounts is kept without a promised time, for nobody overdue."""
        kept = (seq for seq, held in self._kept.items() if not held[2].keys().isdisjoint(amounts))
        return not any(self._is_firm(self._site.requests[seq], self._kept[seq][0]) for seq in kept)

    def _is_firm(self, request: Request, begin: int) -> bool:
        if promises_times(self._site, request.queue) or begin in (self._now, FOREVER):
            return True
        return self._is_overdue(request)

    def _passes(self, request: Request, claims: Claims) -> bool:
        """Whether it starts past what is kept though its wall limit reaches into it."""
        queue = self._site.settings.queues.get(request.queue)
        if self._untimed.count or queue is None:
            return False
        length, profile = length_of(self._site, request), self._profile
        probable = probable_length(self._site, queue, request, length)
        if probable is not None:
            return profile.fits(claims, probable) and self._takes_chances(claims)
        wanted = hole_wanted(queue, request, length)
        if wanted is None or (end := profile.until(claims)) >= FOREVER or end - self._now < wanted:
            return False
        self._holes[request.seq] = Instant(end)
        return True

    def has_hole(self, request: Request, until: Instant | None) -> bool:
        """Whether a start that was proposed with this end (None: with none) is what was found last
        (`delaying`)."""
        hole = self._holes.get(request.seq)
        return hole is None or (until is not None and until <= hole)

    def hole_of(self, seq: Seq) -> Instant | None:
        """When one that this pass starts is to be ended as its hole ends; None: it is in none."""
        return self._until.get(seq)

    # ------------------------------------------------------------ promises

    def lift(self, request: Request) -> _Held | None:
        """What is kept for it is free, as far as it is concerned itself; answers what that was."""
        profile = self._profile
        held = self._kept.pop(request.seq, None)
        if held is not None and held[0] < FOREVER:
            profile.release(*held)
        elif held is not None:
            self._untimed.remove(request.seq)
        return held

    def _goes_first(self, request: Request) -> bool:
        """Whether it waits for none of those who were promised no time (`untimed`)."""
        own = self._kept.get(request.seq)
        return own is not None and (own[0] < FOREVER or self._untimed.is_first(request.seq))

    def reserve(self, request: Request) -> None:
        """Promises it the earliest start there is, or the one that it was promised before if that is no
        later."""
        profile, first = self._profile, self._goes_first(request)
        self.lift(request)
        former = None if request.seq in self._begun else request.reservation
        claims, length = self._claims(request, profile), length_of(self._site, request)
        if not profile.ever(claims):
            return self.drop(request, "as things are it can never start")
        found = profile.earliest(claims, length)
        if length >= FOREVER and not first and not self._untimed.fits(profile, claims):
            found = None
        at = None if found is None else Instant(found)
        if former is not None and former.at is not None and (at is None or at >= former.at):
            return self._keep_late(request, former, at)
        if self._is_shut_by_then(request, found):
            return None
        made = Reservation(at, self._awaited(at))
        if former is None or former.at != at:
            self.changes[request.seq] = made
        return self._put(profile, request, made)

    def _keep_late(self, request: Request, former: Reservation, at: Instant | None) -> None:
        """The promise stands; where it cannot be kept, room is kept for the first start that there can be,
        and it is told why."""
        if self._waits_for_luck(request, former):
            return self._put(self._profile, request, former)
        told = former.at if former.at is not None else self._now
        is_late = at is None or at > told + MOMENT or self._now >= told
        if is_late and at != former.at and not former.late:
            self.changes[request.seq] = replace(former, late=self._cause(former.at))
        return self._put(self._profile, request, Reservation(at))

    def _cause(self, promised: Instant | None) -> str:
        """Why a promise cannot be kept, in words."""
        over = [r for r in self._site.started.values() if planned_end(self._site, self._now, r) <= self._now]
        if over:
            return f"{self._ids(r.seq for r in over)} still running beyond what was planned"
        late = [seq for end, seq in self._running if promised is not None and end > promised]
        if late:
            return f"what it needs is held by {self._ids(late)}"
        away = self._site.offline()
        return f"PE {away[0]} is offline" if away else "limits, settings or the machine were changed"

    def _ids(self, seqs: Iterable[Seq]) -> str:
        return ", ".join([self._site.id_of(seq) for seq in seqs][:SHOWN])

    def _is_shut_by_then(self, request: Request, start: int | None) -> bool:
        """Whether a shift will have stopped its queue: when it starts then nobody knows."""
        closing, stop = self._site.closings.get(request.queue), self._site.upcoming_stops.get(request.queue)
        if closing is None:
            return False
        drains = stop is not None and stop.spill == "drain" and stop.at == closing
        return start is None or start + (length_of(self._site, request) if drains else 1) > closing

    def _awaited(self, at: Instant | None) -> tuple[Seq, ...]:
        if at is None:
            return tuple(Seq(who) for end, who in self._running if end >= FOREVER)[:SHOWN]
        return tuple(Seq(who) for who in held_up_by(self._running, at, SHOWN))

    def is_too_much(self, request: Request) -> bool:
        """Whether it asks for more than a limit leaves when nobody else has anything."""
        claims = (claim for rule in self._rules(request.queue) for claim in rule.claims(request))
        return any(count > most for _, count, most in claims)

    def drop(self, request: Request, cause: str) -> None:
        """It is promised nothing any more."""
        self.lift(request)
        if request.reservation is not None:
            self.changes[request.seq], self.causes[request.seq] = None, cause

    def start(self, request: Request, of: Request, forced: bool = False) -> None:
        """It is started; ``of``: the array whose index it is, or itself; ``forced``: whatever is kept."""
        hole = None if forced else self._holes.get(request.seq, self._holes.get(of.seq))
        former = of.reservation
        self._tell_missed(of)
        self.early = self.early or (former is not None and (former.at is None or former.at > self._now))
        self.changes.pop(of.seq, None)
        self._begun.add(of.seq)
        if "_profile" not in self.__dict__:
            self._starts.append(request)
            return
        first = self._goes_first(of)
        self.lift(of)
        end = FOREVER + 1 if self._untimed.count and not first else self._now + length_of(self._site, request)
        if hole is not None:
            self._until[request.seq] = hole
            end = min(end, hole)
        self._take(self._profile, request, end)

    def _tell_missed(self, request: Request) -> None:
        """Whoever could have started in time, and does only now."""
        former, due = request.reservation, self.time_of(request)
        if former is None or former.late or not promises_times(self._site, request.queue):
            return
        if self._now - due >= MISSED:
            self.missed[request.seq] = replace(
                former, late="nobody looked in time: nqsd was away, or the clock set"
            )

    def told_missed(self) -> Reserving | None:
        """Why some of those that this pass starts do so too late, as an action before their starts."""
        return Reserving(self.missed, 0, {}) if self.missed else None

    def made(self) -> Reserving | None:
        """What this pass promises or takes back, as an action."""
        if not self.changes and not (self.early and self._promised()):
            return None
        return Reserving(self.changes, self._site.freed if self.is_moving else 0, self.causes)

    def rows(self, queue: str) -> list[int]:
        """Rows of a queue's columns that have a promise from an earlier pass."""
        requests = (self._site.requests[seq] for seq in self._site.reserved)
        return [request.slot for request in requests if request.queue == queue and request.slot >= 0]

    def for_now(self, queue: str) -> list[int]:
        """Rows of a queue to which this pass promised to start at once, and that it has not started."""
        made = (seq for seq, each in self.changes.items() if each is not None and each.at == self._now)
        requests = (self._site.requests[seq] for seq in made)
        return [request.slot for request in requests if request.queue == queue and request.slot >= 0]

    def is_shared(self, request: Request) -> bool:
        """Whether the first limit that keeps it back counts what is taken from all."""
        rules = self._rules(request.queue)
        return next((rule.shared for rule in rules if rule.reason(request) is not None), False)

    def next_at(self) -> Instant | None:
        """When the next promised start is due."""
        times = (each.at for each in self._promised().values())
        return min((at for at in times if at is not None and at > self._now), default=None)

    def time_of(self, request: Request) -> int:
        """When its promised start is; `FOREVER` where that is not known."""
        kept = request.reservation
        return FOREVER if kept is None or kept.at is None else kept.at

    def is_due(self, request: Request) -> bool:
        """Whether its promised time has come."""
        return self.time_of(request) <= self._now

    # ------------------------------------------------------------ who would delay whom

    def mask(self, queue: str, columns: Columns) -> Mask | None:
        """Rows of a queue that would hold what is kept for others, as far as PEs tell; None: none would."""
        if not self._is_kept():
            return None
        profile, pes = self._profile, ("pes", self._site.domain_of(queue).name)
        ends = self._now + passing_walls(self._site, queue, columns, lambda: self._takes_chances([pes]))
        if self._untimed.count:
            ends[:] = np.inf
        least = profile.least_until(pes, ends)
        if least is None:
            return None
        if self._untimed.count:
            least = np.minimum(least, self._untimed.left(profile, pes))
        rows: Mask = columns.pes > least
        for row in self.rows(queue):  # who is promised a start is judged by itself
            rows[row] = not (self.is_moving or self.is_due(columns.request(row)))
        return rows

    def _is_kept(self) -> bool:
        return bool(self._site.reserved or self._kept)

    def delaying(self, request: Request) -> Reason | None:
        """Who is promised what it would hold; None where it delays nobody, or there are too few PEs for it in
        any case."""
        if not self._is_kept():
            return None
        profile, first = self._profile, self._goes_first(request)
        if request.spec.ask.pes > self._idle[self._site.domain_of(request.queue).name]:
            return None
        own = self.lift(request)
        claims, beside = self._claims(request, profile), self._untimed.count > 0 and not first
        length = FOREVER + 1 if beside else length_of(self._site, request)
        self._holes.pop(request.seq, None)
        fits = profile.fits(claims, length) and (not beside or self._untimed.fits(profile, claims))
        fits = fits or self._passes(request, claims)
        if own is not None:
            self._keep(profile, request.seq, own)
        return None if fits else self._in_the_way(request)

    def _in_the_way(self, request: Request) -> Reason | None:
        others = [(held[0], seq) for seq, held in self._kept.items() if seq != request.seq]
        if not others:
            return None
        at, seq = min(others)
        id, until = self._site.id_of(seq), None if at >= FOREVER else Instant(at)
        length = length_of(self._site, request)
        if length >= FOREVER:
            return _ENDLESS("scheduler", id, until=until)
        return _DELAYS("scheduler", length, id, until=until)
