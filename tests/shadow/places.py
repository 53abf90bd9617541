"""Which PEs are free, how many of them one request can be given, and which it gets: the manual's page
`domains`, and `shifts` ("Work that outlasts its time") for those that are kept for who comes back."""

from collections.abc import Sequence

from shadow.followed import Followed

from nqspy.model.domains import APPLICATION, numbers
from nqspy.model.requests import Request
from nqspy.model.site import Site


def pes_of(site: Site, domain: str) -> Sequence[int]:
    """A domain's PEs, in ascending order: those of its own, or what no other has."""
    named = {name: numbers(each.pes) for name, each in site.settings.domains.items() if name != APPLICATION}
    if domain in named:
        return [pe for pe in named[domain] if pe < site.pes()]
    others = {pe for pes in named.values() for pe in pes}
    return [pe for pe in range(site.pes()) if pe not in others]


BY_CLASS = "class"
"""The ``order`` of queues of which the shadow does not say who is to start, nor where (manual: `classes`)."""


class ShadowBoards:
    """The free PEs of all domains as they stand; ``unseen``: to the eyes of the pass. Made anew after each
    event."""

    def __init__(self, followed: Followed, unseen: bool, known: dict[str, Sequence[int]]) -> None:
        """``known`` remembers the domains' PEs while the settings last."""
        self._followed, self._site, self._known = followed, followed.site, known
        self._away = followed.taken.unseen[1] if unseen else {}
        self._open: dict[str, list[int]] = {}
        self._room: dict[str, int] = {}

    def open(self, queue: str) -> list[int]:
        """The PEs of a queue's domain that have room, in ascending order."""
        domain = self._site.domain_of(queue)
        found = self._open.get(domain.name)
        if found is None:
            if domain.name not in self._known:
                self._known[domain.name] = pes_of(self._site, domain.name)
            offline, held, away = self._site.offline(), self._followed.taken.pes, self._away
            found = self._open[domain.name] = [
                pe
                for pe in self._known[domain.name]
                if held[pe] + away.get(pe, 0) < domain.depth and pe not in offline
            ]
        return found

    def size(self, queue: str) -> int:
        """How many PEs one request of a queue could get if nothing ran."""
        pes, domain = self._known.get(self._site.domain_of(queue).name), self._site.domain_of(queue)
        if domain.kind == "command":
            return self._site.pes()
        pes = pes if pes is not None else pes_of(self._site, domain.name)
        return max(map(len, _blocks(pes)), default=0) if domain.placement == "contiguous" else len(pes)

    def slots(self, queue: str) -> int:
        """How many PEs the requests of a queue's domain can have at a time, all together."""
        self.open(queue)
        domain, offline = self._site.domain_of(queue), self._site.offline()
        return domain.depth * sum(pe not in offline for pe in self._known[domain.name])

    def room(self, queue: str) -> int:
        """How many one request of a queue can be given now. While one is to come back for which there are too
        few, what is free is kept for it."""
        if self._site.domain_of(queue).kind == "command":
            return self._site.pes()
        if queue not in self._room:
            pes, domain = self.open(queue), self._site.domain_of(queue)
            blocks = _blocks(pes) if domain.placement == "contiguous" else [pes]
            self._room[queue] = 0 if self._is_kept(queue) else max(map(len, blocks), default=0)
        return self._room[queue]

    def _is_kept(self, queue: str) -> bool:
        """Whether somebody is to come back to a queue's domain: his queue is started, and nothing he needs is
        broken."""
        site, broken = self._site, self._followed.broken
        domain, queues = site.domain_of(queue).name, site.settings.queues
        back = (
            each
            for each in self._followed.parked()
            if each.queue in queues
            and queues[each.queue].started
            and queues[each.queue].order != BY_CLASS
            and not needs_of(site, each) & broken
        )
        return any(
            site.domain_of(each.queue).name == domain and len(each.pes) <= self.size(queue) for each in back
        )

    def asked(self, request: Request) -> int:
        """How many PEs a request is given: in a command domain none."""
        return 0 if self._site.domain_of(request.queue).kind == "command" else request.spec.ask.pes

    def expected(self, request: Request) -> tuple[int, ...]:
        """The PEs that a request gets, of which there are enough."""
        pes, count = self.open(request.queue), self.asked(request)
        placement = self._site.domain_of(request.queue).placement
        blocks = _blocks(pes)
        if placement == "contiguous":
            best = min((block for block in blocks if len(block) >= count), key=len, default=[])
            return tuple(best[:count])
        if placement == "most_packed":
            size = {pe: len(block) for block in blocks for pe in block}
            held = self._followed.taken.pes
            pes = sorted(pes, key=lambda pe: (-held[pe], size[pe], pe))
        return tuple(sorted(pes[:count]))


def _blocks(pes: Sequence[int]) -> list[list[int]]:
    """Runs of numbers without a gap."""
    found: list[list[int]] = []
    for pe in pes:
        if found and found[-1][-1] == pe - 1:
            found[-1].append(pe)
        else:
            found.append([pe])
    return found


def needs_of(site: Site, request: Request) -> set[str]:
    """The resources that a request needs: its queue's, its own, and the units it holds."""
    queue = site.settings.queues.get(request.queue)
    units = {f"{name}[{unit}]" for name, units in request.units for unit in units}
    return units | {*(queue.needs if queue is not None else ()), *request.spec.ask.needs}
