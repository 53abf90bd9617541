"""Histories of requests from the journal: the request, when it waited, ran and ended, its use."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from msgspec import Struct, structs

from nqspy.model import events as ev
from nqspy.model import indices, transitions
from nqspy.model.arrays import ArrayState
from nqspy.model.columns import turn_of
from nqspy.model.events import Parted
from nqspy.model.ids import Instant, Seq, array_of, member
from nqspy.model.requests import Attempt, Request, State, Used
from nqspy.report.over_time import AttemptHistory

_QUEUED, _RUNNING, _SUSPENDED = State.QUEUED, State.RUNNING, State.SUSPENDED
_WAITS = (*transitions.WAITING, State.ROUTING, State.ARRIVING)


class RequestHistory(Struct):
    """History of a request: its state after the events so far, and when it held PEs. A date in queue set by
    an exit (`Redated`) is not followed: the list keeps its order for the report. ``since``: number of the
    event since which it is queued; ``counts``: True if it belongs to the examined period."""

    request: Request
    counts: bool = True
    since: int = 0
    attempts: list[AttemptHistory] = []
    ended: Instant | None = None
    ending: ev.Ended | ev.Deleted | None = None

    @property
    def withdrawn(self) -> bool:
        """True if its owner deleted it, waiting or running: that is no failure."""
        if isinstance(self.ending, ev.Deleted):
            return self.ending.who == self.request.owner
        order = self.request.ending
        if self.ending is None or self.ending.end_reason != "deleted" or order is None or order.rerun:
            return False
        return order.cause.is_person and order.cause.name == self.request.owner

    @property
    def weight(self) -> int:
        """Return the number of requests it stands for: 1, or an array's indices that have not begun."""
        return self.request.weight

    @property
    def waits(self) -> bool:
        """True if it has neither been started nor ended."""
        return self.request.state in _WAITS

    @property
    def runs(self) -> bool:
        """True if an attempt holds PEs; a suspended one may have released them."""
        state = self.request.state
        return state is _RUNNING or (state is _SUSPENDED and not self.request.pes_released)

    def used_between(self, begin: int, end: int, charge: str = "cpu") -> float:
        """Return the charge (ms) for the use of all attempts between two instants."""
        return sum(attempt.used_between(begin, end, charge) for attempt in self.attempts)


ListPlace = tuple[Instant, int, Seq]
"""Sort key of a request in its list: date in queue, then number; and the request's seq."""


def place_of(request: Request) -> ListPlace:
    """Return the sort key of a request in the list of its group and queue."""
    return request.date_in_queue, turn_of(request), request.seq


def by_group(histories: Iterable[RequestHistory]) -> dict[str, list[RequestHistory]]:
    """Return each group's own requests, in their order."""
    groups: dict[str, list[RequestHistory]] = {}
    for history in histories:
        groups.setdefault(history.request.group, []).append(history)
    return groups


class Watcher(Protocol):
    """Observer of a `HistoryReplay`, which calls these methods for each event, in their order."""

    def add(self, recorded: ev.Recorded) -> None:
        """Add an event; `leave` and `enter` of its requests come after it."""

    def leave(self, request: Request, event: Any, at: Instant) -> None:
        """Note that an event is about to change a request's state."""

    def enter(self, request: Request, at: Instant) -> None:
        """Note that an event has changed a request's state."""


ListKey = tuple[str, str]
"""Group and queue of a list of requests."""


