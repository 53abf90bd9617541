"""The state machine of a request: what each event changes in it. The site's indexes, accounts and counts
follow from it (`lifecycle`); reports follow requests by the same functions, without a site. Nothing here
decides or refuses, because events are facts. Callers first check that an event `fits`."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nqspy.model import arrays, indices
from nqspy.model import events as ev
from nqspy.model.arrays import ArrayState
from nqspy.model.ids import Instant, Seq, index_of, member
from nqspy.model.requests import (
    PRIME,
    STARTED,
    Attempt,
    AttemptOutput,
    Dependency,
    EndOrder,
    MovesMade,
    Pause,
    Redating,
    Request,
    State,
)
from nqspy.model.specs import on_size, while_waiting

_ENDED, _HELD, _RUNNING = (
    State.ENDED,
    State.HELD,
    State.RUNNING,
)  # looking up a member costs a call
HELD_AT_SUBMISSION = "held by its owner at submission"
_FORMER = 100
"""Most attempts of a request of which the output paths are stored: the latest ones."""

Ages = Callable[[Request], bool]
"""Function that returns True if age in a request's queue counts from when it could start (``age_from``)."""


class Transition(Struct, frozen=True):
    """A request to which an event has happened, and its state before; `lifecycle.apply` returns these."""

    request: Request
    before: State


class Step(Struct, frozen=True):
    """Effect of a kind of event on a request. ``states``: those in which it can happen; ``make``: function
    that changes the request; ``stays``: True if its state and its place in the queue do not change."""

    states: tuple[State, ...]
    make: Callable[[Request, Any, Instant, Ages], None]
    stays: bool = False


def submitted(event: ev.Submitted, at: Instant) -> Request:
    """Return the request that a submission at the instant ``at`` creates: waiting, held or queued."""
    spec = event.spec
    request = Request(event.seq, spec, event.queue, State(event.state), at, at)
    if spec.after:
        request.unmet = tuple(each for each in spec.after if each.word != "each")
    if spec.array is not None:
        one_by_one = tuple(each.seq for each in spec.after if each.word == "each")
        request.array = arrays.begin(spec.array, one_by_one)
    if request.state is _HELD and (spec.held or not spec.after):
        request.holds, request.hold_text = "u", HELD_AT_SUBMISSION
    if request.array is not None:
        request.state = wait_state(request, at)
    return request


def is_in(array: Request | None, seq: Seq) -> bool:
    """True if an index is still in its array (not begun), so that it can become a request of its own."""
    index = index_of(seq)
    there = array is not None and array.array is not None and index is not None
    return there and indices.has(array.array.left, index)  # type: ignore[union-attr, arg-type]


def born(array: Request, seq: Seq) -> Request:
    """Return an index as a request of its own before anything happens to it; its array still has it."""
    index, state = index_of(seq), array.array
    assert index is not None
    assert state is not None
    made = Request(seq, array.spec, array.queue, array.state, array.submitted, array.date_in_queue)
    made.rank, made.redated, made.never = array.rank, array.redated, array.never
    made.holds, made.hold_text = array.holds, array.hold_text
    awaited = (Dependency(member(other, index)) for other, runs in state.awaiting if indices.has(runs, index))
    made.unmet = (*array.unmet, *awaited)
    for held in state.held:
        if indices.has(held.indices, index):
            made.holds = "".join(sorted({*made.holds, *held.letters}))
            made.hold_text = held.text
    made.state = State.HELD if made.holds or made.unmet else array.state
    return made


def part(array: Request, seq: Seq, at: Instant) -> None:
    """Remove an index from its array, as it becomes a request of its own; the array loses its reservation."""
    index = index_of(seq)
    assert index is not None
    assert array.array is not None
    array.array = arrays.leave(array.array, index)
    array.state, array.reservation = wait_state(array, at), None


