"""The one place where the state changes: `apply(site, recorded)`. Replaying the journal's events gives the
same state.

Nothing here decides or refuses: events are facts. An event about a request that no longer exists changes
nothing.
"""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast

from nqspy.model import books
from nqspy.model import events as ev
from nqspy.model.cause import SWAP
from nqspy.model.columns import compact
from nqspy.model.ids import Instant, Seq
from nqspy.model.reported import reported
from nqspy.model.requests import (
    STARTED,
    Attempt,
    Dependency,
    EndOrder,
    Pause,
    Redating,
    Request,
    State,
)
from nqspy.model.site import Site

HELD_AT_SUBMISSION = "held by its owner at submission"


def apply(site: Site, recorded: ev.Recorded) -> None:
    """Changes the site by one event and notes in ``site.touched`` which rows that concerns."""
    site.n = recorded.n
    site.at = recorded.at
    site.news.general += isinstance(recorded.event, _GENERAL)
    _HANDLERS[type(recorded.event)](site, recorded.event, recorded.at)


def place(site: Site, request: Request) -> None:
    """Files a request under its state: columns when queued, index of the started, watch of its date,
    index of those that wait for others (used when rows are loaded)."""
    if request.state is State.QUEUED:
        site.columns(request.queue).add(request, site.numbers)
        if site.numbers.is_full():
            compact(site.numbers, site.waiting.values())
    elif request.state is State.WAITING and request.spec.eligible is not None:
        heapq.heappush(site.dates, (request.spec.eligible, request.seq))
    elif request.state in STARTED:
        site.started[request.seq] = request
    site.watch_for(request)
    _tell(site, request)


def _tell(site: Site, request: Request) -> None:
    """It changed, and so may what rests on requests of its queue, owner, group or name."""
    spec = request.spec
    site.news.note((request.seq, request.queue, spec.owner, spec.group, spec.name))


def _displace(site: Site, request: Request) -> None:
    _tell(site, request)
    if request.slot >= 0:
        site.waiting[request.queue].remove(request)
    site.started.pop(request.seq, None)
    site.watch_no_more(request)


def _to(site: Site, request: Request, state: State) -> None:
    _displace(site, request)
    request.state = state
    place(site, request)
    site.touched.requests.add(request.seq)


def _wait_state(request: Request, now: Instant) -> State:
    if request.holds or request.unmet:
        return State.HELD
    if request.spec.eligible is not None and request.spec.eligible > now:
        return State.WAITING
    return State.QUEUED


def _each(site: Site, seqs: Iterable[Seq]) -> Iterable[Request]:
    for seq in seqs:
        request = site.requests.get(seq)
        if request is not None:
            yield request


def _attempt(site: Site, seq: Seq, number: int) -> Request | None:
    request = site.started.get(seq)
    return request if request is not None and request.run.number == number else None


# ---------------------------------------------------------------- coming in, waiting


def _submitted(site: Site, event: ev.Submitted, at: Instant) -> None:
    request = Request(event.seq, event.spec, event.queue, State(event.state), at, at)
    request.unmet = event.spec.after
    if request.state is State.HELD and (event.spec.held or not request.unmet):
        request.holds, request.hold_text = "u", HELD_AT_SUBMISSION
    site.requests[event.seq] = request
    site.tally.enter(request)
    site.next_seq = max(site.next_seq, event.seq + 1)
    place(site, request)
    site.touched.requests.add(event.seq)
    site.touched.state = True


def _routed(site: Site, event: ev.Routed, at: Instant) -> None:
    for request in _each(site, (event.seq,)):
        _change_queue(site, request, event.queue, at)


def _moved(site: Site, event: ev.Moved, at: Instant) -> None:
    for request in _each(site, event.seqs):
        _change_queue(site, request, event.queue, at)


def _change_queue(site: Site, request: Request, queue: str, at: Instant) -> None:
    if request.state in STARTED:
        return
    _displace(site, request)
    site.tally.leave(request)
    request.queue = queue
    site.tally.enter(request)
    request.date_in_queue, request.redated = at, None
    request.state = _wait_state(request, at)
    place(site, request)
    site.touched.requests.add(request.seq)


def _eligible(site: Site, event: ev.Eligible, at: Instant) -> None:
    for request in _each(site, event.seqs):
        if request.state is State.WAITING:
            request.date_in_queue, request.redated = at, None
            _to(site, request, State.HELD if request.holds else State.QUEUED)


def _held(site: Site, event: ev.Held, at: Instant) -> None:
    for request in _each(site, event.seqs):
        if request.state in (State.QUEUED, State.WAITING, State.HELD):
            request.holds = "".join(sorted(set(request.holds + event.letter)))
            request.hold_text = event.text or f"held by {event.who}"
            _to(site, request, State.HELD)


