"""The site as the journal has it: settings and machine, what is broken or short, each request."""

from collections import Counter
from typing import Any, NamedTuple

from shadow.claims import Amount, has_something, held_by

from nqspy.model import events as ev
from nqspy.model import indices, transitions
from nqspy.model.events import Parted
from nqspy.model.ids import Instant, Seq, array_of, member, rank_of
from nqspy.model.requests import Request, State
from nqspy.model.site import Site
from nqspy.report.past_site import follow

_GIVES_BACK = (ev.Ended, ev.Exiting, ev.Requeued, ev.Suspended)


class Place(NamedTuple):
    """Order of requests of one kind: date in queue, then number."""

    date: Instant
    turn: int
    seq: Seq


class Followed:
    """Follows a journal. ``site``: settings and machine (its requests are not used); ``requests``: those that
    have not ended; ``broken``: broken resources; ``pressure``: how short memory is; ``unseen``: amounts and
    PEs that were given back, of which the coming pass does not know yet."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.requests: dict[Seq, Request] = {}
        self.broken: set[str] = set()
        self.pressure = "calm"
        self.unseen = Counter[Amount](), Counter[int]()

    def waiting(self, queue: str) -> list[Request]:
        """Return the queued requests of a queue, the first submitted first."""
        queued = (r for r in self.requests.values() if r.queue == queue and r.state is State.QUEUED)
        return sorted(queued, key=place_of)

    def queued(self) -> set[Seq]:
        """Return the queued requests of all queues."""
        return {request.seq for request in self.requests.values() if request.state is State.QUEUED}

    def reserved(self) -> list[Request]:
        """Return the queued requests that have a reservation."""
        return [r for r in self.requests.values() if r.state is State.QUEUED and r.reservation is not None]

    def holding(self) -> list[Request]:
        """Return the requests that run or are suspended."""
        return [request for request in self.requests.values() if has_something(request)]

    def parked(self) -> list[Request]:
        """Return suspended requests that will return and whose PEs others may have."""
        away = [each for each in self.holding() if each.pes_released and not each.ending]
        return [each for each in away if each.pause and not each.pause.cause.is_person]

    def see(self) -> None:
        """Forget what was given back: the next pass knows it."""
        self.unseen = Counter(), Counter()

    def take(self, recorded: ev.Recorded, unseen: bool = False) -> None:
        """Apply an event; ``unseen``: the coming pass did not know of it."""
        event: Any = recorded.event
        if isinstance(event, ev.Submitted):
            made = transitions.submitted(event, recorded.at)
            self.requests[made.seq] = made
        elif isinstance(event, Parted):
            for index in indices.each(event.indices):
                self._born(member(event.seq, index), recorded)
        elif type(event) in transitions.STEPS:
            for seq in event.seqs if hasattr(event, "seqs") else (event.seq,):
                request = self.requests.get(seq) or self._born(seq, recorded)
                if request is not None and transitions.fits(request, event):
                    self._step(request, recorded, unseen)
        elif isinstance(event, ev.ResourceChanged):
            (self.broken.add if event.state == "broken" else self.broken.discard)(event.name)
        elif isinstance(event, ev.PressureChanged):
            self.pressure = event.level
        elif follow(self.site, event):
            self._forget()

    def _step(self, request: Request, recorded: ev.Recorded, unseen: bool) -> None:
        if unseen and isinstance(recorded.event, _GIVES_BACK) and has_something(request):
            amounts, pes = held_by(self.site, request)
            self.unseen[0].update(amounts)
            self.unseen[1].update(pes)
        step: Any = transitions.STEPS[type(recorded.event)]
        # Events say whether age counts anew (`ev.Released.aging`).
        step.make(request, recorded.event, recorded.at, lambda request: True)
        if request.state is State.ENDED:
            del self.requests[request.seq]

    def _born(self, seq: Seq, recorded: ev.Recorded) -> Request | None:
        """Make a request of an index of an array."""
        array = self.requests.get(array_of(seq) or 0)
        if array is None or not transitions.is_in(array, seq):
            return None
        made = transitions.born(array, seq)
        transitions.part(array, seq, recorded.at)
        self.requests[seq] = made
        return made

    def _forget(self) -> None:
        """Forget results of probes that are gone, and memory pressure once it is not watched."""
        of_features, consumables = self.site.settings.of_features, self.site.settings.consumables
        probes = of_features.get("probe") or {}
        tried = tuple(f"{probe.units}[" for probe in probes.values() if probe.units in consumables)
        self.broken = {name for name in self.broken if name in probes or name.startswith(tried)}
        control = of_features.get("swap_control")
        if control is None or not control.enabled:
            self.pressure = "calm"


def place_of(request: Request) -> Place:
    """Return a request's place; an array has that of its next index, an exchanged one the other's."""
    ready = request.array.ready if request.array is not None else ()
    number = member(request.seq, indices.nth(ready, 0)) if ready else request.seq
    if request.redated is not None and request.redated.place is not None:
        number = request.redated.place
    return Place(request.date_in_queue, rank_of(number), request.seq)