def fits(request: Request, event: ev.Event) -> bool:
    """True if an event can happen to a request in its present state. An event of an attempt must name the
    latest attempt; to an array only the events of `_OF_ARRAYS` can happen."""
    kind = type(event)
    number = event.attempt if kind in _OF_ATTEMPTS else None  # type: ignore[attr-defined]
    if request.array is not None:
        return request.state in _BEFORE and kind in _OF_ARRAYS and not number
    if request.state not in STEPS[kind].states:
        return False
    return number is None or request.run.number == number


def wait_state(request: Request, now: Instant) -> State:
    """Return the state of a request without an attempt, by its holds, dependencies and date."""
    if request.holds or request.unmet:
        return State.HELD
    if (eligible := request.eligible) is not None and eligible > now:
        return State.WAITING
    return State.QUEUED if request.array is None or request.array.ready else State.BEGUN


# ---------------------------------------------------------------- coming in, waiting


def _move(request: Request, event: ev.Moved | ev.Routed, at: Instant, ages: Ages) -> None:
    request.queue, request.reservation = event.queue, None
    request.date_in_queue, request.redated = at, None
    request.state = wait_state(request, at)


def _come_due(request: Request, event: ev.Eligible, at: Instant, ages: Ages) -> None:
    if request.retry is None:
        request.date_in_queue, request.redated = at, None
    request.state = wait_state(request, at)


def _hold(request: Request, event: ev.Held, at: Instant, ages: Ages) -> None:
    if event.indices:
        text = event.text or f"held by {event.who}"
        return _of_indices(request, at, arrays.hold, event.indices, event.letter, text)
    request.holds = "".join(sorted({*request.holds, event.letter}))
    request.hold_text = event.text or f"held by {event.who}"
    request.state, request.reservation = State.HELD, None
    return None


def _of_indices(request: Request, at: Instant, change: Callable[..., ArrayState], *arguments: Any) -> None:
    """Set the array state to ``change(state, *arguments)``, and the request's state by it. Unless the array
    is still queued, its reservation is dropped."""
    assert request.array is not None
    request.array = change(request.array, *arguments)
    request.state = wait_state(request, at)
    if request.state is not State.QUEUED:
        request.reservation = None


def _release(request: Request, event: ev.Released, at: Instant, ages: Ages) -> None:
    if event.indices and request.array is not None:  # holds of the whole array become holds of its indices
        for letter in (each for each in request.holds if each in event.letters):
            _of_indices(request, at, arrays.hold, request.array.left, letter, request.hold_text)
    request.holds = "".join(letter for letter in request.holds if letter not in event.letters)
    request.hold_text = request.hold_text if request.holds else ""
    if event.indices:
        _of_indices(request, at, arrays.release, event.indices, event.letters)
        return _let_wait(request, at, event.aging and ages(request))
    if request.array is not None:
        request.array = arrays.release(request.array, request.array.left, event.letters)
    _await(request, () if "s" in event.letters else request.unmet, at, event.aging and ages(request))
    return None


def _meet(request: Request, event: ev.DependencyMet, at: Instant, ages: Ages) -> None:
    if event.indices:
        _of_indices(request, at, arrays.met, event.prerequisite, event.indices)
        return _let_wait(request, at, event.aging and ages(request))
    if event.what is not None:
        others = [each for each in request.prerequisites if each.seq != event.prerequisite]
        request.prerequisites = (*others, event.what)
    met = [Dependency(event.prerequisite, word) for word in event.words]
    unmet = tuple(each for each in request.unmet if each not in met)
    return _await(request, unmet, at, event.aging and ages(request))


def _fail(request: Request, event: ev.DependencyFailed, at: Instant, ages: Ages) -> None:
    if event.indices:
        return _of_indices(request, at, arrays.failed, event.prerequisite, event.indices, event.text)
    request.never = event.text
    return None


