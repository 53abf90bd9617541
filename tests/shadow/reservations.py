"""Room that is held for reservations: the manual's page `backfill`. A request whose wall limit runs into it
waits. A plan is what runs, to its wall limit, and each reservation from its instant on."""

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

from shadow.claims import Amount, Claim, claims
from shadow.rules import Blocked, Moment, wall_limit

from nqspy.model.consumables import offline_of, units_of
from nqspy.model.ids import SECOND, Seq
from nqspy.model.requests import Request, Reservation, State
from nqspy.model.settings import Settings
from nqspy.model.specs import sized

FOREVER = 1 << 62
"""The end of what has no wall limit."""
STARTING = SECOND
"""Time that starting may take, ms: wall limits count from then."""


def length_of(settings: Settings, request: Request) -> int:
    """Return how long (ms) a request may run: its wall limit, its queue's, or what the site assumes."""
    limit = wall_limit(settings, request)
    limit = settings.default.wall_limit if limit is None else limit
    return FOREVER if limit is None else max(1, limit)


class Plan:
    """The plan of one moment with these reservations. For a start (``starts``) time counts from the beginning
    of the moment, for a request that was left out from its end: so nothing that may be right is a fault.
    ``begun``: requests for which a place is held though they have started."""

    def __init__(
        self,
        moment: Moment,
        reservations: Mapping[Seq, Reservation | None],
        starts: bool,
        begun: Collection[Seq] = (),
    ) -> None:
        self._moment, self._site = moment, moment.followed.site
        requests, queues = moment.followed.requests, self._site.settings.queues
        self._reserved = {
            seq: (sized(requests[seq], each.pes), each)
            for seq, each in reservations.items()
            if each is not None and seq in requests
            if requests[seq].state is State.QUEUED or seq in begun
            if queues[requests[seq].queue].started  # nothing is held for others
        }
        self._now = moment.first if starts else moment.last
        # What began to run meanwhile, unseen by the pass, ends by so much later.
        self._grace = STARTING + moment.last - moment.first if starts else 0

    def delays(self, request: Request) -> Blocked | None:
        """Return why a request must not start because of a reservation."""
        if not self._reserved.keys() - {request.seq}:
            return None
        mine, end = list(self._claims(request)), self._now + length_of(self._site.settings, request)
        vague = self._vague(request)
        if vague is not None or all(self._least(each, end, request.seq) >= each.asked for each in mine):
            return vague
        if self._takes_chances(request) or self._is_unclear:
            return Blocked("it may have passed a reservation by chance or by contract", sure=False)
        return Blocked("it would have held what was kept for a promised start", room=True)

    def is_short(self, request: Request) -> bool:
        """True if a running request holds what a reservation needs."""
        if self._takes_chances(request) or self._is_unclear or self._vague(request) is not None:
            return False
        end = self._end(request) - self._grace
        return any(self._least(each, end, request.seq) < 0 for each in self._claims(request))

    def _takes_chances(self, request: Request) -> bool:
        queue = self._site.settings.queues[request.queue]
        return queue.backfill == "probable" or (queue.backfill == "contract" and request.spec.contract)

    def _vague(self, request: Request) -> Blocked | None:
        """Return a doubt if a reservation of something that it needs too has no time, or one that is over."""
        mine = {each.amount for each in self._claims(request)}
        for seq, (other, told) in self._reserved.items():
            vague = told.at is None or told.late or told.at <= self._now
            if seq != request.seq and vague and mine & {each.amount for each in self._claims(other)}:
                return Blocked("a reservation had no time, or one that was over", sure=False)
        return None

    @cached_property
    def _is_unclear(self) -> bool:
        """True if more than wall limits says when PEs are free."""
        spills = any(each.spill in ("suspend", "requeue") for each in self._site.settings.shifts.values())
        return spills or bool(self._site.offline()) or any(r.pes_released for r in self._moment.holding)

    def _claims(self, request: Request) -> Iterator[Claim]:
        site, consumables = self._site, self._site.settings.consumables
        yield from claims(site, request)
        domain, pes = site.domain_of(request.queue), request.spec.ask.pes
        yield Claim(("PEs", domain.name), domain.held_by(pes), self._moment.places.slots(request.queue))
        for name, count in request.spec.ask.consumables:
            there = units_of(consumables[name], site.found)
            most = len(there) - len(offline_of(consumables[name], site.found, {}))
            yield Claim(("units", name), count, most)

    def _least(self, claim: Claim, end: int, own: Seq) -> int:
        """Return how much of an amount is free at the least until then, its own reservation left out."""
        spans = self._held.get(claim.amount, [])
        begins = {begin for _, begin, _, _ in spans if self._now < begin < end}
        others = [span for span in spans if span[0] != own]
        taken = (sum(count for _, begin, over, count in others if begin <= at < over) for at in begins)
        return claim.most - max(taken, default=0)

    @cached_property
    def _held(self) -> dict[Amount, list[tuple[Seq | None, int, int, int]]]:
        """Spans in which an amount is held: for whose reservation (None: by one that runs), from when until
        when, how much."""
        spans: list[tuple[Seq | None, Request, int, int]] = [
            (None, each, self._now, self._end(each) - self._grace) for each in self._moment.holding
        ]
        for seq, (request, told) in self._reserved.items():
            begin = FOREVER if told.at is None else max(told.at, self._now)
            spans.append((seq, request, begin, begin + length_of(self._site.settings, request)))
        found: dict[Amount, list[tuple[Seq | None, int, int, int]]] = {}
        for whose, request, begin, end in spans:
            for each in self._claims(request):
                found.setdefault(each.amount, []).append((whose, begin, end, each.asked))
        return found

    def _end(self, request: Request) -> int:
        """Return when a running request has run as long as it may."""
        run, rest = request.run, request.run.suspended_time
        if run.pause is not None:
            rest += self._now - run.pause.at
        until = FOREVER if run.until is None else run.until
        return max(min(until, run.started + rest + length_of(self._site.settings, request)), self._now + 1)
