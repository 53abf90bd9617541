"""Running requests and reservations, on a timeline for one pass (time-ahead.md 1).

Each request is expected to run as long as it may (`runtime.planned_wall`). A request that runs without a wall
limit has no known end: a reservation behind it has no time (`spans`). A request in a queue that a shift has
stopped goes on at an unknown time: what it keeps while it is suspended (memory, units) it keeps for ever.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from nqspy.core.timeline.lengths import end_of, is_suspended, length_of, planned_end
from nqspy.core.timeline.profile import FOREVER, Amount, Claims, Profile, Span
from nqspy.core.timeline.spans import Holding, Spans, Turn, headroom_of, recall, remember
from nqspy.model.ids import Instant, Seq
from nqspy.model.machine import foreign_in_words
from nqspy.model.requests import MOMENT, Request, Reservation, State
from nqspy.model.site import Site
from nqspy.model.specs import sized

ClaimsOf = Callable[[Request, bool], Iterable[tuple[Amount, int, int]]]
"""Function that returns the amounts that a request takes in addition to PEs: amount, number, and most in all.
With True it returns only those that a suspended request keeps."""

SHOWN = 3
"""Requests named at most as those that delay another."""
_NEVER: Turn = FOREVER, Seq(0)


def turn_of(request: Request) -> Turn:
    """Return the order in which a request's reservation was made (0: it has none), with its number."""
    reservation = request.reservation
    return (0 if reservation is None else reservation.turn), request.seq


def time_of(request: Request) -> int:
    """Return the reserved time of a request; `FOREVER`: it has no reservation, or no time is known."""
    reservation = request.reservation
    return FOREVER if reservation is None or reservation.at is None else reservation.at


