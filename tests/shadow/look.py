"""One pass, step by step: was each start allowed, did none stand before it that could have started, is none
left that could."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from shadow.claims import has_something
from shadow.followed import Followed
from shadow.order import Order
from shadow.places import BY_CLASS
from shadow.reservations import FOREVER, Plan
from shadow.rules import NOW, Blocked, Moment, blocked, waits_for_room_alone

from nqspy.model import events as ev
from nqspy.model.ids import SECOND, Instant, Seq, array_of, index_of
from nqspy.model.indices import nth
from nqspy.model.queues import Queue
from nqspy.model.requests import Request, Reservation, State
from nqspy.model.specs import sized

NEXT = 2
"""Rank of ``schedule request ID next``: ahead of everything."""
LATE = 2 * SECOND
"""ms after its reserved instant from which a start is late."""
_REFUSED = ("EXIT", "NEVER", "LINE_CLOSED")
"""Codes of reasons that an exit gives."""

BLIND = ("the journal does not say which exits were asked", "an exit had a say in what starts (jobselect)")
"""Doubts that leave nothing more to find."""
CLASSES = "job classes decided which request was loaded"
CLOSE = "two stood too close, or the shortest was tried first"
SHARES = ("shares decided which was first", "shares decided which was first (shrpri)")
SIZES = "one that may run on several numbers of PEs may have waited for another size"
BEFORE = "another may have stood before it"
PASSED_BY = "it was started before one that stood before it"
LEFT = "it was left waiting, and nothing kept it from starting"
OTHER_PES = "it got other PEs than it may have: held, of another domain, or too few"
OTHER_UNITS = "it got other units than it asked for, or some that another one had"
OTHER_INDEX = "it was not the next index of its array"
DROPPED = "a start may have been dropped when the plan came"


class Difference(Struct, frozen=True):
    """A pass differs from the rules. ``n``: number of its decision (of the last event, where no pass came);
    ``seq``: the request; ``before``: the other one, if it is about two."""

    at: Instant
    n: int
    seq: Seq
    text: str
    before: Seq | None = None


class Decision(NamedTuple):
    """A pass, as the journal has it. It came between ``first`` and ``last``; ``unseen``: requests of which it
    did not know the latest; ``dropped``: True if one of its starts may have been left out, as something
    happened meanwhile; ``exits``: hooks that were asked, None if the journal does not say; ``wait``: codes of
    the reasons that it gave; ``made``: reservations that it made, moved or took back; ``starts``: requests
    (arrays) of which it started something; ``n`` like `Difference.n`."""

    n: int
    first: Instant
    last: Instant
    unseen: Collection[Seq] = ()
    dropped: bool = False
    exits: Collection[str] | None = None
    wait: Mapping[Seq, str] = {}
    made: Mapping[Seq, Reservation | None] = {}
    starts: Collection[Seq] = ()


class PassLook:
    """Judges one pass. ``differences`` found so far; ``doubts``: why not all could be judged; ``moved``:
    requests that the pass put into another queue, whose turn comes with the next one."""

    def __init__(self, followed: Followed, decision: Decision) -> None:
        self._followed, self._decision = followed, decision
        self.differences: list[Difference] = []
        self.doubts: set[str] = set()
        self.moved: set[Seq] = set()
        self._out: list[Request] = []
        self._begun: list[Seq] = []
        self._found = {each.seq: (each.queue, each.reservation) for each in followed.reserved()}
        self._orders: dict[str, Order] = {}
        queues = followed.site.settings.queues.values()
        judged = (each for each in queues if each.kind == "batch" and each.order != BY_CLASS)
        self._served = sorted(judged, key=lambda each: -each.priority)
        self.refresh()

    def refresh(self) -> None:
        """Forget what is known: something of the pass has happened."""
        self._moments: dict[bool, Moment] = {}
        self._plans: dict[object, Sequence[Plan]] = {}
        self._known: dict[Seq, Blocked | None] = {}

    # ------------------------------------------------------------ a start
    def start(self, event: ev.Starting) -> None:
        """Judge a start before it happens."""
        requests = self._followed.requests
        request = requests.get(event.seq) or requests.get(array_of(event.seq) or 0)
        if request is None:
            return self._differs(event.seq, "it was started, and there was no such request")
        request = sized(request, len(event.pes))
        why = self._blocked(request, False, event.forced)
        if why is not None and why.sure:
            self._differs(event.seq, f"it was started, and {why.text}")
        elif why is not None:
            self.doubts.add(why.text)
        self._look_at_places(request, event)
        if self._queue(request).order == BY_CLASS:
            self.doubts.add(CLASSES)
        elif request.state is State.QUEUED and not event.forced:
            self._begun += [event.seq] if request.rank < NOW else []
            self._look_at_turn(request, event.seq)
            self._look_at_reservation(request, event.seq)
        return self._out.append(request)

    def _differs(self, seq: Seq, text: str, before: Seq | None = None) -> None:
        self.differences.append(Difference(self._decision.last, self._decision.n, seq, text, before))

    def _look_at_places(self, request: Request, event: ev.Starting) -> None:
        """Judge the PEs and units that it got."""
        moment, queue = self._moment(False), request.queue
        places, pes = moment.places, set(event.pes)
        if not len(event.pes) == len(pes) == places.asked(request) or not pes <= set(places.open(queue)):
            self._differs(event.seq, OTHER_PES)
        elif self._queue(request).order != BY_CLASS and not self._followed.parked():
            expected = places.expected(request)
            if event.pes != expected and not any(self._followed.unseen) and not self._decision.dropped:
                self._differs(event.seq, f"it got PEs {event.pes}, and {expected} were its own")
        given = {name: len(set(units)) for name, units in event.units}
        held = any((name, unit) in moment.units for name, units in event.units for unit in units)
        if given != dict(request.spec.ask.consumables) or held:
            self._differs(event.seq, OTHER_UNITS)
        index, array = index_of(event.seq), request.array
        if index is not None and array is not None and (not array.ready or nth(array.ready, 0) != index):
            self._differs(event.seq, OTHER_INDEX)

    def _look_at_reservation(self, request: Request, seq: Seq) -> None:
        told = self._decision.made.get(request.seq) or request.reservation
        late = told is not None and told.at is not None and self._decision.last > told.at + LATE
        # Where requests take chances the time is no reservation.
        if late and told is not None and not told.late and self._queue(request).backfill != "probable":
            self._differs(seq, "it was started later than it was promised")

    # ------------------------------------------------------------ which request has its turn
    def _look_at_turn(self, request: Request, seq: Seq) -> None:
        """Judge whether none stood before it that could have started instead."""
        own = self._queue(request)
        urgent = any(each.rank >= NEXT for queue in self._served for each in self._waiting(queue))
        for queue in self._served:
            if queue.priority < own.priority and not urgent:
                break
            for other in self._judged(queue):
                ahead = self._is_ahead(other, request) if other.seq != request.seq else False
                if ahead is False or ((why := self._why_waits(other)) and why.sure):
                    continue
                doubt = self._doubt(other, why, ahead)
                if doubt is None:
                    return self._differs(seq, PASSED_BY, other.seq)
                self.doubts.add(doubt)
                if doubt in BLIND:
                    return None
        return None

    def _is_ahead(self, other: Request, request: Request) -> bool | None:
        """True if the other one has its turn before; None: the journal does not tell."""
        ranks = [each.rank if each.rank >= NEXT else 0 for each in (other, request)]
        if ranks[0] != ranks[1]:
            return ranks[0] > ranks[1]
        queue = self._queue(request)
        if other.queue != request.queue:
            return self._queue(other).priority > queue.priority
        if queue.reserve != 0 or queue.backfill == "none" or queue.backfill_order == "shortest":
            if request.reservation is not None or other.reservation is not None:
                return request.reservation is None
            if queue.backfill_order == "shortest":
                return None
        waiting = self._followed.requests.get(request.seq, request)  # before it got its size
        return self._order(queue.name).before(other, waiting)

    def _doubt(self, other: Request, why: Blocked | None, ahead: bool | None) -> str | None:
        """Return why it is not sure that another one had to start; None: it had to."""
        exits = self._decision.exits
        if why is not None:
            return why.text
        if self._decision.dropped:
            return DROPPED
        if other.spec.mold is not None:
            return SIZES
        if exits is None or "jobselect" in exits:
            return BLIND[exits is not None]
        if ahead is None:
            shares = self._followed.site.settings.weights(other.queue).share
            return SHARES["shrpri" in exits] if shares else CLOSE
        return None

    def _waiting(self, queue: Queue) -> list[Request]:
        return self._followed.waiting(queue.name)

    def _judged(self, queue: Queue) -> list[Request]:
        """Return the requests of a queue with free PEs that the pass knew and no exit refused."""
        if not queue.started or not self._moment(True).places.open(queue.name):
            return []
        return [each for each in self._waiting(queue) if not self._is_unseen(each)]

    def _is_unseen(self, other: Request) -> bool:
        decision = self._decision
        unknown = other.seq in decision.unseen or other.seq in self.moved
        return unknown or decision.wait.get(other.seq) in _REFUSED

    # ------------------------------------------------------------ which requests are left
    def left(self) -> None:
        """Judge whether there is room for the reservations beside the starts, and none is left that had to
        start; of each queue one is named."""
        reserved = {each.seq: each.reservation for each in self._followed.reserved()}
        if reserved and self._begun:
            plan, requests = Plan(self._moment(False), reserved, True), self._followed.requests
            for seq in self._begun:
                if seq in requests and has_something(requests[seq]) and plan.is_short(requests[seq]):
                    self._differs(seq, "it was started, and would hold what was kept for a promised start")
        for queue in self._served:
            if self.doubts.isdisjoint(BLIND):
                self._look_at_queue(queue)

    def _look_at_queue(self, queue: Queue) -> None:
        for request in self._judged(queue):
            why = self._why_waits(request)
            if why is not None and why.sure:
                continue
            doubt = self._doubt(request, why, True)
            if doubt is None:
                return self._differs(request.seq, LEFT)
            self.doubts.add(doubt)
            if doubt in BLIND:
                return None
        return None

    # ------------------------------------------------------------ which request could start
    def _why_waits(self, request: Request) -> Blocked | None:
        """Return why a request that waits may not start."""
        queue, why = self._queue(request), self._alone(request)
        return self._barred(queue, request) if why is None and queue.backfill == "none" else why

    def _alone(self, request: Request) -> Blocked | None:
        """The same, whatever stands before it."""
        if request.seq not in self._known:
            self._known[request.seq] = self._blocked(request, True)
        return self._known[request.seq]

    def _blocked(self, request: Request, unseen: bool, forced: bool = False) -> Blocked | None:
        """Return why a request may not start; ``unseen`` as in `Moment`."""
        why = blocked(self._moment(unseen), request, forced)
        if (why is not None and why.sure) or forced or request.rank == NOW:
            return why
        swept = self._as_found(request.queue) if unseen and self._is_early(request) else ()
        for plan in (*self._plans_of(unseen), *swept):
            why = plan.delays(request) or why
            if why is not None and why.sure:
                return why
        if why is None and not unseen and self._queue(request).backfill == "none":
            why = self._barred(self._queue(request), request)
        return why

    def _is_early(self, request: Request) -> bool:
        """True if a request had a reservation before the pass, and its time has not come."""
        _, told = self._found.get(request.seq, ("", None))
        return told is not None and (told.at is None or told.at > self._decision.last)

    def _barred(self, queue: Queue, request: Request) -> Blocked | None:
        """Return why one before it blocks the queue, where no request may pass (``backfill=none``). Of a
        request with a reservation only an earlier reservation does."""
        own, perhaps = request.reservation is not None, None
        if own and not self._is_early(request):
            return None
        for other in self._waiting(queue):
            if other.seq == request.seq or (not own and self._is_unseen(other)):
                continue
            if own and (other.reservation is None or _time_of(other) >= _time_of(request)):
                continue
            why = self._alone(other)
            waits = why is not None and why.room and waits_for_room_alone(self._moment(True), other)
            chooses = why is None and other.spec.mold is not None
            ahead = True if own else self._is_ahead(other, request)
            if waits and ahead:
                return Blocked("another one that waited for room stood before it")
            if not own and ahead is not False and (waits or chooses or (why is not None and not why.sure)):
                perhaps = perhaps or Blocked(SIZES if chooses else BEFORE, False)
        return perhaps

    # ------------------------------------------------------------ plans and orders
    def _moment(self, unseen: bool) -> Moment:
        if unseen not in self._moments:
            first, last = self._decision.first, self._decision.last
            self._moments[unseen] = Moment(self._followed, first, last, unseen)
        return self._moments[unseen]

    def _plans_of(self, unseen: bool) -> Sequence[Plan]:
        """Return the plans while the pass goes on: a start must not delay a reservation that the pass left as
        it was; a request that had to start delays neither those that it found nor those that it made."""
        if unseen not in self._plans:
            made, moment = self._decision.made, self._moment(unseen)
            found = {each.seq: each.reservation for each in self._followed.reserved()}
            left = {seq: told for seq, told in found.items() if seq not in {*made, *self._decision.starts}}
            sets = ([found, found | dict(made)] if made else [found]) if unseen else [left]
            self._plans[unseen] = [Plan(moment, each, not unseen) for each in sets]
        return self._plans[unseen]

    def _as_found(self, queue: str) -> Sequence[Plan]:
        """Return the plan of a queue's reservations as the pass found them, beside those of other queues:
        reservations are gone through once, in the order of their queue, so none there gains by what another
        one left after its turn."""
        if queue not in self._plans:
            told = {each.seq: each.reservation for each in self._followed.reserved()}
            own = {seq: each for seq, (name, each) in self._found.items() if name == queue and each}
            last = self._decision.last
            early = {seq: each for seq, each in own.items() if each.at is None or each.at > last}
            self._plans[queue] = [Plan(self._moment(True), told | early, False, early)]
        return self._plans[queue]

    def _queue(self, request: Request) -> Queue:
        return self._followed.site.settings.queues[request.queue]

    def _order(self, queue: str) -> Order:
        if queue not in self._orders:
            out = [each for each in self._out if each.queue == queue]
            found = [*self._followed.waiting(queue), *out]
            instants, exits = (self._decision.first, self._decision.last), self._decision.exits or ()
            self._orders[queue] = Order(self._followed.site, queue, found, instants, "shrpri" in exits)
        return self._orders[queue]

    def remember_orders(self) -> None:
        """Keep each queue's order by the dates that the pass found: they are about to change."""
        for queue in self._served:
            if self._waiting(queue):
                self._order(queue.name)


def _time_of(request: Request) -> tuple[int, int, Seq]:
    """Return the order of reservations: by time, then which was made before."""
    told = request.reservation
    at, turn = (None, 0) if told is None else (told.at, told.turn)
    return FOREVER if at is None else at, turn, request.seq
