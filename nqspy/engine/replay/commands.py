"""Conversion of recorded events into inputs of a what-if run, where requests may have other states: commands
of people, observations of the site, and submissions, which are routed by the present state."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from nqspy.core.route import ask_submit
from nqspy.engine.handlers.requests import RANKS
from nqspy.engine.handlers.spec import changed, check_limits, routed
from nqspy.engine.inputs import CommandAsked, Input, Observed
from nqspy.engine.replay.recording import CALENDAR, is_input
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import indices
from nqspy.model.errors import Refusal
from nqspy.model.events import Event, Recorded
from nqspy.model.ids import Instant
from nqspy.model.observations import ObservedResource
from nqspy.model.people import Caller
from nqspy.model.site import Site
from nqspy.model.transitions import fits
from nqspy.ports import Exits

_PLACES: Mapping[int, Any] = {rank: place for place, rank in RANKS.items()}
_ATTEMPT_EVENTS = (ev.Started, ev.MovedOut, ev.Exiting, ev.Ended, ev.Requeued)
"""Events of attempts: the `ReplayExecutor` reports these at their own time."""
_UNCHANGED = (
    ev.PressureChanged,
    ev.MachineFound,
    ev.ForeignChanged,
    ev.FilesApplied,
    ev.LoadedExits,
    ev.SettingsChanged,
    ev.Restored,
    ev.Reported,
    ev.DaemonStarted,
)


def is_replayed(event: Event) -> bool:
    """True if a person's command caused an event, or an observation of the site (not of an attempt)."""
    return not isinstance(event, _ATTEMPT_EVENTS) and (is_input(event) or isinstance(event, ev.ShiftChanged))


def inputs_of(site: Site, event: Event) -> Sequence[Input]:
    """Return the inputs of a what-if run for a recorded event; empty: the engine derives it itself, or it
    does not apply to ``site``."""
    if getattr(event, "who", "") in (CALENDAR, "hands"):
        return ()
    if isinstance(event, _UNCHANGED):
        return (Observed((event,)),)
    if isinstance(event, ev.Held | ev.Deleting | ev.Suspended | ev.Resumed) and not event.because().is_person:
        by_daemon = isinstance(event, ev.Held) and event.because().name == "nqsd"
        return _if_it_applies(site, event) if by_daemon else ()
    match event:
        case ev.Modified():
            return _if_it_applies(site, event)
        case ev.Redated():
            return _if_it_applies(site, event) if event.cause is None else ()
        case ev.ResourceChanged(name, state, text):
            return (ObservedResource(name, state, text),)
        case ev.ExitOff(name):
            known = site.settings.exits.get(name)
            return (Observed((event,)),) if known is None or known.enabled else ()
    asked = _command(site, event)
    who = getattr(event, "by", "") or getattr(event, "who", "operator")
    return () if asked is None else (CommandAsked(asked, privileged(who)),)


def _command(site: Site, event: Any) -> cm.Command | None:
    """Return the command that a person gave to cause a recorded event; None: no command did."""
    some, seqs = getattr(event, "indices", ()), getattr(event, "seqs", None)
    seqs = (getattr(event, "seq", 0),) if seqs is None else seqs
    shown = f"[{indices.show(some)}]" if some else "[]"
    ids = tuple(site.id_of(seq).replace("[]", shown, 1) for seq in seqs)
    match event:
        case ev.Held():
            return cm.HoldRequests(ids, event.letter)
        case ev.Released():
            return cm.ReleaseRequests(ids, event.letters, lenient=True)
        case ev.Moved():
            return cm.MoveRequests(ids, event.queue)
        case ev.Ranked():
            return cm.ScheduleRequest(ids, _PLACES[event.rank])
        case ev.Deleting(rerun=True):
            return cm.RerunRequests(ids)
        case ev.Deleted() | ev.Deleting():
            return cm.Delete(ids, force=True, lenient=True)
        case ev.Suspended() | ev.Resumed():
            return cm.SuspendRequests(ids, isinstance(event, ev.Resumed))
        case ev.PauseChanged():
            return cm.SuspendRequests(ids, not event.to.is_person)
        case ev.UsageCorrected():
            return cm.CorrectUsage(event.group, event.value)
        case ev.ShiftChanged():  # a person's switch, or the end of one
            if event.manual and event.shift is not None:
                return cm.SwitchShift(event.shift, event.until)
            return cm.AutomaticShift() if site.shift.manual else None
    return None


def privileged(name: str) -> Caller:
    """Return a caller with all rights, because the command was allowed when it was recorded."""
    return Caller(name, 0, 0, (), True)


def _if_it_applies(site: Site, event: Any) -> Sequence[Input]:
    """Return a recorded event as an input if it is possible in its requests' present states; else none."""
    seqs = event.seqs if hasattr(event, "seqs") else (event.seq,)
    known = (site.requests.get(seq) for seq in seqs)
    return (Observed((event,)),) if all(each is not None and fits(each, event) for each in known) else ()


Submission = tuple[ev.Submitted] | tuple[ev.Submitted, ev.Routed]


def submission_at(events: Sequence[Recorded], place: int) -> Submission:
    """Return the submission at index ``place`` of these events, with its first routing if that follows."""
    event = events[place].event
    assert isinstance(event, ev.Submitted)
    after = events[place + 1].event if place + 1 < len(events) else None
    mine = isinstance(after, ev.Routed) and (after.seq, after.former) == (event.seq, event.queue)
    return (event, after) if mine and isinstance(after, ev.Routed) else (event,)


def resubmitted(site: Site, as_before: Submission, exits: Exits, now: Instant) -> Submission:
    """Return the events of a recorded submission as ``site`` and exits would make them. Raises Refusal."""
    event = as_before[0]
    answer = ask_submit(site, event.spec, exits, now)
    spec = event.spec if answer is None else changed(site, event.spec, answer)
    name = event.queue if spec.queue == event.spec.queue else spec.queue
    queue = site.settings.queues.get(name)
    if queue is None:
        raise Refusal("unknown_queue", queue=name)
    if not queue.enabled:
        raise Refusal("queue_disabled", queue=name)
    check_limits(site, spec, queue)
    made = replace(event, spec=spec, queue=name)
    if queue.kind == "batch":
        return (made,)
    # The owner's Unix groups as far as the journal has them: those of the request, and those that have access
    # to the queue to which it was routed then.
    former = site.settings.queues.get(as_before[-1].queue)
    admitted = (*former.groups, *site.domain_of(former.name).groups) if former is not None else ()
    groups = (*spec.unix_groups, *admitted)
    target = routed(site, spec, queue, exits, groups, now)
    return (made,) if target == name else (made, ev.Routed(event.seq, target, name))