def _released(site: Site, event: ev.Released, at: Instant) -> None:
    for request in _each(site, event.seqs):
        request.holds = "".join(letter for letter in request.holds if letter not in event.letters)
        if not request.holds:
            request.hold_text = ""
        if request.state is State.HELD:
            _await(site, request, () if "s" in event.letters else request.unmet, at, event.aging)


def _await(site: Site, request: Request, unmet: tuple[Dependency, ...], at: Instant, aging: bool) -> None:
    """From now on it waits for these; taking the system's hold off means to wait for no other any more."""
    _displace(site, request)
    request.unmet = unmet
    if not unmet:
        request.never = ""
    _let_wait(site, request, at, aging)


def _dependency_met(site: Site, event: ev.DependencyMet, at: Instant) -> None:
    for request in _each(site, event.seqs):
        met = [Dependency(event.prerequisite, word) for word in event.words]
        unmet = tuple(each for each in request.unmet if each not in met)
        _await(site, request, unmet, at, event.aging)


def _dependency_failed(site: Site, event: ev.DependencyFailed, at: Instant) -> None:
    for request in _each(site, event.seqs):
        request.never = event.text
        site.touched.requests.add(request.seq)


def _let_wait(site: Site, request: Request, at: Instant, aging: bool = False) -> None:
    """Queued, held or waiting for its date, as its spec and holds say; the time before its date is no time
    in queue, nor is the time before it could start (``aging``) where its queue says so."""
    state, eligible = _wait_state(request, at), request.spec.eligible
    if state is State.QUEUED and aging and _ages_from_now(site, request):
        request.date_in_queue, request.redated = at, None
    elif state is State.QUEUED and eligible is not None:
        request.date_in_queue = max(request.date_in_queue, eligible)
    _to(site, request, state)


def _ages_from_now(site: Site, request: Request) -> bool:
    """Whether the age of a request that may start from now on begins now; what was handed in as a list keeps
    the list's order."""
    return ages_when_eligible(site, request.queue) and not request.spec.listed


def ages_when_eligible(site: Site, name: str) -> bool:
    """Whether age counts from when a request of that queue could start (``age_from``)."""
    queue = site.settings.queues.get(name)
    return queue is not None and queue.age_from == "eligible"


def _redated(site: Site, event: ev.Redated, at: Instant) -> None:
    by_queue: dict[str, list[Request]] = {}
    redating = Redating(at, event.who, event.cause)
    for request in _each(site, event.seqs):
        if request.state in (State.QUEUED, State.WAITING, State.HELD):
            request.date_in_queue, request.redated = event.date, redating
            _tell(site, request)
            site.touched.requests.add(request.seq)
            if request.slot >= 0:
                by_queue.setdefault(request.queue, []).append(request)
    for queue, requests in by_queue.items():
        site.waiting[queue].redate(requests, event.date)


def _ranked(site: Site, event: ev.Ranked, at: Instant) -> None:
    for request in _each(site, (event.seq,)):
        request.rank = event.rank
        _rewrite(site, request)


def _modified(site: Site, event: ev.Modified, at: Instant) -> None:
    for request in _each(site, (event.seq,)):
        if request.state in STARTED:
            continue
        if request.state is State.WAITING and (event.spec.eligible or 0) <= at:
            request.date_in_queue = at
        _displace(site, request)
        request.spec = event.spec
        _let_wait(site, request, at)


def _rewrite(site: Site, request: Request) -> None:
    if request.slot >= 0:
        site.waiting[request.queue].update(request, site.numbers)
    site.touched.requests.add(request.seq)


# ---------------------------------------------------------------- attempts


def _starting(site: Site, event: ev.Starting, at: Instant) -> None:
    for request in _each(site, (event.seq,)):
        request.attempts, request.rank = event.attempt, 0
        request.attempt = Attempt(event.attempt, event.pes, at)
        books.run(site, request, at)
        _to(site, request, State.RUNNING)


def _started(site: Site, event: ev.Started, at: Instant) -> None:
    request = _attempt(site, event.seq, event.attempt)
    if request is not None and request.run.starting:
        request.attempt = replace(request.run, starting=False, started=at)
        _tell(site, request)
        site.touched.requests.add(request.seq)


def _suspended(site: Site, event: ev.Suspended, at: Instant) -> None:
    request = _attempt(site, event.seq, event.attempt)
    if request is not None:
        books.rest(site, request, at)
        pause = Pause(event.because(), at, event.text, event.parked)
        request.attempt = replace(request.run, pause=pause)
        if pause.cause == SWAP:
            held = dict(site.pressure.resident).get(request.seq, 0)
            times = request.run.preempted_times + 1
            request.attempt = replace(request.run, preempted_times=times, preempted_bytes=held)
            books.pressure_answered(site)
        _to(site, request, State.SUSPENDED)


