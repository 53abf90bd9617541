"""Requests followed through the journal: what each one was, when it waited, ran and ended, what it used."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from nqspy.model import events as ev
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Dependency, Request, Spec, State, Used
from nqspy.model.transitions import HELD_AT_SUBMISSION
from nqspy.report.attempts import Attempt

_WAITS = (State.QUEUED, State.HELD, State.WAITING, State.ROUTING, State.ARRIVING)


@dataclass(slots=True)
class Track:
    """One request's way. ``date``, its date in queue, orders it in its list; one that an exit gave it
    (`Redated`) is not followed: the list keeps its order for the report. ``since`` is the number of the event
    since which it is queued; ``counts``: whether it belongs to the period that is looked at."""

    seq: Seq
    spec: Spec
    queue: str
    submitted: Instant
    state: State
    date: Instant
    counts: bool = True
    since: int = 0
    rank: int = 0
    hold_text: str = ""
    holds: str = ""
    unmet: tuple[Dependency, ...] = ()
    never: str = ""
    attempts: list[Attempt] = field(default_factory=list)
    ended: Instant | None = None
    ending: ev.Ended | ev.Deleted | None = None
    deleter: str = ""

    @property
    def withdrawn(self) -> bool:
        """Whether its owner deleted it, waiting or running: that is no failure."""
        if isinstance(self.ending, ev.Deleted):
            return self.ending.who == self.spec.owner
        asked = self.ending is not None and self.ending.end_reason == "deleted"
        return asked and self.deleter == self.spec.owner

    @property
    def group(self) -> str:
        """Resource group it is charged to."""
        return self.spec.group

    @property
    def waits(self) -> bool:
        """Whether it has neither been started nor ended."""
        return self.state in _WAITS

    @property
    def runs(self) -> bool:
        """Whether an attempt holds PEs: others have those of a parked one."""
        return self.state is State.RUNNING and not (self.attempts and self.attempts[-1].parked is not None)

    def cpu_at(self, at: int) -> float:
        """CPU time (ms) of all its attempts up to an instant."""
        return sum(attempt.cpu_at(at) for attempt in self.attempts)

    def used_at(self, at: int, charge: str) -> float:
        """The same of what is charged."""
        return sum(attempt.used_at(at, charge) for attempt in self.attempts)


ListKey = tuple[str, str]
"""Group and queue: what makes requests one list."""


class Follower:
    """Applies events one after another and keeps the tracks. ``known`` are live requests, for those whose
    submission lies before the first event; submissions from ``closed`` on do not count.

    ``queued`` is how many are queued, ``running`` how many that count run; ``drained``: by group, since when
    none of those that count waits; ``last`` is the instant of the last event.
    """

    def __init__(self, known: Mapping[Seq, Request], closed: Instant | None = None) -> None:
        self.known = known
        self._closed = closed
        self._waiting: dict[str, int] = {}
        self.drained: dict[str, Instant] = {}
        self.running = 0
        self.tracks: dict[Seq, Track] = {}
        self.lists: dict[ListKey, list[tuple[Instant, Seq]]] = {}
        self.queued = 0
        self.last = Instant(0)

    def take(self, recorded: ev.Recorded) -> None:
        """Follows one event."""
        self.last = recorded.at
        handler = _HANDLERS.get(type(recorded.event))
        if handler is not None:
            handler(self, recorded.event, recorded)

    def each(self, seqs: Iterable[Seq], recorded: ev.Recorded) -> list[Track]:
        """The tracks of these requests; one whose submission was not seen is made from the live request
        and does not count."""
        found = [self.tracks.get(seq) or self._found(seq, recorded) for seq in seqs]
        return [track for track in found if track is not None]

    def one(self, seq: Seq, recorded: ev.Recorded) -> tuple[Track, ...]:
        """The same of one request: the one, or none."""
        track = self.tracks.get(seq) or self._found(seq, recorded)
        return (track,) if track is not None else ()

    def _found(self, seq: Seq, recorded: ev.Recorded) -> Track | None:
        request = self.known.get(seq)
        if request is None:
            return None
        at = request.submitted
        track = Track(seq, request.spec, request.queue, at, State.RUNNING, at, False)
        self.tracks[seq] = track
        return track

    def sample(self, samples: Mapping[Seq, Used], at: Instant) -> None:
        """What running requests have used by now, known from elsewhere than the journal."""
        for seq, used in samples.items():
            track = self.tracks.get(seq)
            if track is not None and track.attempts and track.attempts[-1].end is None:
                _point(track.attempts[-1], at, used)

    def to(self, track: Track, state: State, n: int) -> None:
        """Another state; keeps the lists of queued requests and the counts."""
        self._count(track, -1)
        if track.state is State.QUEUED:
            self.queued -= 1
            line, place = self.lists[track.group, track.queue], (track.date, track.seq)
            del line[0 if line[0] == place else bisect_left(line, place)]
        self._enter(track, state, n)

    def _enter(self, track: Track, state: State, n: int) -> None:
        track.state = state
        if state is State.QUEUED:
            self.queued += 1
            track.since = n
            insort(self.lists.setdefault((track.group, track.queue), []), (track.date, track.seq))
        self._count(track, 1)

    def add(self, track: Track, state: State, n: int) -> None:
        """A new request, which counts unless the period is over."""
        track.counts = self._closed is None or track.submitted < self._closed
        self.tracks[track.seq] = track
        self._enter(track, state, n)

    def counted(self, track: Track, change: Callable[[], None]) -> None:
        """A change that may change whether it runs."""
        self._count(track, -1)
        change()
        self._count(track, 1)

    def _count(self, track: Track, more: int) -> None:
        if not track.counts:
            return
        if track.runs:
            self.running += more
        elif track.state in _WAITS:
            group = track.spec.group
            count = self._waiting[group] = self._waiting.get(group, 0) + more
            if not count:
                self.drained[group] = self.last
            elif group in self.drained:
                del self.drained[group]


def _submitted(follower: Follower, event: ev.Submitted, recorded: ev.Recorded) -> None:
    track = Track(event.seq, event.spec, event.queue, recorded.at, State.ARRIVING, recorded.at)
    track.unmet = event.spec.after
    if event.state == "held" and (event.spec.held or not track.unmet):
        track.holds, track.hold_text = "u", HELD_AT_SUBMISSION
    follower.add(track, State(event.state), recorded.n)


def _waiting_state(track: Track, at: Instant) -> State:
    if track.holds or track.unmet:
        return State.HELD
    dated = track.spec.eligible is not None and track.spec.eligible > at
    return State.WAITING if dated else State.QUEUED


def _let_wait(follower: Follower, track: Track, recorded: ev.Recorded, aging: bool = False) -> None:
    """One that is in no list waits as its spec and holds say, with the date in queue that the scheduler gives
    it (`lifecycle`)."""
    state, eligible = _waiting_state(track, recorded.at), track.spec.eligible
    if state is State.QUEUED and aging and not track.spec.listed:
        track.date = recorded.at
    elif state is State.QUEUED and eligible is not None:
        track.date = max(track.date, eligible)
    follower.to(track, state, recorded.n)


def _moved(follower: Follower, event: ev.Moved, recorded: ev.Recorded) -> None:
    for track in follower.each(event.seqs, recorded):
        follower.to(track, State.ROUTING, recorded.n)
        track.queue, track.date = event.queue, recorded.at
        follower.to(track, _waiting_state(track, recorded.at), recorded.n)


def _routed(follower: Follower, event: ev.Routed, recorded: ev.Recorded) -> None:
    _moved(follower, ev.Moved((event.seq,), event.queue, ""), recorded)


def _eligible(follower: Follower, event: ev.Eligible, recorded: ev.Recorded) -> None:
    for track in follower.each(event.seqs, recorded):
        if track.state is State.WAITING:
            track.date = recorded.at
            follower.to(track, State.HELD if track.holds else State.QUEUED, recorded.n)


def _held(follower: Follower, event: ev.Held, recorded: ev.Recorded) -> None:
    for track in follower.each(event.seqs, recorded):
        track.holds = "".join(sorted({*track.holds, event.letter}))
        track.hold_text = event.text or f"held by {event.who}"
        if track.waits:
            follower.to(track, State.HELD, recorded.n)


def _released(follower: Follower, event: ev.Released, recorded: ev.Recorded) -> None:
    for track in follower.each(event.seqs, recorded):
        track.holds = "".join(letter for letter in track.holds if letter not in event.letters)
        track.unmet = () if "s" in event.letters else track.unmet
        if track.state is State.HELD:
            _let_wait(follower, track, recorded, event.aging)


def _dependency_met(follower: Follower, event: ev.DependencyMet, recorded: ev.Recorded) -> None:
    met = [Dependency(event.prerequisite, word) for word in event.words]
    for track in follower.each(event.seqs, recorded):
        track.unmet = tuple(each for each in track.unmet if each not in met)
        if track.state is State.HELD:
            _let_wait(follower, track, recorded, event.aging)


def _dependency_failed(follower: Follower, event: ev.DependencyFailed, recorded: ev.Recorded) -> None:
    for track in follower.each(event.seqs, recorded):
        track.never = event.text


def _modified(follower: Follower, event: ev.Modified, recorded: ev.Recorded) -> None:
    for track in follower.one(event.seq, recorded):
        former = track.state
        follower.to(track, State.ROUTING, recorded.n)
        track.spec = event.spec
        if former not in (State.QUEUED, State.WAITING):
            follower.to(track, former, recorded.n)
            continue
        if former is State.WAITING and (event.spec.eligible or 0) <= recorded.at:
            track.date = recorded.at
        _let_wait(follower, track, recorded)


def _ranked(follower: Follower, event: ev.Ranked, recorded: ev.Recorded) -> None:
    for track in follower.one(event.seq, recorded):
        track.rank = event.rank


def _starting(follower: Follower, event: ev.Starting, recorded: ev.Recorded) -> None:
    for track in follower.one(event.seq, recorded):
        follower.to(track, State.RUNNING, recorded.n)
        track.rank = 0
        track.attempts.append(Attempt(len(event.pes), recorded.at, None, [(recorded.at, 0, 0)]))


def _started(follower: Follower, event: ev.Started, recorded: ev.Recorded) -> None:
    for track in follower.one(event.seq, recorded):
        if track.attempts:
            track.attempts[-1].begin_at(recorded.at)


def _suspended(follower: Follower, event: ev.Suspended | ev.Exiting, recorded: ev.Recorded) -> None:
    for track in follower.one(event.seq, recorded):
        if (isinstance(event, ev.Exiting) or event.parked) and track.attempts:
            follower.counted(track, partial(track.attempts[-1].park, recorded.at))


def _resumed(follower: Follower, event: ev.Resumed, recorded: ev.Recorded) -> None:
    for track in follower.one(event.seq, recorded):
        if track.attempts:
            follower.counted(track, partial(track.attempts[-1].unpark, recorded.at))


def _decided(follower: Follower, event: ev.Decided, recorded: ev.Recorded) -> None:
    if event.samples:
        follower.sample(dict(event.samples), recorded.at)


def _point(attempt: Attempt, at: Instant, used: Used) -> None:
    if attempt.points and attempt.points[-1][0] >= at:
        attempt.points.pop()
    attempt.points.append((at, used.cpu, used.wall))


def _over(follower: Follower, track: Track, used: Used, recorded: ev.Recorded) -> None:
    """An attempt is over. One that the events do not show the start of counts as having used it all now."""
    if not track.attempts or track.attempts[-1].end is not None:
        request = follower.known.get(track.seq)
        begin = request.started if request is not None and request.started is not None else recorded.at
        track.attempts.append(Attempt(track.spec.ask.pes, begin, None, [(begin, 0, 0)]))
    _point(track.attempts[-1], recorded.at, used)
    if track.attempts[-1].parked is not None:
        follower.counted(track, partial(track.attempts[-1].unpark, recorded.at))
    track.attempts[-1].end = recorded.at


def _ended(follower: Follower, event: ev.Ended, recorded: ev.Recorded) -> None:
    for track in follower.one(event.seq, recorded):
        _over(follower, track, event.used, recorded)
        _gone(follower, track, event, recorded)


def _requeued(follower: Follower, event: ev.Requeued, recorded: ev.Recorded) -> None:
    for track in follower.one(event.seq, recorded):
        _over(follower, track, event.used, recorded)
        follower.to(track, _waiting_state(track, recorded.at), recorded.n)


def _deleting(follower: Follower, event: ev.Deleting, recorded: ev.Recorded) -> None:
    for track in follower.one(event.seq, recorded):
        track.deleter = "" if event.rerun else event.who


def _deleted(follower: Follower, event: ev.Deleted, recorded: ev.Recorded) -> None:
    for track in follower.one(event.seq, recorded):
        _gone(follower, track, event, recorded)


def _gone(follower: Follower, track: Track, event: ev.Ended | ev.Deleted, recorded: ev.Recorded) -> None:
    follower.to(track, State.ENDED, recorded.n)
    track.ended, track.ending = recorded.at, event


_Handler = Callable[[Follower, Any, ev.Recorded], None]

_HANDLERS: dict[type[ev.Event], _Handler] = {
    ev.Submitted: _submitted,
    ev.Routed: _routed,
    ev.Moved: _moved,
    ev.Eligible: _eligible,
    ev.Held: _held,
    ev.Released: _released,
    ev.DependencyMet: _dependency_met,
    ev.DependencyFailed: _dependency_failed,
    ev.Modified: _modified,
    ev.Ranked: _ranked,
    ev.Starting: _starting,
    ev.Started: _started,
    ev.Suspended: _suspended,
    ev.Resumed: _resumed,
    ev.Decided: _decided,
    ev.Deleting: _deleting,
    ev.Exiting: _suspended,
    ev.Ended: _ended,
    ev.Requeued: _requeued,
    ev.Deleted: _deleted,
}
