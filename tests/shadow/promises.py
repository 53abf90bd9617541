"""What is kept for those who were promised a start: the manual's page `backfill`. Who would hold some of it,
by his wall limit, waits. A plan: what runs, to its wall limit, beside each promise from its instant on."""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from itertools import accumulate, islice

from shadow.claims import Amount, Claim
from shadow.rules import PassMoment, RoomKept, wall_limit

from nqspy.model.consumables import offline_of, units_of
from nqspy.model.ids import SECOND, Instant, Seq
from nqspy.model.molded import sized
from nqspy.model.requests import Request
from nqspy.model.reservation import Reservation
from nqspy.model.settings import Settings

FOREVER = 1 << 62
"""The end of what has no wall limit."""
STARTING = SECOND
"""What starting may take, ms: wall limits count from then."""


def length_of(settings: Settings, request: Request) -> int:
    """How long (ms) it may run: its wall limit, its queue's, what the site assumes."""
    limit = wall_limit(settings, request)
    limit = settings.default.wall_limit if limit is None else limit
    return FOREVER if limit is None else max(1, limit)


class Plans:
    """The plans of one moment. ``promised``: who has which promise. For a start (``starts``) time is reckoned
    from the beginning of the moment, for one that was left out from its end: so nobody is blamed for what
    may have been right. ``begun``: of these for whom a place is kept though they have started."""

    def __init__(
        self,
        moment: PassMoment,
        promised: Mapping[Seq, Reservation | None],
        starts: bool,
        begun: Collection[Seq] = (),
    ) -> None:
        self._site, self._taken = moment.followed.site, moment.followed.taken
        requests, queues = moment.followed.requests, self._site.settings.queues
        self._promised = [
            (sized(requests[seq], each.pes), each)
            for seq, each in promised.items()
            if each is not None and seq in requests and (requests[seq].state == "queued" or seq in begun)
            if queues[requests[seq].queue].started  # for others nothing is kept
        ]
        self._now = moment.first if starts else moment.last
        self._grace = STARTING if starts else 0
        self._slots, self._limits = moment.places.slots, moment.followed.limits
        self._free: dict[Amount, tuple[list[int], list[int]]] = {}

    def delayed(self, request: Request) -> RoomKept | None:
        """Why a request must not start for the sake of a promise."""
        if all(other.seq == request.seq for other, _ in self._promised):
            return None
        mine, end = list(self._claims(request)), self._now + length_of(self._site.settings, request)
        vague = self._vague(request)
        if vague is not None or all(self._least(each, request, end) >= each.asked for each in mine):
            return vague
        if self._takes_chances(request) or self._is_unclear:
            return RoomKept("it may have passed a promise by chance or by contract", sure=False)
        return RoomKept("it would have held what was kept for a promised start", room=True)

    def is_short(self, request: Request) -> bool:
        """Whether one that runs has what is kept for a promise."""
        if self._takes_chances(request) or self._is_unclear or self._vague(request) is not None:
            return False
        end = self._end(request) - self._grace
        return any(self._least(each, request, end) < 0 for each in self._claims(request))

    def _takes_chances(self, request: Request) -> bool:
        queue = self._site.settings.queues[request.queue]
        return queue.backfill == "probable" or (queue.backfill == "contract" and request.spec.contract)

    def _vague(self, request: Request) -> RoomKept | None:
        """A promise for something that it needs too has no time, or one that is over."""
        mine = {each.amount for each in self._claims(request)}
        for other, told in self._promised:
            vague = other.seq != request.seq and self._is_vague(told)
            if vague and mine & {each.amount for each in self._claims(other)}:
                return RoomKept("a promise had no time, or one that was over", sure=False)
        return None

    def _is_vague(self, told: Reservation) -> bool:
        return told.at is None or bool(told.late) or told.at <= self._now

    @cached_property
    def _is_unclear(self) -> bool:
        """Whether more than wall limits says when PEs are free."""
        spills = any(each.spill in ("suspend", "requeue") for each in self._site.settings.shifts.values())
        return (
            spills or bool(self._site.offline()) or any(r.pes_released for r in self._taken.requests.values())
        )

    def _claims(self, request: Request) -> Iterator[Claim]:
        site, consumables = self._site, self._site.settings.consumables
        yield from self._limits.claims(request)
        domain = site.domain_of(request.queue)
        yield Claim(("PEs", domain.name), domain.held_by(request.spec.ask.pes), self._slots(request.queue))
        for name, count in request.spec.ask.consumables:
            there = units_of(consumables[name], site.found)
            yield Claim(
                ("units", name), count, len(there) - len(offline_of(consumables[name], site.found, {}))
            )

    def _least(self, claim: Claim, request: Request, end: int) -> int:
        """How much of an amount is free at the least while a request runs from now to then, its own promise
        apart."""
        own = next((each for each in self._promised if each[0].seq == request.seq), None)
        times, free = self._steps(claim)
        last = bisect_left(times, end)
        if own is None:
            return min(free[:last], default=claim.most)
        begin, back = own[1].at or FOREVER, claim.asked
        if request.spec.mold is not None:  # it was promised a start on a size of its own
            back = sum(each.asked for each in self._claims(own[0]) if each.amount == claim.amount)
        over = begin + length_of(self._site.settings, own[0])
        found = (n + (back if begin <= at < over else 0) for at, n in zip(times[:last], free, strict=False))
        return min(found, default=claim.most)

    def _steps(self, claim: Claim) -> tuple[list[int], list[int]]:
        """The instants at which promised starts begin, and how much of an amount is free then."""
        if claim.amount not in self._free:
            changes: dict[int, int] = {}
            begins = set()
            for begin, end, count in self._held.get(claim.amount, ()):
                changes[begin] = changes.get(begin, 0) - count
                changes[end] = changes.get(end, 0) + count
                begins |= {begin} if begin > self._now else set()
            times = sorted(changes)
            sums = accumulate((changes[at] for at in times), initial=claim.most)
            free = dict(zip(times, islice(sums, 1, None), strict=True))
            self._free[claim.amount] = sorted(begins), [free[at] for at in sorted(begins)]
        return self._free[claim.amount]

    @cached_property
    def _held(self) -> dict[Amount, list[tuple[int, int, int]]]:
        """Who has how much of each amount, from when until when."""
        spans: list[tuple[int, int, Request]] = [
            (self._now, self._end(each) - self._grace, each) for each in self._taken.requests.values()
        ]
        for request, told in self._promised:
            begin = FOREVER if told.at is None else max(told.at, self._now)
            spans.append((begin, begin + length_of(self._site.settings, request), request))
        found: dict[Amount, list[tuple[int, int, int]]] = {}
        for begin, end, request in spans:
            for each in self._claims(request):
                found.setdefault(each.amount, []).append((begin, end, each.asked))
        return found

    def _end(self, request: Request) -> int:
        """When one that runs has run as long as it may."""
        run, rest = request.run, request.run.suspended_time
        if run.pause is not None:
            rest += self._now - run.pause.at
        until = Instant(FOREVER) if run.until is None else run.until
        return max(min(until, run.started + rest + length_of(self._site.settings, request)), self._now + 1)
