"""The one place where the site changes: `apply(site, recorded)`. The same events always give the same site.

`transitions` changes the requests of an event; here follows what depends on them: columns, indexes, accounts,
counts, and the list of rows to write.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from nqspy import shares
from nqspy.engine import site_changes
from nqspy.model import arrays, consumables, indices
from nqspy.model import events as ev
from nqspy.model.columns import compact
from nqspy.model.endings import End
from nqspy.model.events import Parted
from nqspy.model.ids import Instant, Seq, array_of, index_of, member, number_of
from nqspy.model.requests import MOMENT, STARTED, Request, State
from nqspy.model.site import Site, concerned
from nqspy.model.transitions import STEPS, Transition, born, is_in, part, submitted, wait_state

_NOTHING: Sequence[Transition] = ()
# Looking up a member takes as long as a call.
_QUEUED, _WAITING = State.QUEUED, State.WAITING
_ARRIVING, _SUSPENDED = State.ARRIVING, State.SUSPENDED


def apply(site: Site, recorded: ev.Recorded) -> Sequence[Transition]:
    """Change the site by one event, and record in ``site.touched`` the rows to be written. Return the
    requests that changed, each with its state before. An event about an unknown request changes nothing."""
    site.n, site.at = recorded.n, recorded.at
    event, kind = recorded.event, type(recorded.event)
    if kind not in _RECORDS:
        site.changed = site.n
        if kind is not ev.Submitted:
            site.memos.clear()
    if (handle := _OF_REQUESTS.get(kind)) is not None:
        return handle(site, event, recorded.at)
    if (step := STEPS.get(kind)) is not None:
        return (_noted if step.stays else _change)(site, event, recorded.at)
    if kind in _FREEING:
        site.freed = site.n
    site_changes.change(site, event, recorded.at)
    return _NOTHING


def place(site: Site, request: Request) -> None:
    """Enter a request into the indexes for its state: columns, started requests, PEs, dates, dependants."""
    state = request.state
    if state is _QUEUED:
        site.columns(request.queue).add(request, site.numbers)
        if request.reservation is not None:
            site.reserved[request.seq] = None
        if site.numbers.is_full():
            compact(site.numbers, site.waiting.values())
    elif state is _WAITING and (eligible := request.eligible) is not None:
        heapq.heappush(site.dates, (eligible, request.seq))
    elif state in STARTED:
        site.started[request.seq] = request
        if state is _SUSPENDED:
            site.paused[request.seq] = request
        if not request.pes_released:
            site.hold(request)
        if (units := request.units) and state is not State.EXITING:
            consumables.hold(site.units, request.seq, units)
    site.watch_for(request)


def ages_when_eligible(site: Site, name: str) -> bool:
    """True if the age of requests in that queue counts from when they could start (``age_from=eligible``)."""
    queue = site.settings.queues.get(name)
    return queue is not None and queue.age_from == "eligible"


def _displace(site: Site, request: Request) -> None:
    if request.slot >= 0:
        site.waiting[request.queue].remove(request)
    if site.reserved and site.reserved.pop(request.seq, _ABSENT) is None:
        site.freed = site.n
    if site.started.pop(request.seq, None) is not None:
        site.paused.pop(request.seq, None)
        site.freed = site.n
        if not request.pes_released:
            site.release(request)
        if units := request.units:
            consumables.release(site.units, request.seq, units)
    site.watch_no_more(request)


def _make(site: Site, request: Request, event: ev.Event, at: Instant) -> Transition:
    before = request.state
    STEPS[type(event)].make(request, event, at, lambda r: ages_when_eligible(site, r.queue))
    return Transition(request, before)


# ---------------------------------------------------------------- requests

_Also = Callable[[Site, Request, Any, Instant], None]


def _change(
    site: Site, event: Any, at: Instant, first: _Also | None = None, then: _Also | None = None
) -> Sequence[Transition]:
    """Change the requests of an event, taking each out of the indexes before and entering it again after;
    ``first`` and ``then`` are called before and after each change."""
    made = []
    for request in concerned(site, event):
        if first is not None:
            first(site, request, event, at)
        _displace(site, request)
        made.append(_make(site, request, event, at))
        if then is not None:
            then(site, request, event, at)
        place(site, request)
        site.touched.requests.add(request.seq)
    return made


def _submitted(site: Site, event: ev.Submitted, at: Instant) -> Sequence[Transition]:
    request = submitted(event, at)
    site.requests[event.seq] = request
    site.tally.enter(request)
    site.next_seq = max(site.next_seq, number_of(event.seq) + 1)
    place(site, request)
    site.touched.requests.add(event.seq)
    site.touched.state = True
    return (Transition(request, _ARRIVING),)


def _recounted(site: Site, event: Any, at: Instant) -> Sequence[Transition]:
    """Change requests of which the queue or the number of indices changes, and count them anew."""
    return _change(
        site, event, at, lambda _, r, *more: site.tally.leave(r), lambda _, r, *more: site.tally.enter(r)
    )


def _redated(site: Site, event: ev.Redated, at: Instant) -> Sequence[Transition]:
    """Set the date in queue of many requests at once; their rows in the columns stay."""
    made, by_queue = _noted(site, event, at), defaultdict[str, list[Request]](list)
    for request in (each.request for each in made if each.request.slot >= 0):
        by_queue[request.queue].append(request)
    for queue, requests in by_queue.items():
        site.waiting[queue].redate(requests, event.date)
    return made


def _noted(site: Site, event: Any, at: Instant) -> Sequence[Transition]:
    """Change requests that keep their places in the indexes, as nothing in these depends on the change."""
    requests = list(concerned(site, event))
    site.touched.requests.update(request.seq for request in requests)
    return [_make(site, request, event, at) for request in requests]


def _ranked(site: Site, event: ev.Ranked, at: Instant) -> Sequence[Transition]:
    made = _noted(site, event, at)
    for request in (each.request for each in made if each.request.slot >= 0):
        site.waiting[request.queue].update(request, site.numbers)
    return made


def _reserved(site: Site, event: ev.Reserved, at: Instant) -> Sequence[Transition]:
    made = _noted(site, event, at)
    site.note_reserved((each.request for each in made), event.as_of)
    return made


# ---------------------------------------------------------------- attempts


def _run(site: Site, request: Request, event: Any, at: Instant) -> None:
    shares.begin(site, request, at)


def _settle(site: Site, request: Request, event: Any, at: Instant) -> None:
    shares.settle(site, request, event.used, at)


def _starting(site: Site, event: ev.Starting, at: Instant) -> Sequence[Transition]:
    if event.units:
        site.turns |= {name: units[-1] for name, units in event.units}
        site.touched.state = True
    array = site.requests.get(array_of(event.seq) or 0)
    if array is not None and array.state is State.QUEUED and event.seq not in site.requests:
        bring_forth(site, array, event.seq, at)
    site.reserved.pop(event.seq, None)  # its reservation is used up: nothing becomes free
    made = _change(site, event, at, then=_run)
    if event.forced and site.reserved:
        site.freed = site.n  # it may hold what is reserved
    if made and array is not None and array.array is not None:
        array.array = arrays.begun(array.array)
        site.touched.requests.add(array.seq)
    return made


def _started(site: Site, event: ev.Started, at: Instant) -> Sequence[Transition]:
    """Record that an attempt has begun. If that took `MOMENT` or more, it ends later than planned:
    reservations are examined again."""
    request = site.requests.get(event.seq)
    decided = at if request is None or request.started is None else request.started
    made = _noted(site, event, at)
    if site.reserved and any(one.request.run.started - decided >= MOMENT for one in made):
        site.freed = site.n
    return made


def _suspended(site: Site, event: ev.Suspended, at: Instant) -> Sequence[Transition]:
    made = _change(site, event, at, lambda site, request, *_: shares.charge_suspended(site, request, at))
    for request in (each.request for each in made if event.because().is_feature):
        held = dict(site.pressure.resident).get(request.seq, 0)
        request.attempt = replace(request.run, preempted_bytes=held)
        site_changes.pressure_answered(site)
    return made


def _resumed(site: Site, event: ev.Resumed, at: Instant) -> Sequence[Transition]:
    made = _change(site, event, at, then=_run)
    if made and event.because().is_feature:
        site_changes.pressure_answered(site)
    return made


def _removed(site: Site, event: ev.Ended | ev.Deleted, at: Instant) -> Sequence[Transition]:
    if isinstance(event, ev.Deleted) and event.indices:
        return _recounted(site, event, at)  # the array goes on with its other indices
    made = []
    for request in concerned(site, event):
        if isinstance(event, ev.Ended) and request.array is None:
            _settle(site, request, event, at)
            site_changes.remember(site, request, event)
        _displace(site, request)
        made.append(_make(site, request, event, at))
        del site.requests[request.seq]
        site.tally.leave(request)
        site.touched.requests.discard(request.seq)
        site.touched.ended[request.seq] = (request, event)
        array, index = site.requests.get(array_of(request.seq) or 0), index_of(request.seq)
        if array is None or array.array is None or index is None:
            continue
        if isinstance(event, ev.Ended):  # the array counts it
            used = event.used
            totals = (used.cpu, used.wall, used.memory)
            array.array = arrays.ended(array.array, index, End.of(event).code, totals)
        else:
            array.array = arrays.removed(array.array, index)
        site.touched.requests.add(array.seq)
    return made


# ---------------------------------------------------------------- arrays


def bring_forth(site: Site, array: Request, seq: Seq, at: Instant) -> None:
    """Make ``seq``, an index of an array, a request of its own, if the array still has it. The caller enters
    it into the indexes (`place`)."""
    if not is_in(array, seq):
        return
    made = born(array, seq)
    made.state = wait_state(made, at)
    site.requests[seq] = made
    site.reserved.pop(array.seq, None)
    ready = array.array.ready if array.array is not None else ()
    if array.slot >= 0 and indices.has(ready, index_of(seq) or 0) and indices.count(ready) > 1:
        part(array, seq, at)
        site.waiting[array.queue].update(array, site.numbers)
    else:
        _displace(site, array)
        part(array, seq, at)
        place(site, array)
    site.touched.requests.add(array.seq)


def _parted(site: Site, event: Parted, at: Instant) -> Sequence[Transition]:
    array, made = site.requests.get(event.seq), list[Transition]()
    for seq in [member(event.seq, index) for index in indices.each(event.indices)] if array else ():
        bring_forth(site, array, seq, at)  # type: ignore[arg-type]
        if seq in site.requests:
            place(site, site.requests[seq])
            site.touched.requests.add(seq)
            made.append(Transition(site.requests[seq], State.ARRIVING))
    return made


_ABSENT = object()
_RECORDS = {ev.Decided, ev.Alarm, ev.DaemonStarted, ev.Reported}
"""Events that change nothing on which passes depend, except recorded use."""
_FREEING = {
    ev.SettingsChanged,
    ev.ShiftChanged,
    ev.ShiftFailed,
    ev.MachineFound,
    ev.LoadedExits,
    ev.ExitOff,
    ev.FilesApplied,
    ev.Restored,
    ev.ResourceChanged,
    ev.ForeignChanged,
}
"""Events about the site after which a waiting request may be able to start."""
_OF_REQUESTS: dict[type[ev.Event], Callable[[Site, Any, Instant], Sequence[Transition]]] = {
    ev.Submitted: _submitted,
    ev.Routed: _recounted,
    ev.Moved: _recounted,
    ev.Redated: _redated,
    ev.Reserved: _reserved,
    ev.Ranked: _ranked,
    ev.Starting: _starting,
    ev.Started: _started,
    ev.Suspended: _suspended,
    ev.Resumed: _resumed,
    ev.MovedOut: partial(_change, then=site_changes.moved_out),
    ev.Exiting: partial(_change, first=_settle),
    ev.Ended: _removed,
    ev.Requeued: partial(_change, first=_settle),
    ev.Deleted: _removed,
    Parted: _parted,
    # Indices of an array that it holds no longer wait for other requests.
    ev.DependencyFailed: lambda site, event, at: (_change if event.indices else _noted)(site, event, at),
}
"""Functions for events that do more than change requests (`_change`, `_noted`)."""
