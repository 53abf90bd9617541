"""What runs, and what was promised, laid out over time (time-ahead.md 1), for one pass.

A request is reckoned to run as long as it may (`runtime.planned_wall`). What runs without a wall limit has no
known end: who waits for that has a promise without a time (`untimed`). Nor is it known when one goes on whose
queue a shift has stopped: what a suspended request does not give back (memory, units) it keeps for ever.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence

from nqspy.core.timeline.ends import MOMENT, end_of, is_suspended, length_of, planned_end
from nqspy.core.timeline.layout import HeldSpans, KeptSpans, Span, TimeLayout, recall, remember
from nqspy.core.timeline.profile import FOREVER, Amount, Claims, Profile
from nqspy.core.timeline.untimed import Turn, Untimed, spare, spare_of
from nqspy.model.ids import Instant, Seq
from nqspy.model.molded import sized
from nqspy.model.requests import Request, State
from nqspy.model.reservation import Reservation
from nqspy.model.site import Site

ClaimsOf = Callable[[Request, bool], Iterable[tuple[Hashable, int, int]]]
"""Function that returns what a request takes beside PEs: what, how much, and how much there is in all; True:
only what a suspended request keeps."""

SHOWN = 3
"""So many are named as those that hold up another."""
_NEVER: Turn = 1 << 62, Seq(0)


def turn_of(request: Request) -> Turn:
    """When it was promised its start."""
    kept = request.reservation
    return (0 if kept is None else kept.turn), request.seq


def time_of(request: Request) -> int:
    """When its promised start is; `FOREVER` where that is not known."""
    kept = request.reservation
    return FOREVER if kept is None or kept.at is None else kept.at


class LaidOut:
    """A `TimeLayout` of a site, to be changed; command domains, of which requests hold no PEs, are not in it.
    ``opened``: how often requests of a queue have left to others what was kept for later.
    ``started``: who starts besides, ``leaving``: who gives way, ``returning``: who goes on again."""

    def __init__(
        self, site: Site, now: Instant, claims_of: ClaimsOf, started: Sequence[Request],
        leaving: Collection[Seq], returning: Collection[Seq] = (),
    ) -> None:  # fmt: skip
        self._site, self._now, self._claims_of = site, now, claims_of
        self._leaving, self._returning = leaving, returning
        self.opened = Counter[str]()
        self._begun: list[tuple[int, Seq]] = []
        as_it_is = not (started or leaving or returning)
        found = recall(site, now) if as_it_is else None
        if found is not None:
            self._take_over(found)
            return
        self._take_over(TimeLayout(Profile(now), Untimed(), KeptSpans(), [], {}, {}))
        until = self._lay_out(started)
        if as_it_is:
            remember(site, now, self._layout, until)

    def _take_over(self, layout: TimeLayout) -> None:
        self._layout, self.kept, self.running = layout, layout.kept, layout.running
        self.profile, self.untimed, self.idle = layout.profile, layout.untimed, layout.idle
        self._claimed = layout.claimed

    def _lay_out(self, started: Sequence[Request]) -> int:
        """Lays out what runs and is promised; answers until when that holds, as time goes by."""
        site, now = self._site, self._now
        domains = [name for name in site.domains() if not site.domain(name).is_command]
        slots: dict[Amount, int] = {("pes", name): site.board(name).slots() for name in domains}
        for amount, most in slots.items():
            self.profile.provide(amount, most)
        ends = [(self._end(request), request) for request in site.started.values()]
        self.running += [
            (end, request.seq) for end, request in ends if request.pes or self._rests_on(request)
        ]
        going = [(end, request) for end, request in ends if request.state is not State.EXITING]
        going += [(now + length_of(site, request), request) for request in started]
        taken = [span for end, request in going for span in self._has(request, end).spans()]
        taken += self._coming_back(Profile(now, slots), taken, going) if site.paused else ()
        until = self._put_promised(taken, domains)
        return min([until, *(end for end, _ in ends)])

    def _coming_back(
        self, free: Profile, taken: Sequence[Span], going: Sequence[tuple[int, Request]]
    ) -> Iterator[Span]:
        """What those have who stand still and wait for PEs which others have: they go on, before all that
        wait, when enough are ``free`` of what is taken, and have so much longer what they did not give back.
        For one that could go on now nothing is kept, as nobody knows when it does, nor for one of a stopped
        queue."""
        free.begin(taken)
        for end, request in going:
            if not self._stands_still(request) or not self._is_open(request):
                continue
            domain, rest = self._site.domain_of(request.queue).name, end - self._now
            pes: Claims = {("pes", domain): self._site.held_by(request)}
            at = free.earliest(pes, rest)
            if at is not None and at > self._now:
                until = min(at + rest, FOREVER)
                free.hold(at, until, pes)
                yield at, until, pes
                if not (held := self._has(request, end)).kept_on:
                    yield held.end, until, held.claims

    def _stands_still(self, request: Request) -> bool:
        return request.pes_released and request.seq not in self._returning

    def _is_resting(self, request: Request) -> bool:
        """Whether it has given back its PEs, or does in this pass."""
        return self._stands_still(request) or request.seq in self._leaving

    def _rests_on(self, request: Request) -> bool:
        """Whether it is suspended until its queue is started again."""
        return self._is_resting(request) and not self._is_open(request)

    def _end(self, request: Request) -> int:
        """When one that runs, or is suspended, is reckoned to leave what it has by now."""
        return FOREVER if self._rests_on(request) else end_of(self._site, self._now, request)

    def _has(self, request: Request, end: int) -> HeldSpans:
        """What one has that runs, or is suspended, from now on."""
        claims = self.claims(request, _is_passing(request))
        stops = request.queue in self._site.upcoming_stops
        planned = planned_end(self._site, self._now, request) if stops else end
        return self._span(request, self._now, min(end, FOREVER), claims, planned)

    def _span(self, request: Request, begin: int, end: int, claims: Claims, planned: int) -> HeldSpans:
        rests = end < FOREVER and is_suspended(self._site, request, begin, planned)
        return HeldSpans(begin, end, claims, self._kept_on(request, claims) if rests else {})

    def _kept_on(self, request: Request, claims: Claims) -> Claims:
        """What one that is suspended keeps of that."""
        amounts = {amount for amount, _, _ in self._claims_of(request, True)}
        amounts |= set(map(spare_of, amounts))
        return {amount: count for amount, count in claims.items() if amount in amounts}

    def earliest(self, request: Request, claims: Claims) -> int | None:
        """The first instant from which one may run that claims these; None: never. Of what it keeps when a
        shift suspends it, it wants as much for ever."""
        length = length_of(self._site, request)
        found = self.profile.earliest(claims, length)
        if request.reservation is not None and (found is None or found > time_of(request)):
            found = self._a_moment_late(request, claims, length) or found
        if found is None or not is_suspended(self._site, request, found, found + length):
            return found
        return self.profile.earliest(claims, length, self._kept_on(request, claims))

    def fits(self, request: Request, claims: Claims) -> bool:
        """Whether that is now."""
        length = self._room_for(request)
        if not self.profile.fits(claims, length):
            return False
        if not is_suspended(self._site, request, self._now, self._now + length):
            return True
        return self.profile.fits(self._kept_on(request, claims), FOREVER)

    def _room_for(self, request: Request) -> int:
        """How long it must find room. Whose time came a moment ago was promised room from then on: those who
        are promised a start at the end of that do not keep it back. So it is as long as one that reached its
        limit may take to end."""
        length, late = length_of(self._site, request), self._now - time_of(request)
        return max(1, length - late) if 0 < late <= self._moment and length < FOREVER else length

    def _a_moment_late(self, request: Request, claims: Claims, length: int) -> int | None:
        """The first start beside those promised one at its end, no more than a moment later than it was told:
        up to the end that it was told there is room. None: there is none."""
        told, earliest = time_of(request), self.profile.earliest
        if length >= FOREVER:
            return None
        soon = earliest(claims, max(1, length - self._moment), after=told)
        if soon is None or soon > told + self._moment:
            return None
        return soon if earliest(claims, max(1, told + length - soon), after=soon) == soon else None

    @property
    def _moment(self) -> int:
        return MOMENT + self._site.settings.server.grace

    def until(self, request: Request, claims: Claims) -> int:
        """Up to which instant these are free from now on for one that is ended then; now where a shift
        suspends it before, and it would keep of them what others are to have."""
        end, length = self.profile.until(claims), length_of(self._site, request)
        if not is_suspended(self._site, request, self._now, min(end, self._now + length)):
            return end
        return end if self.profile.until(self._kept_on(request, claims)) >= FOREVER else self._now

    def _put_promised(self, taken: Iterable[Span], domains: Iterable[str]) -> int:
        """Those whose time is to come, beside what is taken; those told none, those whose time is over. For
        those of a stopped queue nothing is kept: nobody knows when it is started. Answers when the first time
        comes; at once where one is over."""
        promised = [self._site.requests[seq] for seq in self._site.reserved]
        requests = [_as_promised(each) for each in promised if self._is_open(each)]
        over = [each for each in requests if self._is_over(each)]
        timed = [each for each in requests if time_of(each) < FOREVER and not self._is_over(each)]
        first = min((turn_of(each) for each in requests if time_of(each) == FOREVER), default=_NEVER)
        self.kept.update({each.seq: self._held(each, time_of(each), first < turn_of(each)) for each in timed})
        promises = [span for held in self.kept.values() for span in held.spans()]
        self.profile.begin([*taken, *promises])  # of these promises none begins now
        self.idle.update({name: self.profile.free(("pes", name), self._now) for name in domains})
        for request in requests:
            if request.reservation is not None and request.reservation.at is None:
                self.put(request, request.reservation)
        for request in sorted(over, key=_due_first):
            self._put_overdue(request)
        return self._now if over else min(map(time_of, promised), default=FOREVER)

    def _is_open(self, request: Request) -> bool:
        queue = self._site.settings.queues.get(request.queue)
        return queue is not None and queue.started

    def _is_over(self, request: Request) -> bool:
        """Whether the time that it was told is over or cannot be kept: were each of several kept room from
        now on, none could start beside the others."""
        told = request.reservation
        return told is not None and told.at is not None and (bool(told.late) or told.at <= self._now)

    def _put_overdue(self, request: Request) -> None:
        """At the first start there can be beside all others: they were promised theirs with it in mind."""
        found = self.earliest(request, self.claims(request))
        at = None if found is None else Instant(found)
        self.put(request, Reservation(at, turn=turn_of(request)[0]))

    def claims(self, request: Request, passing: bool = False) -> Claims:
        """What a request holds while it runs, and where it passes those without a time, of what is spare
        beside them as well; the profile learns how much of it there is."""
        claims = self._claimed.get(request.seq)
        if claims is None:
            claims = self._add_up(request)
            if request.state is State.QUEUED and request.spec.mold is None:  # asked for again and again
                self._claimed[request.seq] = claims
        return {**claims, **spare(self.profile, claims)} if passing else claims

    def _add_up(self, request: Request) -> Claims:
        claims: dict[object, int] = {}
        resting = self._is_resting(request)
        if not resting:
            claims["pes", self._site.domain_of(request.queue).name] = self._site.held_by(request)
        for amount, count, most in self._claims_of(request, resting):
            self.profile.provide(amount, most)
            claims[amount] = claims.get(amount, 0) + count
        return claims

    def _held(self, request: Request, begin: int, passing: bool) -> HeldSpans:
        begin = max(begin, self._now)
        end = min(begin + length_of(self._site, request), FOREVER)
        return self._span(request, begin, end, self.claims(request, passing), end)

    # ------------------------------------------------------------ changes

    def put(self, request: Request, kept: Reservation) -> None:
        """So much is kept for one from now on."""
        begin, turn = FOREVER if kept.at is None else kept.at, (kept.turn, request.seq)
        passing = begin < FOREVER and self.untimed.is_before(turn)
        self.keep(turn, self._held(request, begin, passing))

    def keep(self, turn: Turn, held: HeldSpans) -> None:
        """This is kept for one of that turn."""
        self.kept[turn[1]] = held
        if held.begin < FOREVER:
            for span in held.spans():
                self.profile.hold(*span)
            return None
        return self.untimed.add(self.profile, turn, held.claims)

    def lift(self, seq: Seq) -> HeldSpans | None:
        """What is kept for one is free, as far as it is concerned itself; answers what that was."""
        held = self.kept.pop(seq, None)
        if held is not None and held.begin < FOREVER:
            for span in held.spans():
                self.profile.release(*span)
        elif held is not None:
            self.untimed.remove(self.profile, seq)
        return held

    def give_up(self, request: Request) -> None:
        """Nothing is kept for one any more; if that was for later, it is left to others."""
        held = self.lift(request.seq)
        if held is not None and held.begin > self._now:
            self.opened[request.queue] += 1

    def cause_of_delay(self, promised: Instant | None) -> str:
        """Why a promise cannot be kept, in words."""
        over = [r for r in self._site.started.values() if planned_end(self._site, self._now, r) <= self._now]
        if over:
            return f"{self._ids(r.seq for r in over)} still running beyond what was planned"
        until = FOREVER if promised is None else promised
        held = [seq for end, seq in [*self.running, *self._begun] if end > until]
        if held:
            return f"what it needs is held by {self._ids(held)}"
        kept = [seq for seq, span in self.kept.items() if span.begin < until < span.end]
        if kept:
            return f"what it needs is kept for {self._ids(kept)} by then"
        away = self._site.offline()
        return f"PE {away[0]} is offline" if away else "limits, settings or the machine were changed"

    def _ids(self, seqs: Iterable[Seq]) -> str:
        return ", ".join([self._site.id_of(seq) for seq in seqs][:SHOWN])

    def take(self, request: Request, until: int, passing: bool) -> None:
        """It runs from now to then."""
        self._begun.append((until, request.seq))
        claims = self.claims(request, passing)
        for span in self._span(request, self._now, min(until, FOREVER), claims, until).spans():
            self.profile.hold(*span)
        domain = self._site.domain_of(request.queue).name
        self.idle[domain] = self.idle.get(domain, 0) - claims.get(("pes", domain), 0)


def _as_promised(request: Request) -> Request:
    """On the size that it was promised, where it may run on several."""
    if request.spec.mold is None or request.reservation is None:
        return request
    return sized(request, request.reservation.pes)


def _due_first(request: Request) -> tuple[bool, int, Seq]:
    """What orders those whose time is over: whoever was late before was so when a start was promised to those
    whose time comes now, beside what was kept for him."""
    told = request.reservation
    return told is not None and bool(told.late), time_of(request), request.seq


def _is_passing(request: Request) -> bool:
    return request.attempt is not None and request.attempt.passing