def _resumed(site: Site, event: ev.Resumed, at: Instant) -> None:
    request = _attempt(site, event.seq, event.attempt)
    if request is not None:
        former, cause = request.run, event.because()
        if cause == SWAP:
            books.pressure_answered(site)
        let = former.resumed_by_person if cause == SWAP else at
        pes = event.pes or former.pes
        request.attempt = replace(former, pes=pes, pause=None, resumed=at, resumed_by_person=let)
        if request.state is State.SUSPENDED:
            books.run(site, request, at)
        _to(site, request, State.RUNNING)


def _deleting(site: Site, event: ev.Deleting, at: Instant) -> None:
    request = _attempt(site, event.seq, event.attempt)
    if request is not None:
        order = EndOrder(event.because(), event.rerun, event.text)
        request.attempt = replace(request.run, ending=order)
        site.touched.requests.add(request.seq)


def _exiting(site: Site, event: ev.Exiting, at: Instant) -> None:
    request = _attempt(site, event.seq, event.attempt)
    if request is not None and request.state is not State.EXITING:
        books.charge(site, [(request, event.used)], at)
        books.leave(site, request, at)
        request.attempt = replace(request.run, pes=(), pause=None, resumed=None)
        _to(site, request, State.EXITING)


def _ended(site: Site, event: ev.Ended, at: Instant) -> None:
    request = _attempt(site, event.seq, event.attempt)
    if request is None:
        return
    books.charge(site, [(request, event.used)], at)
    books.leave(site, request, at)
    books.remember(site, request, event.used)
    _gone(site, request, event)


def _requeued(site: Site, event: ev.Requeued, at: Instant) -> None:
    request = _attempt(site, event.seq, event.attempt)
    if request is None:
        return
    books.charge(site, [(request, event.used)], at)
    books.leave(site, request, at)
    request.attempt, request.losses = None, event.losses
    request.hold_text = request.hold_text if request.holds else ""
    _to(site, request, _wait_state(request, at))


def _deleted(site: Site, event: ev.Deleted, at: Instant) -> None:
    for request in _each(site, (event.seq,)):
        books.leave(site, request, at)
        _gone(site, request, event)


def _gone(site: Site, request: Request, event: ev.Event) -> None:
    _displace(site, request)
    request.state = State.ENDED
    del site.requests[request.seq]
    site.tally.leave(request)
    site.touched.requests.discard(request.seq)
    site.touched.ended[request.seq] = (request, event)


def _decided(site: Site, event: ev.Decided, at: Instant) -> None:
    told = ((site.started.get(seq), used) for seq, used in event.samples)
    books.charge(site, [(r, used) for r, used in told if r is not None and not r.run.starting], at)
    books.ready(site, event.ready, at)


def _nothing(site: Site, event: ev.Event, at: Instant) -> None:
    """An event that is history only."""


_GENERAL = (
    ev.SettingsChanged,
    ev.ShiftChanged,
    ev.ShiftFailed,
    ev.MachineFound,
    ev.ExitOff,
    ev.FilesApplied,
    ev.Restored,
)
"""What changes more than requests."""

_Handler = Callable[[Site, Any, Instant], None]

_HANDLERS: dict[type[ev.Event], _Handler] = {
    ev.Submitted: _submitted,
    ev.Routed: _routed,
    ev.Moved: _moved,
    ev.Eligible: _eligible,
    ev.Held: _held,
    ev.Released: _released,
    ev.Redated: _redated,
    ev.DependencyMet: _dependency_met,
    ev.DependencyFailed: _dependency_failed,
    ev.Ranked: _ranked,
    ev.Modified: _modified,
    ev.Starting: _starting,
    ev.Started: _started,
    ev.Suspended: _suspended,
    ev.Resumed: _resumed,
    ev.Deleting: _deleting,
    ev.Exiting: _exiting,
    ev.Ended: _ended,
    ev.Requeued: _requeued,
    ev.Deleted: _deleted,
    ev.Decided: _decided,
    ev.SettingsChanged: books.settings_changed,
    ev.UsageCorrected: books.usage_corrected,
    ev.ShiftChanged: books.shift_changed,
    ev.ShiftFailed: books.shift_failed,
    ev.MachineFound: books.machine_found,
    ev.ExitOff: books.exit_off,
    ev.FilesApplied: books.files_applied,
    ev.ProbeChanged: books.probe_changed,
    ev.PressureChanged: books.pressure_changed,
    ev.Restored: books.restored,
    ev.Alarm: cast(_Handler, _nothing),
    ev.DaemonStarted: cast(_Handler, _nothing),
    ev.Reported: reported,
}
