"""Which PEs are free, how many of them one request can get, and which it gets: the manual's page `domains`,
and `shifts` ("Work that outlasts its time") for those held for a request that will return."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from shadow.followed import Followed

from nqspy.model.domains import APPLICATION, Domain, numbers
from nqspy.model.requests import Request
from nqspy.model.site import Site

BY_CLASS = "class"
"""Order of queues in which the shadow does not judge which request starts, nor where (manual: `classes`)."""


def pes_of(site: Site, domain: str) -> list[int]:
    """Return a domain's PEs, in ascending order: its own, or those that no other domain has."""
    named = {name: numbers(each.pes) for name, each in site.settings.domains.items() if name != APPLICATION}
    if domain in named:
        return [pe for pe in named[domain] if pe < site.pes()]
    others = {pe for pes in named.values() for pe in pes}
    return [pe for pe in range(site.pes()) if pe not in others]


class Boards:
    """The PEs of all domains; ``held``: how many requests hold each."""

    def __init__(self, followed: Followed, held: Counter[int]) -> None:
        self._followed, self._site, self._held = followed, followed.site, held

    def _domain(self, queue: str) -> Domain:
        return self._site.domain_of(queue)

    def _usable(self, queue: str) -> list[int]:
        offline = self._site.offline()
        return [pe for pe in pes_of(self._site, self._domain(queue).name) if pe not in offline]

    def open(self, queue: str) -> list[int]:
        """Return the PEs of a queue's domain that have room, in ascending order."""
        return [pe for pe in self._usable(queue) if self._held[pe] < self._domain(queue).depth]

    def slots(self, queue: str) -> int:
        """Return how many PEs the requests of a queue's domain can have at a time, all together."""
        return self._domain(queue).depth * len(self._usable(queue))

    def size(self, queue: str) -> int:
        """Return how many PEs one request of a queue could get if nothing ran."""
        if self._domain(queue).kind == "command":
            return self._site.pes()
        return self._largest(queue, pes_of(self._site, self._domain(queue).name))

    def room(self, queue: str) -> int:
        """Return how many PEs one request of a queue can get now. Free PEs are held for a parked request that
        will return."""
        if self._domain(queue).kind == "command":
            return self._site.pes()
        return 0 if self._is_awaited(queue) else self._largest(queue, self.open(queue))

    def _largest(self, queue: str, pes: Sequence[int]) -> int:
        blocks = _blocks(pes) if self._domain(queue).placement == "contiguous" else [list(pes)]
        return max(map(len, blocks), default=0)

    def _is_awaited(self, queue: str) -> bool:
        """True if a request can return to a queue's domain."""
        queues, domain = self._site.settings.queues, self._domain(queue).name
        return any(
            each.queue in queues
            and queues[each.queue].started
            and queues[each.queue].order != BY_CLASS
            and not needs_of(self._site, each) & self._followed.broken
            and self._domain(each.queue).name == domain
            and len(each.pes) <= self.size(queue)
            for each in self._followed.parked()
        )

    def asked(self, request: Request) -> int:
        """Return how many PEs a request is given: in a command domain none."""
        return 0 if self._domain(request.queue).kind == "command" else request.spec.ask.pes

    def expected(self, request: Request) -> tuple[int, ...]:
        """Return the PEs that the placement gives to a request that fits."""
        pes, count = self.open(request.queue), self.asked(request)
        placement, blocks = self._domain(request.queue).placement, _blocks(pes)
        if placement == "contiguous":
            return tuple(min((block for block in blocks if len(block) >= count), key=len, default=[])[:count])
        if placement == "most_packed":
            size = {pe: len(block) for block in blocks for pe in block}
            pes = sorted(pes, key=lambda pe: (-self._held[pe], size[pe], pe))
        return tuple(sorted(pes[:count]))


def _blocks(pes: Sequence[int]) -> list[list[int]]:
    """Return runs of numbers without a gap."""
    runs = groupby(enumerate(pes), key=lambda each: each[1] - each[0])
    return [[pe for _, pe in run] for _, run in runs]


def needs_of(site: Site, request: Request) -> set[str]:
    """Return the resources that a request needs: its queue's, its own, and the units it holds."""
    queue = site.settings.queues.get(request.queue)
    units = {f"{name}[{unit}]" for name, units in request.units for unit in units}
    return units | {*(queue.needs if queue is not None else ()), *request.spec.ask.needs}
