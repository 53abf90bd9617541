"""Which of two requests of a queue comes first: the manual's pages `priority` and `backfill` (``order=``)."""

from collections.abc import Iterable, Sequence

from msgspec import structs
from shadow.claims import limit_of
from shadow.followed import place_of
from shadow.reservations import length_of

from nqspy.model.ids import SECOND, Instant
from nqspy.model.people import without_share
from nqspy.model.requests import Request
from nqspy.model.site import Site
from nqspy.model.specs import while_waiting

CLOSE = 1e-9
"""Priorities that differ by less (of the sum of the weights) are not told apart: fractions are added up."""

NEAR = 5 * SECOND
"""A request that is put back behind one is surely before another that is so much (ms) further back."""


class Order:
    """The order of one queue in one pass, which came between two ``instants``. Divisors are those of the
    requests that the pass ``found``. ``told``: an exit gave the share values."""

    def __init__(
        self, site: Site, queue: str, found: Sequence[Request], instants: tuple[Instant, Instant], told: bool
    ) -> None:
        self._site, self._queue, self._told = site, site.settings.queues[queue], told
        self._weights, self._instants = site.settings.weights(queue), instants
        given = {_pair(each) for each in found if _own(each)}
        self._own = [each for each in found if _pair(each) in given and each.rank == 0]
        self._earliest = min((each.date_in_queue for each in found), default=instants[1])
        asks = [each.spec.ask for each in found]
        self._cpu = self._most([each.finite_cpu() for each in asks], "cpu_limit")
        self._memory = self._most([each.finite_memory() for each in asks], "memory_limit")

    def _most(self, asked: Iterable[int | None], limit: str) -> tuple[int, int]:
        """Return the divisor, and what a request without a limit counts as."""
        known = list(asked)
        largest = max((each for each in known if each is not None), default=0)
        instead = limit_of(self._queue, limit)
        instead = largest if instead is None else instead
        return (max(largest, instead) if None in known else largest), instead

    def before(self, one: Request, other: Request) -> bool | None:
        """True if the one comes before the other; None: the journal does not tell."""
        if one.rank != other.rank:
            return one.rank > other.rank
        if _pair(one) == _pair(other) and _own(one) != _own(other) and one.rank == 0:
            return _own(one) > _own(other)
        places = self._put_back(one), self._put_back(other)
        if places != (one, other) and self._is_close(*places):
            return None
        return self._plainly(*places)

    def _put_back(self, request: Request) -> Request:
        """Return the request of its owner's behind which it is put back (``qsub -p``), else itself."""
        place = request
        better = [each for each in self._own if _pair(each) == _pair(request) and _own(each) > _own(request)]
        for each in better if request.rank == 0 else ():
            if self._plainly(place, each) or (place is request and self._is_with_others(request, each)):
                place = each
        return place

    def _is_with_others(self, request: Request, better: Request) -> bool:
        """True if it stands close behind a better one, and others of its own priority are put back behind
        that: it stays behind those."""
        alike = (each for each in self._own if _pair(each) == _pair(request) and _own(each) == _own(request))
        return self._is_close(better, request) and any(self._plainly(each, better) for each in alike)

    def _is_close(self, one: Request, other: Request) -> bool:
        """True if a request that is put back behind the one may come to stand on either side of the other."""
        if self._queue.order == "sjf":
            return abs(self._length(one) - self._length(other)) <= NEAR
        near = abs(one.date_in_queue - other.date_in_queue) <= NEAR
        if self._queue.order == "fcfs" or not (self._weights.cpu or self._weights.memory):
            return near or (self._weights.share > 0 and not self._weights.time)
        return any(abs(self._lead(one, other, now)) <= 1e-6 for now in self._instants)

    def _plainly(self, one: Request, other: Request) -> bool | None:
        """Like `before`, by the queue's order alone."""
        places = place_of(one) < place_of(other)
        if self._queue.order == "sjf":
            walls = self._length(one), self._length(other)
            return walls[0] < walls[1] if walls[0] != walls[1] else places
        return places if self._queue.order == "fcfs" else self._by_priority(one, other, places)

    def _length(self, request: Request) -> int:
        """Return how long (ms) it may run as it waited: a moldable one that started has one size only."""
        waiting = structs.replace(request, spec=while_waiting(request.spec))
        return length_of(self._site.settings, waiting)

    def _by_priority(self, one: Request, other: Request, places: bool) -> bool | None:
        weights = self._weights
        share = 0 if _pair(one) == _pair(other) else weights.share
        if share and not self._told:
            bare = without_share(self._site.settings.groups, (one.group, other.group))
            if (one.group in bare) != (other.group in bare):
                return other.group in bare
        if not (share or weights.cpu or weights.memory):
            return places
        close = CLOSE * (weights.share + weights.cpu + weights.memory + weights.time)
        leads = [self._lead(one, other, now) for now in self._instants]
        if min(leads) - share > close:
            return True
        if max(leads) + share < -close:
            return False
        alike = one.date_in_queue == other.date_in_queue and not share and max(map(abs, leads)) < close / 1e3
        return places if alike else None

    def _lead(self, one: Request, other: Request, now: Instant) -> float:
        """Return how much more priority the one has than the other, without shares."""
        longest, younger = now - self._earliest, other.date_in_queue - one.date_in_queue
        older = self._weights.time * younger / longest if longest > 0 else 0.0
        return older + self._asks(other) - self._asks(one)

    def _asks(self, request: Request) -> float:
        """Return what it loses by asking for much."""
        ask, weights, (cpu, plain_cpu), (memory, plain_memory) = (
            request.spec.ask, self._weights, self._cpu, self._memory,
        )  # fmt: skip
        own_cpu, own_memory = ask.finite_cpu(), ask.finite_memory()
        found = weights.cpu * (plain_cpu if own_cpu is None else own_cpu) / cpu if cpu else 0.0
        own = plain_memory if own_memory is None else own_memory
        return found + (weights.memory * own / memory if memory else 0.0)


def _pair(request: Request) -> tuple[str, str]:
    return request.owner, request.group


def _own(request: Request) -> int:
    return request.spec.priority or 0