def _await(request: Request, unmet: tuple[Dependency, ...], at: Instant, anew: bool) -> None:
    """Set the dependencies for which a request still waits (empty after a release of the system's hold), and
    its state. ``anew``: as in `_let_wait`."""
    request.unmet = unmet
    if not unmet:
        request.never = ""
    _let_wait(request, at, anew)


def _let_wait(request: Request, at: Instant, anew: bool = False) -> None:
    """Set a waiting request to queued, held or waiting for its date. Time before its date does not count as
    time in queue (unless it was redated). With ``anew``, neither does the time before it could start, except
    for a request of a list, which keeps the list's order."""
    request.state, eligible = wait_state(request, at), request.spec.eligible
    if request.state is not State.QUEUED:
        return
    if anew and not request.spec.listed:
        request.date_in_queue, request.redated = at, None
    elif eligible is not None and request.redated is None:
        request.date_in_queue = max(request.date_in_queue, eligible)


def _redate(request: Request, event: ev.Redated, at: Instant, ages: Ages) -> None:
    request.date_in_queue = event.date
    request.redated = Redating(at, event.who, event.cause, event.place)


def _reserve(request: Request, event: ev.Reserved, at: Instant, ages: Ages) -> None:
    request.reservation = event.starts[request.seq]


def _rank(request: Request, event: ev.Ranked, at: Instant, ages: Ages) -> None:
    request.rank = event.rank


def _modify(request: Request, event: ev.Modified, at: Instant, ages: Ages) -> None:
    if request.state in STARTED:
        request.spec, request.attempt = event.spec, replace(request.run, adjusted=True)
        return
    if request.state is State.WAITING and (event.spec.eligible or 0) <= at:
        request.date_in_queue = at
    if event.spec.ask != request.spec.ask:
        request.reservation = None
    request.spec = event.spec
    _let_wait(request, at)


# ---------------------------------------------------------------- attempts


def _start(request: Request, event: ev.Starting, at: Instant, ages: Ages) -> None:
    request.attempts, request.reservation = event.attempt, None
    request.rank = PRIME if request.rank == PRIME else 0
    request.attempt = Attempt(
        event.attempt, event.pes, at, units=event.units, until=event.until, passing=event.passing,
        lacked=event.lacked,
    )  # fmt: skip
    if request.spec.mold is not None:
        request.spec = on_size(request.spec, len(event.pes))
    request.state = _RUNNING


def _begin(request: Request, event: ev.Started, at: Instant, ages: Ages) -> None:
    run = request.run
    if run.starting:
        began = at if event.began is None else event.began
        request.attempt, request.retry = replace(run, starting=False, started=began), None


def _suspend(request: Request, event: ev.Suspended, at: Instant, ages: Ages) -> None:
    pause = Pause(event.because(), at, event.text, event.parked, event.leaving)
    times = request.run.preempted_times + pause.cause.is_feature
    request.attempt = replace(request.run, pause=pause, preempted_times=times)
    request.state = State.SUSPENDED


def _move_out(request: Request, event: ev.MovedOut, at: Instant, ages: Ages) -> None:
    pause = request.run.pause
    assert pause is not None
    pause = Pause(pause.cause, pause.at, pause.text, pes_released=True)
    times, duration, paged = request.run.moved
    moved = MovesMade(times + 1, duration + event.took, paged + event.paged)
    request.attempt = replace(request.run, pause=pause, moved=moved)


def _change_pause(request: Request, event: ev.PauseChanged, at: Instant, ages: Ages) -> None:
    pause, still = request.run.pause, request.run.suspended_time
    assert pause is not None
    changed = replace(pause, cause=event.to, at=at, text=event.text)  # its new wait begins now
    request.attempt = replace(request.run, pause=changed, suspended_time=still + at - pause.at)


def _resume(request: Request, event: ev.Resumed, at: Instant, ages: Ages) -> None:
    former = request.run
    by_person = at if event.because().is_person else former.resumed_by_person
    pes, still = event.pes or former.pes, former.suspended_time
    still += at - former.pause.at if former.pause is not None else 0
    request.attempt = replace(
        former, pes=pes, pause=None, resumed=at, resumed_by_person=by_person, suspended_time=still
    )
    request.state = State.RUNNING