class HistoryReplay:
    """Applies events one after another and stores the histories. ``known``: live requests, for those
    submitted before the first event; requests submitted from ``closed`` on are followed but do not count.

    ``queued``: number of queued requests; ``running``: number of counted running ones; ``last``: instant of
    the last event; ``latest``: latest instant of any event."""

    def __init__(
        self, known: Mapping[Seq, Request], closed: Instant | None = None, watchers: Iterable[Watcher] = ()
    ) -> None:
        self.known = known
        self.watchers = list(watchers)
        self._closed = closed
        self.running = 0
        self.histories: dict[Seq, RequestHistory] = {}
        self.lists: dict[ListKey, list[ListPlace]] = {}
        self.queued = 0
        self.last = self.latest = Instant(0)

    def add(self, recorded: ev.Recorded) -> None:
        """Apply one event to the histories of its requests."""
        event: Any = recorded.event
        self.last, kind = recorded.at, type(event)
        self.latest = max(self.latest, self.last)
        for watcher in self.watchers:
            watcher.add(recorded)
        if kind is ev.Submitted:
            request = transitions.submitted(event, recorded.at)
            counts = self._closed is None or request.submitted < self._closed
            self.histories[request.seq] = added = RequestHistory(request, counts)
            self._enter(added, recorded.n, request.submitted)
        elif kind is ev.Decided:
            if event.samples:
                self.sample(dict(event.samples), recorded.at)
        elif kind is Parted:
            for index in indices.each(event.indices):
                self._split(member(event.seq, index), recorded)
        elif kind in transitions.STEPS and kind is not ev.Redated:
            for seq in event.seqs if hasattr(event, "seqs") else (event.seq,):
                history = self.histories.get(seq) or self._split(seq, recorded) or self._unseen(seq, event)
                if history is None or not transitions.fits(history.request, event):
                    continue
                step, holding = transitions.STEPS[kind], _HOLDING.get(kind)
                if not step.stays:
                    self._leave(history, event, recorded.at)
                # Events say whether age counts anew (`ev.Released.aging`).
                step.make(history.request, event, recorded.at, lambda request: True)
                if holding is not None:
                    holding(self, history, event, recorded.at)
                if not step.stays:
                    self._enter(history, recorded.n, recorded.at)

    def sample(self, samples: Mapping[Seq, Used], at: Instant) -> None:
        """Add a point at ``at`` to the use of running requests, from other sources than the journal."""
        for seq, used in samples.items():
            history = self.histories.get(seq)
            if history is not None and history.attempts and history.attempts[-1].end is None:
                _point(history.attempts[-1], at, used)

    def _split(self, seq: Seq, recorded: ev.Recorded) -> RequestHistory | None:
        """Return the history of an index that becomes a request of its own."""
        array = self.histories.get(array_of(seq) or 0)
        if array is None or not transitions.is_in(array.request, seq):
            return None
        self._leave(array, None, recorded.at)
        made = transitions.born(array.request, seq)
        transitions.part(array.request, seq, recorded.at)
        self._enter(array, array.since, recorded.at)
        history = self.histories[seq] = RequestHistory(made, array.counts)
        self._enter(history, array.since, recorded.at)
        return history

    def _unseen(self, seq: Seq, event: Any) -> RequestHistory | None:
        """Begin the history of a request that was submitted before the first event, and return it; it does
        not count (`RequestHistory.counts`). None: ``known`` has no such request."""
        request = self.known.get(seq)
        if request is None:
            return None
        number = getattr(event, "attempt", None)
        state = State.RUNNING if number is None else transitions.STEPS[type(event)].states[0]
        run = Attempt(number or request.attempts, (), request.started or self.last)
        made = structs.replace(request, state=state, date_in_queue=request.submitted, attempt=run, slot=-1)
        history = self.histories[seq] = RequestHistory(made, False)
        self._enter(history, 0, None)
        return history

    def _leave(self, history: RequestHistory, event: ev.Event | None, at: Instant) -> None:
        request = history.request
        if request.state is _QUEUED:
            self.queued -= 1
            line, place = self.lists[request.group, request.queue], place_of(request)
            del line[0 if line[0] == place else bisect_left(line, place)]
        elif history.counts and history.runs:
            self.running -= 1
        for watcher in self.watchers:
            watcher.leave(request, event, at)

    def _enter(self, history: RequestHistory, n: int, at: Instant | None) -> None:
        """Count a request in its new state. ``at`` None: do not call the watchers."""
        request = history.request
        if request.state is _QUEUED:
            self.queued += 1
            history.since = n
            insort(self.lists.setdefault((request.group, request.queue), []), place_of(request))
        elif history.counts and history.runs:
            self.running += 1
        if at is not None:
            for watcher in self.watchers:
                watcher.enter(request, at)


def _hold(replay: HistoryReplay, history: RequestHistory, event: Any, at: Instant) -> None:
    """Note that an attempt got its PEs, released them for a while, or has them again."""
    kind = type(event)
    if kind is ev.Starting:
        attempt = AttemptHistory(len(event.pes), at, None, [(at, 0, 0)], began=replay.latest)
        history.attempts.append(attempt)
    elif not history.attempts:
        return
    elif kind is ev.Started:
        history.attempts[-1].begin_at(at if event.began is None else event.began)
    elif kind is ev.Resumed:
        history.attempts[-1].reclaim(at)
    elif kind is not ev.Suspended or event.parked:
        history.attempts[-1].released = at


def _point(attempt: AttemptHistory, at: Instant, used: Used) -> None:
    if attempt.points and attempt.points[-1][0] >= at:
        attempt.points.pop()
    attempt.points.append((at, used.cpu, used.wall))


def _stop(replay: HistoryReplay, history: RequestHistory, event: ev.Ended | ev.Requeued, at: Instant) -> None:
    """Note that an attempt is over; without a known start all its use counts now."""
    if history.request.array is not None and isinstance(event, ev.Ended):
        return _end(replay, history, event, at)
    if not history.attempts or history.attempts[-1].end is not None:
        request = replay.known.get(history.request.seq)
        begin = request.started if request is not None and request.started is not None else at
        history.attempts.append(AttemptHistory(history.request.spec.ask.pes, begin, None, [(begin, 0, 0)]))
    _point(history.attempts[-1], at, event.used)
    history.attempts[-1].reclaim(at)
    history.attempts[-1].end, history.attempts[-1].ended = at, replay.latest
    if isinstance(event, ev.Ended):
        _end(replay, history, event, at)
    return None


def _end(replay: HistoryReplay, history: RequestHistory, event: ev.Ended | ev.Deleted, at: Instant) -> None:
    if isinstance(event, ev.Ended) or not event.indices:
        history.ended, history.ending = at, event
    elif event.indices:
        first, array = member(event.seq, event.indices[0][0]), ArrayState(event.indices, ())
        request = structs.replace(history.request, state=State.ENDED, array=array, slot=-1)
        replay.histories[first] = RequestHistory(request, history.counts, ended=at, ending=event)


_HOLDING: dict[type[ev.Event], Callable[[HistoryReplay, RequestHistory, Any, Instant], None]] = {
    **dict.fromkeys((ev.Starting, ev.Started, ev.Suspended, ev.Resumed, ev.MovedOut, ev.Exiting), _hold),
    ev.Ended: _stop,
    ev.Requeued: _stop,
    ev.Deleted: _end,
}
