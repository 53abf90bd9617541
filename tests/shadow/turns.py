"""Who stands before whom in a queue: the manual's pages `priority` and `backfill` (``order=``)."""

from collections.abc import Collection, Sequence

from msgspec import structs
from shadow.claims import limit_of
from shadow.followed import ShadowAsked, place_of
from shadow.promises import length_of

from nqspy.model.division import without_share
from nqspy.model.ids import SECOND, Instant
from nqspy.model.molded import while_waiting
from nqspy.model.requests import Request
from nqspy.model.site import Site

CLOSE = 1e-9
"""Priorities that differ by less (of the sum of the weights) are not told apart: they are sums of
fractions."""

NEAR = 5 * SECOND
"""Who is put back behind one is surely before another who is so much (ms) further back."""


class ShadowTurns:
    """One queue in one pass, which came between two ``instants``. Divisors are those of the requests that the
    pass found: ``asked`` and ``earliest`` (date in queue) of those that wait, and those ``out`` by now.
    ``own``: those of owners who gave priorities; ``told``: an exit gave the share values."""

    def __init__(
        self,
        site: Site,
        queue: str,
        asked: ShadowAsked,
        earliest: Instant,
        out: Sequence[Request],
        own: Sequence[Request],
        instants: tuple[Instant, Instant],
        told: bool,
    ) -> None:
        self._site, self._queue, self._told = site, site.settings.queues[queue], told
        self._weights, self._instants = site.settings.weights(queue), instants
        given = {_pair(each) for each in own if _own(each)}
        self._own = [each for each in own if _pair(each) in given and each.rank == 0]
        self._earliest = min([earliest, *(each.date_in_queue for each in out)])
        asks = [each.spec.ask for each in out]
        self._cpu = self._most({*asked.cpu, *(each.finite_cpu() for each in asks)}, "cpu_limit")
        self._memory = self._most({*asked.memory, *(each.finite_memory() for each in asks)}, "memory_limit")

    def _most(self, asked: Collection[int | None], limit: str) -> tuple[int, int]:
        """What is divided by, and what one counts as who asked for nothing or without limit."""
        largest = max((each for each in asked if each is not None), default=0)
        instead = limit_of(self._queue, limit)
        instead = largest if instead is None else instead
        return (max(largest, instead) if None in asked else largest), instead

    @property
    def _by_sum(self) -> bool:
        return self._queue.order == "priority" and bool(self._weights.cpu or self._weights.memory)

    @property
    def is_plain(self) -> bool:
        """Whether of two of no rank the one with the earlier place comes first, whoever they are."""
        order = self._queue.order == "fcfs" or (self._queue.order == "priority" and not self._weights.share)
        return order and not self._by_sum and not self._own

    def before(self, one: Request, other: Request) -> bool | None:
        """Whether the one is offered before the other; None: the journal does not tell."""
        if one.rank != other.rank:
            return one.rank > other.rank
        if _pair(one) == _pair(other) and _own(one) != _own(other) and one.rank == 0:
            return _own(one) > _own(other)
        places = self._put_back(one), self._put_back(other)
        if places != (one, other) and self._is_close(*places):
            return None
        return self._plainly(*places)

    def tells(self, owner: str, group: str, request: Request) -> bool:
        """Whether the journal may tell who of these people and a request comes first: not where shares count
        more than all the rest."""
        weights = self._weights
        if self._queue.order != "priority" or (owner, group) == _pair(request):
            return True
        if weights.share < weights.cpu + weights.memory + weights.time or not weights.share:
            return True
        bare = () if self._told else without_share(self._site.settings.groups, (group, request.group))
        return (group in bare) != (request.group in bare)

    def is_last(self) -> bool:
        """Whether of one kind nobody who came later can be before one who came earlier."""
        return not self._own

    def _put_back(self, request: Request) -> Request:
        """Behind whom of his owner's own it is put back (``qsub -p``): that one, else itself."""
        place = request
        better = [each for each in self._own if _pair(each) == _pair(request) and _own(each) > _own(request)]
        for each in better if request.rank == 0 else ():
            if self._plainly(place, each) or (place is request and self._is_with_others(request, each)):
                place = each
        return place

    def _is_with_others(self, request: Request, better: Request) -> bool:
        """Whether it stands close behind a better one, and others of the same word are put back behind that:
        it stays behind those."""
        alike = (each for each in self._own if _pair(each) == _pair(request) and _own(each) == _own(request))
        return self._is_close(better, request) and any(self._plainly(each, better) for each in alike)

    def _is_close(self, one: Request, other: Request) -> bool:
        """Whether one that is put back behind the one may come to stand on either side of the other."""
        if self._queue.order == "sjf":
            return abs(self._length(one) - self._length(other)) <= NEAR
        near = abs(one.date_in_queue - other.date_in_queue) <= NEAR
        if self._queue.order == "fcfs" or not self._by_sum:
            return near or (self._weights.share > 0 and not self._weights.time)
        return any(abs(self._lead(one, other, now)) <= 1e-6 for now in self._instants)

    def _plainly(self, one: Request, other: Request) -> bool | None:
        """By the queue's order alone."""
        places = place_of(one) < place_of(other)
        if self._queue.order == "sjf":
            walls = self._length(one), self._length(other)
            return walls[0] < walls[1] if walls[0] != walls[1] else places
        if self._queue.order == "fcfs":
            return places
        return self._by_priority(one, other, places)

    def _length(self, request: Request) -> int:
        """How long (ms) it may run as it waited: a moldable one that is out by now has but one of its
        sizes."""
        waiting = structs.replace(request, spec=while_waiting(request.spec))
        return length_of(self._site.settings, waiting)

    def _by_priority(self, one: Request, other: Request, places: bool) -> bool | None:
        weights, same = self._weights, _pair(one) == _pair(other)
        share = 0 if same else weights.share
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
        """How much more the one has than the other, its share apart."""
        return self._older(one, other, now) + self._asks(other) - self._asks(one)

    def _older(self, one: Request, other: Request, now: Instant) -> float:
        longest = now - self._earliest
        return (
            self._weights.time * (other.date_in_queue - one.date_in_queue) / longest if longest > 0 else 0.0
        )

    def _asks(self, request: Request) -> float:
        """What it loses by asking for much."""
        weights, (cpu, memory) = self._weights, (self._cpu[0], self._memory[0])
        found = weights.cpu * self._cpu_of(request) / cpu if cpu else 0.0
        return found + (weights.memory * self._memory_of(request) / memory if memory else 0.0)

    def _cpu_of(self, request: Request) -> int:
        asked = request.spec.ask.finite_cpu()
        return self._cpu[1] if asked is None else asked

    def _memory_of(self, request: Request) -> int:
        asked = request.spec.ask.finite_memory()
        return self._memory[1] if asked is None else asked


def _pair(request: Request) -> tuple[str, str]:
    return request.owner, request.group


def _own(request: Request) -> int:
    return request.spec.priority or 0