def _migrate(request: Request, event: ev.Migrated, at: Instant, ages: Ages) -> None:
    request.attempt = replace(request.run, pes=event.pes, migrated=at)


def _order_end(request: Request, event: ev.Deleting, at: Instant, ages: Ages) -> None:
    request.attempt = replace(request.run, ending=EndOrder(event.because(), event.rerun, event.text))


def _exit(request: Request, event: ev.Exiting, at: Instant, ages: Ages) -> None:
    request.attempt = replace(request.run, pes=(), pause=None, resumed=None, undelivered=event.text)
    request.state = State.EXITING


def _end(request: Request, event: ev.Ended | ev.Deleted, at: Instant, ages: Ages) -> None:
    if isinstance(event, ev.Deleted) and event.indices:
        return _of_indices(request, at, arrays.dropped, event.indices)
    request.state = _ENDED
    return None


def _requeue(request: Request, event: ev.Requeued, at: Instant, ages: Ages) -> None:
    request.attempt, request.losses, request.retry = None, event.losses, event.retry
    if event.stdout is not None:
        output = AttemptOutput(event.attempt, event.stdout, event.stderr)
        request.former = (*request.former[1 - _FORMER :], output)
    request.spec = while_waiting(request.spec)
    request.hold_text = request.hold_text if request.holds else ""
    request.state = wait_state(request, at)


WAITING = (State.QUEUED, State.WAITING, State.HELD, State.BEGUN)
"""States of a request in a queue, without an attempt."""
_BEFORE = (*WAITING, State.ARRIVING, State.ROUTING)
_ANY = (*_BEFORE, *STARTED)

STEPS: dict[type[ev.Event], Step] = {
    ev.Routed: Step(_BEFORE, _move),
    ev.Moved: Step(_BEFORE, _move),
    ev.Eligible: Step((State.WAITING,), _come_due),
    ev.Held: Step(WAITING, _hold),
    ev.Released: Step((State.HELD,), _release),
    ev.DependencyMet: Step((State.HELD,), _meet),
    ev.DependencyFailed: Step(_BEFORE, _fail, stays=True),
    ev.Redated: Step(WAITING, _redate),
    ev.Reserved: Step((State.QUEUED,), _reserve, stays=True),
    ev.Ranked: Step(_ANY, _rank, stays=True),
    ev.Modified: Step(_ANY, _modify),
    ev.Starting: Step(_BEFORE, _start),
    ev.Started: Step(STARTED, _begin, stays=True),
    ev.Suspended: Step((State.RUNNING,), _suspend),
    ev.Resumed: Step((State.SUSPENDED,), _resume),
    ev.MovedOut: Step((State.SUSPENDED,), _move_out),
    ev.Migrated: Step((State.RUNNING,), _migrate),
    ev.PauseChanged: Step((State.SUSPENDED,), _change_pause),
    ev.Deleting: Step(STARTED, _order_end, stays=True),
    ev.Exiting: Step((State.RUNNING, State.SUSPENDED), _exit),
    ev.Ended: Step(STARTED, _end),
    ev.Requeued: Step(STARTED, _requeue),
    ev.Deleted: Step(_BEFORE, _end),
}

_OF_ATTEMPTS = frozenset(kind for kind in STEPS if hasattr(kind, "attempt") and kind is not ev.Starting)
"""Events that name an existing attempt."""

_OF_ARRAYS = frozenset({
    ev.Routed, ev.Moved, ev.Eligible, ev.Held, ev.Released, ev.DependencyMet, ev.DependencyFailed,
    ev.Redated, ev.Reserved, ev.Ranked, ev.Modified, ev.Ended, ev.Deleted,
})  # fmt: skip
"""Events that can happen to an array, which never runs itself; its end has attempt 0."""
