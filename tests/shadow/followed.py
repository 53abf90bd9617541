"""The site as the journal tells it, event by event: settings and machine, what is broken or short, who waits
and who has what. What an event makes of a request `model.transitions` says; all else is kept here."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from shadow.claims import LimitsInForce, Taken, has_something, memory_of, scopes

from nqspy.model import events as ev
from nqspy.model import indices, transitions
from nqspy.model.array_events import Parted
from nqspy.model.ids import Instant, Seq, array_of, member, rank_of
from nqspy.model.requests import Request, State, finite
from nqspy.model.site import Site
from nqspy.report.site_then import follow


class ShadowPlace(NamedTuple):
    """What orders requests of one kind: date in queue, then number."""

    date: Instant
    turn: int
    seq: Seq


NEXT = 2
"""Rank of ``schedule request ID next``: ahead of everything."""
Kind = tuple[object, ...]
"""Requests of one kind may all start or none of them: they are of one person and ask for the same."""
_STAY = (ev.Started, ev.Deleting)
"""Events that change neither what a request has nor where it waits."""
_GIVES_BACK = (ev.Ended, ev.Exiting, ev.Requeued, ev.Suspended)


class ShadowAsked:
    """What the queued requests of a queue ask for: how many ask for how much CPU time, and memory."""

    def __init__(self) -> None:
        self.cpu = Counter[int | None]()
        self.memory = Counter[int | None]()

    def count(self, request: Request, sign: int) -> None:
        """One more of it, or one less."""
        ask = request.spec.ask
        for counts, asked in ((self.cpu, ask.cpu_wanted()), (self.memory, ask.memory_wanted())):
            counts[finite(asked)] += sign
            if not counts[finite(asked)]:
                del counts[finite(asked)]


class Followed:
    """``site`` has the settings and the machine (its requests are not used); ``requests``: those that have
    not ended; ``waiting``: queued ones, by queue and kind, in order; of these ``promised`` have a promise,
    ``urgent`` an operator put ahead of everything, ``own`` counts by queue those to which their owners gave a
    priority, ``asked`` is what they ask for; ``broken``: resources that are; ``pressure``: how the memory
    stands."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.requests: dict[Seq, Request] = {}
        self.waiting: dict[str, dict[Kind, list[ShadowPlace]]] = {}
        self.broken: set[str] = set()
        self.pressure = "calm"
        self.limits = LimitsInForce(site)
        self.taken = Taken(self.limits)
        self.promised: dict[Seq, None] = {}
        self.urgent: dict[Seq, None] = {}
        self.own = Counter[str]()
        self.asked: dict[str, ShadowAsked] = {}
        self._where: dict[Seq, tuple[str, Kind, ShadowPlace]] = {}
        self._looks: dict[str, tuple[bool, bool, bool]] = {}

    def take(self, recorded: ev.Recorded, unseen: bool = False) -> None:
        """Takes an event; ``unseen``: the pass that comes next did not know of it."""
        event: Any = recorded.event
        kind = type(event)
        if kind is ev.Submitted:
            self._enter(transitions.submitted(event, recorded.at))
        elif kind is Parted:
            for index in indices.each(event.indices):
                self._born(member(event.seq, index), recorded)
        elif kind in transitions.STEPS:
            for seq in event.seqs if hasattr(event, "seqs") else (event.seq,):
                request = self.requests.get(seq) or self._born(seq, recorded)
                if request is not None and transitions.fits(request, event):
                    self._step(request, recorded, unseen)
        elif kind is ev.ResourceChanged:
            (self.broken.add if event.state == "broken" else self.broken.discard)(event.name)
        elif kind is ev.PressureChanged:
            self.pressure = event.level
        elif follow(self.site, event):
            self._resettle()
            self._forget()

    def _step(self, request: Request, recorded: ev.Recorded, unseen: bool) -> None:
        event, make = recorded.event, transitions.STEPS[type(recorded.event)].make
        if isinstance(event, _STAY):
            return make(request, event, recorded.at, _anew)
        self._leave(request, unseen and isinstance(event, _GIVES_BACK))
        make(request, event, recorded.at, _anew)
        if request.state is State.ENDED:
            del self.requests[request.seq]
        else:
            self._enter(request)
        return None

    def _born(self, seq: Seq, recorded: ev.Recorded) -> Request | None:
        """An index of an array becomes a request of its own."""
        array = self.requests.get(array_of(seq) or 0)
        if array is None or not transitions.is_in(array, seq):
            return None
        self._leave(array, False)
        made = transitions.born(array, seq)
        transitions.part(array, seq, recorded.at)
        self._enter(array)
        self._enter(made)
        return made

    # ------------------------------------------------------------ where they stand

    def _enter(self, request: Request) -> None:
        seq = request.seq
        self.requests[seq] = request
        if request.state is State.QUEUED:
            kind, place = self._kind(request), place_of(request)
            self._where[seq] = request.queue, kind, place
            insort(self.waiting.setdefault(request.queue, {}).setdefault(kind, []), place)
            if request.reservation is not None:
                self.promised[seq] = None
            if request.rank >= NEXT:
                self.urgent[seq] = None
            self.own[request.queue] += bool(request.spec.priority)
            self.asked.setdefault(request.queue, ShadowAsked()).count(request, 1)
        elif has_something(request):
            self.taken.add(request)

    def _leave(self, request: Request, unseen: bool) -> None:
        if request.seq in self._where:
            queue, kind, place = self._where.pop(request.seq)
            line = self.waiting[queue][kind]
            del line[bisect_left(line, place)]
            if not line:
                del self.waiting[queue][kind]
            self.promised.pop(request.seq, None)
            self.urgent.pop(request.seq, None)
            self.own[queue] -= bool(request.spec.priority)
            self.asked[queue].count(request, -1)
        elif request.seq in self.taken.requests:
            self.taken.drop(request.seq, unseen)

    def _resettle(self) -> None:
        """Other settings: who is of one kind may be told apart now, and others may have taken something."""
        self._looks.clear()
        self.limits.forget()
        for request in [self.requests[seq] for seq in (*self._where, *self.taken.requests)]:
            self._leave(request, False)
            self._enter(request)

    def _forget(self) -> None:
        """What a probe found that is no more is forgotten, and how the memory stood once nobody looks."""
        of_features, consumables = self.site.settings.of_features, self.site.settings.consumables
        probes = of_features.get("probe") or {}
        tried = {f"{each.units}[" for each in probes.values() if each.units in consumables}
        self.broken = {name for name in self.broken if name in probes or name.startswith(tuple(tried))}
        control = of_features.get("swap_control")
        if control is None or not control.enabled:
            self.pressure = "calm"

    def _kind(self, request: Request) -> Kind:
        """Only what some rule looks at tells kinds apart; one with a promise, or whose array has a limit of
        its own, or whom an operator has start now, is a kind of its own."""
        ask, spec = request.spec.ask, request.spec
        looks = self._looks.get(request.queue) or self._look(request.queue)
        single = spec.contract or spec.array is not None or spec.mold is not None
        apart = request.reservation is not None or single or request.rank > 0
        return (
            *(request.owner, request.group, ask.pes, ask.needs, ask.consumables),
            (memory_of(self.site.settings, request.queue, ask), ask.memory_wanted()) if looks[0] else 0,
            ask.wall if looks[1] else 0,
            ask.cpu_wanted() if looks[2] else 0,
            request.seq if apart else 0,
        )

    def _look(self, queue: str) -> tuple[bool, bool, bool]:
        """Whether some rule looks at memory, at wall times, at CPU times of the requests of a queue."""
        settings, weights = self.site.settings, self.site.settings.weights(queue)
        limited = any(scope.memory_limit is not None for _, scope in scopes(settings, queue))
        memory, cpu = limited or weights.memory > 0, weights.cpu > 0
        own = settings.queues.get(queue)
        plans = any(each.reserve != 0 for each in settings.queues.values())
        drains = any(shift.spill == "drain" for shift in settings.shifts.values())
        sjf = own is not None and own.order == "sjf"
        found = self._looks[queue] = memory, plans or drains or sjf, cpu
        return found

    # ------------------------------------------------------------ asked by the rules

    def in_queue(self, queue: str) -> Iterator[Request]:
        """The queued requests of a queue, kind by kind."""
        for line in self.waiting.get(queue, {}).values():
            for place in line:
                yield self.requests[place.seq]

    def parked(self) -> Iterator[Request]:
        """Suspended requests whose PEs others may have, and that nobody asked to end."""
        return (each for each in self.taken.requests.values() if each.pes_released and not each.ending)


def is_apart(kind: Kind) -> bool:
    """Whether it is a kind of one request."""
    return bool(kind[-1])


def place_of(request: Request) -> ShadowPlace:
    """Its place; an array has that of its next index, one that exchanged its place the other's."""
    ready = request.array.ready if request.array is not None else ()
    number = member(request.seq, indices.nth(ready, 0)) if ready else request.seq
    if request.redated is not None and request.redated.place is not None:
        number = request.redated.place
    return ShadowPlace(request.date_in_queue, rank_of(number), request.seq)


def _anew(request: Request) -> bool:
    """Events say whether age counts anew (`ev.Released.aging`)."""
    return True