class Timeline:
    """Amounts that a site holds and reserves over time, made for a pass by `gate.reserved`, which adds starts
    and reservations. Requests of a command domain hold no PEs, so no PEs of that domain are counted.

    ``started``: requests that the pass has started, ``leaving``: those that give way in it, ``returning``:
    those that it resumes. ``opened``: how often requests of each queue gave up a later reservation.
    """

    def __init__(
        self, site: Site, now: Instant, claims_of: ClaimsOf, started: Sequence[Request],
        leaving: Collection[Seq], returning: Collection[Seq],
    ) -> None:  # fmt: skip
        self._site, self._now, self._claims_of = site, now, claims_of
        self.leaving, self._returning = frozenset(leaving), returning
        self._barred = frozenset((*site.offline(), *site.foreign_pes()))
        self._begun: list[tuple[int, Seq]] = []
        self._blocks: list[Seq] = []
        self._standing: list[tuple[int, Request]] = []
        self._without_reserved = Profile(now)
        self.opened = Counter[str]()
        is_unchanged = not (started or leaving or returning)
        known = recall(site, now) if is_unchanged else None
        self.spans = Spans(Profile(now)) if known is None else known
        self.profile, self.running = self.spans.profile, self.spans.running
        self.holdings = self.spans.holdings
        if known is None:
            until = self._fill(started)
            if is_unchanged and not self._standing:
                remember(site, now, self.spans, until)

    # ------------------------------------------------------------ as the pass begins

    def _fill(self, started: Sequence[Request]) -> int:
        """Put what runs and what is reserved on the timeline; return the instant until which it is valid."""
        site, now = self._site, self._now
        domains = [name for name in site.domains() if not site.domain(name).is_command]
        slots: Claims = {("pes", name): site.board(name).slots() for name in domains}
        for amount, most in slots.items():
            self.profile.provide(amount, most)
        reserved = (time_of(site.requests[seq]) for seq in site.reserved)
        times = sorted(time for time in reserved if now < time < FOREVER)
        ends = [(_at_reserved(self._end(each), times), each) for each in site.started.values()]
        self.running += [(end, each.seq) for end, each in ends if each.pes or self._stays_away(each)]
        holders = [(end, request) for end, request in ends if request.state is not State.EXITING]
        self._begun += [(now + length_of(site, request), request.seq) for request in started]
        holders += [(now + length_of(site, request), request) for request in started]
        used = [span for end, request in holders for span in self._held_now(request, end).spans()]
        self._standing = [
            each for each in holders if self._stands_still(each[1]) and not self._stays_away(each[1])
        ]
        if self._standing:
            self._without_reserved = Profile(now, slots)
            self._without_reserved.fill(used)
            used += self._returns()
        until = self._fill_reserved(used, domains)
        return min([until, *(end for end, _ in ends)])

    def _returns(self) -> Iterator[Span]:
        """Yield the spans that suspended requests will hold while they wait for PEs of others. Each goes on
        before all that wait, as soon as enough is free; until then it holds what it did not release. Nothing
        is held for a request that could go on now, at an unknown time, nor for one of a stopped queue."""
        for end, request in self._standing.copy():
            domain, rest = self._site.domain_of(request.queue).name, end - self._now
            pes: Claims = {("pes", domain): self._site.held_by(request)}
            at = self._without_reserved.earliest(pes, rest)
            if at is not None and at > self._now:
                self._standing.remove((end, request))
                until = min(at + rest, FOREVER)
                self._without_reserved.hold(at, until, pes)
                yield at, until, pes
                if not (held := self._held_now(request, end)).lasting:
                    yield held.end, until, held.claims

    def _fill_reserved(self, used: list[Span], domains: Iterable[str]) -> int:
        """Hold what is taken, and what is reserved: first reservations with a time to come, then those
        without a time, then those with a time that is over. Nothing is held for a stopped queue, because it
        starts again at an unknown time. Return the first time of a reservation; now if one is over."""
        reserved = [self._site.requests[seq] for seq in self._site.reserved]
        waiting = [_on_reserved_size(request) for request in reserved if self._is_open(request)]
        untimed = [request for request in waiting if time_of(request) == FOREVER]
        first = min(map(turn_of, untimed), default=_NEVER)
        holdings = {
            request.seq: self._held(request, time_of(request), turn_of(request)[0], first < turn_of(request))
            for request in waiting
            if time_of(request) < FOREVER and not self._is_over(request)
        }
        self.spans.fill(used, holdings)
        self.spans.idle = {name: self.profile.free(("pes", name), self._now) for name in domains}
        for request in untimed:
            self.put(request, None, turn_of(request)[0])
        self.place_over(waiting)  # others were reserved in addition to these
        if any(map(self._is_over, waiting)):
            return self._now
        return min(map(time_of, reserved), default=FOREVER)

    def _is_open(self, request: Request) -> bool:
        queue = self._site.settings.queues.get(request.queue)
        return queue is not None and queue.started

    def _is_over(self, request: Request) -> bool:
        """True if the reserved time of a request has come or cannot be kept. If room were held from now on
        for several of these, none could start beside the others."""
        own = request.reservation
        return own is not None and own.at is not None and (bool(own.late) or own.at <= self._now)

    def _stands_still(self, request: Request) -> bool:
        return request.pes_released and request.seq not in self._returning

    def _is_released(self, request: Request) -> bool:
        """True if a request has released its PEs, or does so in this pass."""
        return self._stands_still(request) or request.seq in self.leaving

    def _stays_away(self, request: Request) -> bool:
        """True if a request is suspended until its queue is started again, or a person resumes it."""
        by_person = request.pause is not None and request.pause.cause.is_person
        return self._is_released(request) and (by_person or not self._is_open(request))

    def _end(self, request: Request) -> int:
        """Return when a request that runs, or is suspended, is expected to release what it holds now."""
        return FOREVER if self._stays_away(request) else end_of(self._site, self._now, request)

    # ------------------------------------------------------------ what a request takes

    def claims(self, request: Request, passing: bool = False) -> Claims:
        """Return what a request holds while it runs. ``passing``: it passes a reservation without a time, so
        it holds as much headroom too. The profile then counts these amounts."""
        claims = self.spans.claimed.get(request.seq)
        if claims is None:
            claims, released = {}, self._is_released(request)
            if not released:
                held = self._site.held_by(request)
                if held and request.seq not in self._returning:  # the profile has only usable PEs
                    held -= len(self._barred.intersection(request.pes))
                claims["pes", self._site.domain_of(request.queue).name] = held
            for amount, count, most in self._claims_of(request, released):
                self.profile.provide(amount, most)
                claims[amount] = claims.get(amount, 0) + count
            if request.state is State.QUEUED and request.spec.mold is None:  # asked for again and again
                self.spans.claimed[request.seq] = claims
        return {**claims, **self.spans.headroom(claims)} if passing else claims

    def _lasting(self, request: Request, claims: Claims) -> Claims:
        """Return the part of these claims that a request keeps while it is suspended."""
        amounts = {amount for amount, _, _ in self._claims_of(request, True)}
        amounts |= set(map(headroom_of, amounts))
        return {amount: count for amount, count in claims.items() if amount in amounts}

    def _held_now(self, request: Request, end: int) -> Holding:
        """Return what a running or suspended request holds from now to ``end``, and what it keeps after."""
        claims = self.claims(request, request.attempt is not None and request.attempt.passing)
        stops = request.queue in self._site.upcoming_stops
        planned = planned_end(self._site, self._now, request) if stops else end
        return self._span(request, self._now, min(end, FOREVER), claims, planned)

    def _held(self, request: Request, begin: int, turn: int, passing: bool) -> Holding:
        """Return what a request with a reservation holds from its begin on."""
        begin = max(begin, self._now)
        end = min(begin + length_of(self._site, request), FOREVER)
        return self._span(request, begin, end, self.claims(request, passing), end, turn)

    def _span(
        self, request: Request, begin: int, end: int, claims: Claims, planned: int, turn: int = 0
    ) -> Holding:
        suspended = end < FOREVER and is_suspended(self._site, request, begin, planned)
        return Holding(begin, end, claims, self._lasting(request, claims) if suspended else {}, turn)

    # ------------------------------------------------------------ room for a request

    def earliest(
        self, request: Request, claims: Claims, own: Reservation | None, after: int = 0
    ) -> int | None:
        """Return the first instant, from ``after`` on, at which a request with these claims may run; None:
        unknown. ``own``: its reservation. What it keeps when a shift suspends it must be free for ever."""
        length = length_of(self._site, request)
        found = self.profile.earliest(claims, length, after=after)
        at = None if own is None else own.at
        if at is not None and (found is None or found > at):
            found = self._a_moment_late(claims, length, at) or found
        if found is None or not is_suspended(self._site, request, found, found + length):
            return found
        return self.profile.earliest(claims, length, self._lasting(request, claims), after)

    def fits(self, request: Request, claims: Claims, own: Reservation | None) -> bool:
        """True if a request with these claims may run from now on. ``own``: its reservation, which the caller
        has lifted from the profile; if its time came a moment ago, room is needed for that much less."""
        length = length_of(self._site, request)
        late = 0 if own is None or own.at is None else self._now - own.at
        if 0 < late <= self._moment and length < FOREVER:
            # Room was reserved from a moment ago on, so a reservation at the end of that does not delay it.
            length = max(1, length - late)
        if not self.profile.fits(claims, length):
            return False
        if not is_suspended(self._site, request, self._now, self._now + length):
            return True
        return self.profile.fits(self._lasting(request, claims), FOREVER)

    def _a_moment_late(self, claims: Claims, length: int, at: int) -> int | None:
        """Return the first possible start at most `_moment` ms after ``at``, the reserved time; None: there
        is none. Room is needed only up to the end of the reservation, where others may begin."""
        earliest = self.profile.earliest
        if length >= FOREVER:
            return None
        soon = earliest(claims, max(1, length - self._moment), after=at)
        if soon is None or soon > at + self._moment:
            return None
        return soon if earliest(claims, max(1, at + length - soon), after=soon) == soon else None

    @property
    def _moment(self) -> int:
        """Tolerance (ms) of a reservation: how long a request that reached its limit may take to end."""
        return MOMENT + self._site.settings.server.grace

    def until(self, request: Request, claims: Claims) -> int:
        """Return the instant up to which these claims are free from now on, for a request that is ended then.
        It is now if a shift suspends the request before, and what it then keeps is not free for ever."""
        end, length = self.profile.until(claims), length_of(self._site, request)
        if not is_suspended(self._site, request, self._now, min(end, self._now + length)):
            return end
        return end if self.profile.until(self._lasting(request, claims)) >= FOREVER else self._now

    # ------------------------------------------------------------ changes

    def put(self, request: Request, at: int | None, turn: int) -> None:
        """Hold room for a reservation from ``at`` on; None: without a time. ``turn``: as in `Reservation`."""
        begin = FOREVER if at is None else at
        passing = begin < FOREVER and self.spans.is_untimed_before((turn, request.seq))
        self.spans.add(request.seq, self._held(request, begin, turn, passing))

    def place_over(self, requests: Iterable[Request]) -> None:
        """Hold room anew for each request with a reserved time that has come or cannot be kept, from its
        first possible start. Nothing else is held for these requests."""
        over = sorted(filter(self._is_over, requests), key=lambda each: (time_of(each), each.seq))
        # Late requests come last: the starts that are due now were reserved in addition to theirs.
        over.sort(key=lambda each: each.reservation is not None and bool(each.reservation.late))
        for request in over:
            self.spans.lift(request.seq)
        for request in map(_on_reserved_size, over):
            at = self.earliest(request, self.claims(request), request.reservation)
            self.put(request, at, turn_of(request)[0])

    def give_up(self, request: Request) -> None:
        """Release what is held for a request's reservation, and count it as given up if it was for later."""
        held = self.spans.lift(request.seq)
        if held is not None and held.begin > self._now:
            self.opened[request.queue] += 1

    def start(self, request: Request, until: int, passing: bool) -> None:
        """Hold the claims of a request that runs from now to ``until``; ``passing``: as in `claims`."""
        self._begun.append((until, request.seq))
        claims = self.claims(request, passing)
        self._hold(request, self._span(request, self._now, min(until, FOREVER), claims, until).spans())

    def resume(self, request: Request) -> None:
        """Hold the claims of a suspended request that this pass resumes, except those that it kept."""
        claims = self.claims(request)
        lasting = self._lasting(request, claims)
        more = {amount: count - lasting.get(amount, 0) for amount, count in claims.items()}
        self._standing = [each for each in self._standing if each[1] is not request]
        self._hold(request, [(self._now, min(self._end(request), FOREVER), more)])

    def reserve_pes(self, request: Request, pes: int) -> None:
        """Hold ``pes`` free PEs for a waiting request from now on, for as long as it will run."""
        domain, end = self._site.domain_of(request.queue).name, self._now + length_of(self._site, request)
        self._blocks.append(request.seq)
        self._hold(request, [(self._now, min(end, FOREVER), {("pes", domain): pes})])

    def _hold(self, request: Request, spans: Sequence[Span]) -> None:
        """Hold these spans of a request. Hold later ones of suspended requests that thus cannot go on now."""
        for span in spans:
            self.profile.hold(*span)
        if self._standing:
            for span in spans:
                self._without_reserved.hold(*span)
            for span in self._returns():
                self.profile.hold(*span)
        idle, domain = self.spans.idle, self._site.domain_of(request.queue).name
        idle[domain] = idle.get(domain, 0) - spans[0][2].get(("pes", domain), 0)

    # ------------------------------------------------------------ what delays a reservation

    def awaited(self, at: int | None) -> tuple[Seq, ...]:
        """Return the requests that must end before a start at that time, the last to end first; None: those
        without a known end. At most `SHOWN` are returned."""
        known = [*self.running, *self._begun]
        if at is None:
            return tuple(seq for end, seq in known if end >= FOREVER)[:SHOWN]
        ends = sorted(((end, seq) for end, seq in known if end <= at), reverse=True)
        return tuple(seq for _, seq in ends[:SHOWN])

    def cause_of_delay(self, request: Request, reserved: Instant | None) -> str:
        """Return in words why a reserved time cannot be kept, naming requests that hold what it needs."""
        needs, started = self.claims(request).keys(), self._site.started

        def shown(seqs: Iterable[Seq]) -> str:
            holders = (seq for seq in seqs if seq not in started or self._holds_some(started[seq], needs))
            return self._ids(holders)

        if over := shown(
            r.seq for r in started.values() if planned_end(self._site, self._now, r) <= self._now
        ):
            return f"still running past the planned end: {over}"
        if self._blocks:
            return f"PEs are reserved for {self._ids(self._blocks)}"
        until = FOREVER if reserved is None else reserved
        if held := shown(seq for end, seq in [*self.running, *self._begun] if end > until):
            return f"resources that it needs are held by {held}"
        if holders := [seq for seq, each in self.holdings.items() if each.begin < until < each.end]:
            return f"resources that it needs are reserved for {self._ids(holders)}"
        if returning := shown(self._site.paused):
            return f"suspended requests resume first: {returning}"
        domain, away = self._site.domain_of(request.queue), self._site.offline()
        if domain.is_command and (places := shown(started)):  # its requests hold places of the domain, no PEs
            return f"the places of domain {domain.name} are held by {places}"
        if not away and (foreign := self._site.foreign):
            return f"a foreign job has {foreign_in_words(foreign, 1)}"
        return f"PE {away[0]} is offline" if away else "limits, settings or the machine changed"

    def _holds_some(self, request: Request, amounts: Collection[Amount]) -> bool:
        """True if a request holds some of these amounts while it runs."""
        domain = "pes", self._site.domain_of(request.queue).name
        return domain in amounts or any(each in amounts for each, _, _ in self._claims_of(request, False))

    def _ids(self, seqs: Iterable[Seq]) -> str:
        return ", ".join([self._site.id_of(seq) for seq in seqs][:SHOWN])


def _at_reserved(end: int, times: Sequence[int]) -> int:
    """Return an end, moved to a reserved time (the first of ``times``) that is less than a moment before it.
    A limit counts from a moment after the decision to start. What was reserved for the end expected then
    would hold the same PEs for that moment, and no request that spans it would fit. It is the first of
    several: which of them was reserved for this end is not known."""
    place = bisect_right(times, end - MOMENT)
    return min(end, times[place]) if place < len(times) else end


def _on_reserved_size(request: Request) -> Request:
    """Return a moldable request on the size reserved for it; other requests as they are."""
    if request.spec.mold is None or request.reservation is None:
        return request
    return sized(request, request.reservation.pes)
