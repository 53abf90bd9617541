"""One pass, looked at step by step: was each start allowed, did nobody stand before it who could have
started, is nobody left who could."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from shadow.doubts import BEFORE, BLIND, CLASSES, CLOSE, SHARES, SIZES
from shadow.followed import NEXT, Followed, Kind, ShadowAsked, ShadowPlace, is_apart, place_of
from shadow.places import BY_CLASS, ShadowBoards
from shadow.promises import FOREVER, Plans
from shadow.rules import NOW, PassMoment, RoomKept, kept_back, waits_for_room_alone
from shadow.turns import ShadowTurns

from nqspy.model import events as ev
from nqspy.model.ids import SECOND, Instant, Seq, array_of, index_of
from nqspy.model.indices import nth
from nqspy.model.molded import sized
from nqspy.model.queues import Queue
from nqspy.model.requests import Request, State
from nqspy.model.reservation import Reservation

LATE = 2 * SECOND
"""ms after its promised instant from which a start is late."""
_REFUSED = ("EXIT", "NEVER", "LINE_CLOSED")
"""Codes of the reasons that an exit gives."""


class ShadowDifference(Struct, frozen=True):
    """What a pass did otherwise than the rules say. ``n``: number of its decision (of the last event, where
    no pass came); ``seq``: the request; ``before``: the other one, if it is about two."""

    at: Instant
    n: int
    seq: Seq
    text: str
    before: Seq | None = None


class SeenDecision(NamedTuple):
    """What a pass said and what is known of it. It came between ``first`` and ``last``; ``unseen``: the
    requests of which it did not know something that had happened; ``exits``: hooks that were asked, None
    where the journal does not say; ``wait``: codes of the reasons that it gave; ``made``: the promises that
    it made, moved or took back; ``starts``: the requests (arrays) that it started something of; ``n`` as of
    `ShadowDifference`."""

    n: int
    first: Instant
    last: Instant
    unseen: Collection[Seq] = ()
    exits: Collection[str] | None = None
    wait: Mapping[Seq, str] = {}
    made: Mapping[Seq, Reservation | None] = {}
    starts: Collection[Seq] = ()


class PassLook:
    """``differences`` found so far; ``doubts``: why not all of it could be judged; ``moved``: requests that
    the pass put into another queue, whose turn comes with the next one."""

    def __init__(self, followed: Followed, decision: SeenDecision, pes: dict[str, Sequence[int]]) -> None:
        """``pes`` as of `ShadowBoards`."""
        self._followed, self._decision, self._pes = followed, decision, pes
        self.differences: list[ShadowDifference] = []
        self.doubts: set[str] = set()
        self.moved: set[Seq] = set()
        self._out: dict[str, list[Request]] = {}
        self._begun: list[Seq] = []
        found = {seq: followed.requests[seq] for seq in followed.promised}
        self._found = {seq: (each.queue, each.reservation) for seq, each in found.items()}
        self._turns: dict[str, ShadowTurns] = {}
        queues = followed.site.settings.queues.values()
        self._served = sorted(
            (each for each in queues if each.kind == "batch" and each.order != BY_CLASS),
            key=lambda each: -each.priority,
        )
        self.refresh()

    def refresh(self) -> None:
        """Something of the pass has happened: all is looked at anew."""
        self._moments: dict[bool, PassMoment] = {}
        self._laid: dict[bool, Sequence[Plans]] = {}
        self._swept: dict[str, Plans] = {}
        self._known: dict[tuple[str, Kind], RoomKept | None] = {}

    # ------------------------------------------------------------ a start

    def start(self, event: ev.Starting) -> None:
        """Looks at a start before it happens."""
        requests = self._followed.requests
        request = requests.get(event.seq) or requests.get(array_of(event.seq) or 0)
        if request is None:
            return self._differs(event.seq, "it was started, and there was no such request")
        request = sized(request, len(event.pes))
        kept = self._kept(request, False, event.forced)
        if kept is not None and kept.sure:
            self._differs(event.seq, f"it was started, and {kept.text}")
        elif kept is not None:
            self.doubts.add(kept.text)
        self._look_at_places(request, event)
        if self._queue(request).order == BY_CLASS:
            self.doubts.add(CLASSES)
        elif request.state is State.QUEUED and not event.forced:
            self._begun += [event.seq] if request.rank < NOW else []
            self._look_at_turn(request, event.seq)
            self._look_at_promise(request, event.seq)
        return self._out.setdefault(request.queue, []).append(request)

    def _differs(self, seq: Seq, text: str, before: Seq | None = None) -> None:
        self.differences.append(ShadowDifference(self._decision.last, self._decision.n, seq, text, before))

    def _look_at_places(self, request: Request, event: ev.Starting) -> None:
        """The PEs and units that it got."""
        taken, places, asked = self._followed.taken, self._moment(False).places, request.spec.ask
        pes = set(event.pes)
        wanted, open_ = places.asked(request), set(places.open(request.queue))
        if not len(event.pes) == len(pes) == wanted or not pes <= open_:
            self._differs(event.seq, "it got other PEs than it may have: held, of another domain, or too few")
        elif self._is_told_where(request) and not any(self._followed.parked()) and not any(taken.unseen):
            expected = places.expected(request)
            if event.pes != expected:
                self._differs(event.seq, f"it got PEs {event.pes}, and {expected} were its own")
        given = {name: len(set(units)) for name, units in event.units}
        held = any((name, unit) in taken.units for name, units in event.units for unit in units)
        if given != dict(asked.consumables) or held:
            self._differs(event.seq, "it got other units than it asked for, or some that another one had")
        index, array = index_of(event.seq), request.array
        if index is not None and array is not None and (not array.ready or nth(array.ready, 0) != index):
            self._differs(event.seq, "it was not the next index of its array")

    def _is_told_where(self, request: Request) -> bool:
        """Whether the manual says which of the free PEs it gets."""
        return self._queue(request).order != BY_CLASS

    def _look_at_promise(self, request: Request, seq: Seq) -> None:
        told = self._decision.made.get(request.seq) or request.reservation
        late = told is not None and told.at is not None and self._decision.last > told.at + LATE
        sure = (
            self._queue(request).backfill != "probable"
        )  # where chances are taken a time is told, no promise
        if late and sure and told is not None and not told.late:
            self._differs(seq, "it was started later than it was promised")

    # ------------------------------------------------------------ whose turn it is

    def _look_at_turn(self, request: Request, seq: Seq) -> None:
        """Whether nobody stood before it who could have started instead."""
        own, mine = self._queue(request), place_of(request)
        for queue in self._served:
            if queue.priority < own.priority and not self._followed.urgent:
                break
            plain = queue is own and self._is_plain(own)
            for kind, line in self._lines(queue):
                if not is_apart(kind) and (
                    (plain and line[0] > mine) or self._tells_nothing(queue, kind, request)
                ):
                    continue
                other = self._ahead_of(request, queue, kind, line)
                if other is not None:
                    return self._differs(seq, "it was started before one that stood before it", other)
                if self._is_blind():
                    return None
        return None

    def _is_plain(self, queue: Queue) -> bool:
        """Whether places alone say who comes first in a queue."""
        return not _passes(queue) and self._turns_of(queue.name).is_plain

    def _tells_nothing(self, queue: Queue, kind: Kind, request: Request) -> bool:
        """Whether shares decide between one of another kind and a request, which is noted already."""
        if queue.name != request.queue or self.doubts.isdisjoint(SHARES):
            return False
        return not self._turns_of(queue.name).tells(str(kind[0]), str(kind[1]), request)

    def _is_blind(self) -> bool:
        """Whether nothing more can be said of who had to start: exits had a say in it."""
        return not self.doubts.isdisjoint(BLIND)

    def _ahead_of(
        self, request: Request, queue: Queue, kind: Kind, line: Sequence[ShadowPlace]
    ) -> Seq | None:
        """Somebody of one kind who surely had to start before; notes who perhaps had."""
        for place in line:
            other = self._followed.requests[place.seq]
            if other.seq == request.seq or self._is_unseen(other):
                continue
            ahead = self._is_ahead(other, request)
            if ahead is not False:
                kept = self._of_kind(queue, kind, line)
                if kept is not None and kept.sure:
                    break
                doubt = self._doubt(other, kept, ahead)
                if doubt is None:
                    return other.seq
                self.doubts.add(doubt)
            if other.queue != request.queue or self._turns_of(other.queue).is_last():
                break
        return None

    def _is_ahead(self, other: Request, request: Request) -> bool | None:
        """Whether the other one has its turn before; None: the journal does not tell."""
        ranks = [each.rank if each.rank >= NEXT else 0 for each in (other, request)]
        if ranks[0] != ranks[1]:
            return ranks[0] > ranks[1]
        if other.queue != request.queue:
            return self._queue(other).priority > self._queue(request).priority
        queue = self._queue(request)
        if _passes(queue):
            if request.reservation is not None or other.reservation is not None:
                return request.reservation is None
            if queue.backfill_order == "shortest":
                return None
        waiting = self._followed.requests.get(request.seq, request)  # not as of the size that it got
        return self._turns_of(queue.name).before(other, waiting)

    def _doubt(self, other: Request, kept: RoomKept | None, ahead: bool | None) -> str | None:
        """Why it cannot be said that another one had to start; None: it had to."""
        exits = self._decision.exits
        if kept is not None:
            return kept.text
        if other.spec.mold is not None:
            return SIZES
        if exits is None or "jobselect" in exits:
            return BLIND[exits is not None]
        if ahead is None:
            shares = self._followed.site.settings.weights(other.queue).share
            return SHARES["shrpri" in exits] if shares else CLOSE
        return None

    def _is_unseen(self, other: Request) -> bool:
        """Whether the pass did not know it as it is, or it was refused by an exit."""
        decision = self._decision
        known = other.seq not in decision.unseen and other.seq not in self.moved
        return not known or decision.wait.get(other.seq) in _REFUSED

    # ------------------------------------------------------------ who is left

    def left(self) -> None:
        """Whether what the pass promised is there with what it started, and nobody is left who had to start;
        of each queue one is named."""
        self._look_at_room()
        for queue in self._served:
            if not self._is_blind():
                self._look_at_queue(queue)

    def _look_at_queue(self, queue: Queue) -> None:
        requests = self._followed.requests
        for kind, line in self._lines(queue):
            kept = self._of_kind(queue, kind, line)
            seq = next((each.seq for each in line if not self._is_unseen(requests[each.seq])), None)
            if seq is None or (kept is not None and kept.sure):
                continue
            doubt = self._doubt(requests[seq], kept, True)
            if doubt is None:
                return self._differs(seq, "it was left waiting, and nothing kept it from starting")
            self.doubts.add(doubt)
            if self._is_blind():
                return None
        return None

    def _look_at_room(self) -> None:
        requests, promised = self._followed.requests, self._followed.promised
        if not promised or not self._begun:
            return
        plans = Plans(self._moment(False), {seq: requests[seq].reservation for seq in promised}, True)
        for seq in self._begun:
            if seq in self._followed.taken.requests and plans.is_short(requests[seq]):
                self._differs(seq, "it was started, and would hold what was kept for a promised start")

    # ------------------------------------------------------------ who could start

    def _lines(self, queue: Queue) -> Sequence[tuple[Kind, Sequence[ShadowPlace]]]:
        """The kinds of a queue of which something could start, as far as PEs and the queue itself tell."""
        lines = self._followed.waiting.get(queue.name)
        if not lines or not queue.started or not self._moment(True).places.open(queue.name):
            return ()
        return list(lines.items())

    def _of_kind(self, queue: Queue, kind: Kind, line: Sequence[ShadowPlace]) -> RoomKept | None:
        """Why nobody of a kind may start."""
        kept = self._alone(queue.name, kind, line)
        if kept is None and queue.backfill == "none":
            return self._barred(queue, self._followed.requests[line[0].seq])
        return kept

    def _alone(self, queue: str, kind: Kind, line: Sequence[ShadowPlace]) -> RoomKept | None:
        """The same, whoever stands before it."""
        if (queue, kind) not in self._known:
            request = self._followed.requests[line[0].seq]
            self._known[queue, kind] = self._kept(request, True)
        return self._known[queue, kind]

    def _kept(self, request: Request, unseen: bool, forced: bool = False) -> RoomKept | None:
        """Why one may not start; ``unseen`` as of `PassMoment`."""
        kept = kept_back(self._moment(unseen), request, forced)
        if (kept is not None and kept.sure) or forced or request.rank == NOW:
            return kept
        swept = [self._as_found(request.queue)] if unseen and self._is_early(request) else []
        for plans in (*self._plans(unseen), *swept):
            kept = plans.delayed(request) or kept
            if kept is not None and kept.sure:
                return kept
        if kept is None and not unseen and self._queue(request).backfill == "none":
            kept = self._barred(self._queue(request), request)
        return kept

    def _is_early(self, request: Request) -> bool:
        """Whether one was promised a start before, of which the time has not come."""
        _, told = self._found.get(request.seq, ("", None))
        return told is not None and (told.at is None or told.at > self._decision.last)

    def _barred(self, queue: Queue, request: Request) -> RoomKept | None:
        """Who stands before it and waits for room, where nobody may pass (``backfill=none``)."""
        if request.reservation is not None:
            return self._barred_by_promises(queue, request) if self._is_early(request) else None
        perhaps = None
        for kind, line in self._followed.waiting.get(queue.name, {}).items():
            kept = self._alone(queue.name, kind, line)
            first = self._followed.requests[line[0].seq]
            waits = kept is not None and kept.room and waits_for_room_alone(self._moment(True), first)
            chooses = kept is None and first.spec.mold is not None
            for place in line if waits or chooses or (kept is not None and not kept.sure) else ():
                other = self._followed.requests[place.seq]
                if other.seq != request.seq and not self._is_unseen(other):
                    ahead = self._is_ahead(other, request)
                    if ahead and waits:
                        return RoomKept("another one that waited for room stood before it")
                    if ahead is not False:
                        perhaps = perhaps or RoomKept(SIZES if chooses else BEFORE, False)
                    break
        return perhaps

    def _barred_by_promises(self, queue: Queue, request: Request) -> RoomKept | None:
        """The same of one with a promise: those stand before it who were promised an earlier start."""
        for kind, line in self._followed.waiting.get(queue.name, {}).items():
            other = self._followed.requests[line[0].seq]
            if other.reservation is None or _promise_of(other) >= _promise_of(request):
                continue
            kept = self._alone(queue.name, kind, line)
            if kept is not None and kept.room and waits_for_room_alone(self._moment(True), other):
                return RoomKept("another one that waited for room stood before it")
        return None

    # ------------------------------------------------------------ what is looked at

    def _moment(self, unseen: bool) -> PassMoment:
        if unseen not in self._moments:
            places, decision = ShadowBoards(self._followed, unseen, self._pes), self._decision
            self._moments[unseen] = PassMoment(self._followed, places, decision.first, decision.last, unseen)
        return self._moments[unseen]

    def _plans(self, unseen: bool) -> Sequence[Plans]:
        """What is kept while the pass goes on: who starts must not delay a promise that the pass left as it
        was; who had to start delays neither those that it found nor those that it made."""
        if unseen not in self._laid:
            requests, decision = self._followed.requests, self._decision
            if not self._followed.promised and not decision.made:
                return ()
            found = {seq: requests[seq].reservation for seq in self._followed.promised}
            touched = {*decision.made, *decision.starts}
            left = {seq: told for seq, told in found.items() if seq not in touched}
            sets = ([found, found | dict(decision.made)] if decision.made else [found]) if unseen else [left]
            self._laid[unseen] = [Plans(self._moment(unseen), each, not unseen) for each in sets]
        return self._laid[unseen]

    def _as_found(self, queue: str) -> Plans:
        """What was kept for those of a queue when the pass began, beside what is kept for others: promises
        are gone through once, in the order of their queue, so nobody there gains by what another one left
        after his turn."""
        if queue not in self._swept:
            requests, last = self._followed.requests, self._decision.last
            told = {seq: requests[seq].reservation for seq in self._followed.promised}
            own = {
                seq: each for seq, (name, each) in self._found.items() if name == queue and each is not None
            }
            early = {seq: each for seq, each in own.items() if each.at is None or each.at > last}
            self._swept[queue] = Plans(self._moment(True), told | early, False, early)
        return self._swept[queue]

    def _queue(self, request: Request) -> Queue:
        return self._followed.site.settings.queues[request.queue]

    def _turns_of(self, queue: str) -> ShadowTurns:
        if queue not in self._turns:
            followed, decision, out = self._followed, self._decision, self._out.get(queue, [])
            dates = (line[0].date for line in followed.waiting.get(queue, {}).values())
            own = [*followed.in_queue(queue), *out] if followed.own[queue] else []
            self._turns[queue] = ShadowTurns(
                followed.site,
                queue,
                followed.asked.get(queue, ShadowAsked()),
                min(dates, default=decision.last),
                out,
                own,
                (decision.first, decision.last),
                "shrpri" in (decision.exits or ()),
            )
        return self._turns[queue]

    def remember_turns(self) -> None:
        """Dates are about to change: who stood before whom rests on those that the pass found."""
        for queue in self._served:
            if self._followed.waiting.get(queue.name):
                self._turns_of(queue.name)


def _promise_of(request: Request) -> tuple[int, int, Seq]:
    """What orders promises: their time, then who was promised before."""
    told = request.reservation
    at, turn = (None, 0) if told is None else (told.at, told.turn)
    return FOREVER if at is None else at, turn, request.seq


def _passes(queue: Queue) -> bool:
    """Whether more than the order of a queue says who may come first in it (manual: `backfill`)."""
    return queue.reserve != 0 or queue.backfill == "none" or queue.backfill_order == "shortest"
