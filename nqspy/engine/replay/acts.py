"""Acts of people and observations of the site as inputs of a course, in which requests may stand otherwise;
and submissions, which land where they are routed to now."""

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
_OF_ATTEMPTS = (ev.Started, ev.MovedOut, ev.Exiting, ev.Ended, ev.Requeued)
"""What becomes of attempts is seen again when their time has come (`hands`)."""
_AS_IT_WAS = (
    ev.PressureChanged,
    ev.MachineFound,
    ev.FilesApplied,
    ev.LoadedExits,
    ev.SettingsChanged,
    ev.Restored,
    ev.Reported,
    ev.DaemonStarted,
)


def concerns(event: Event) -> bool:
    """True if people did it, or it was seen of the site and of no attempt."""
    return not isinstance(event, _OF_ATTEMPTS) and (is_input(event) or isinstance(event, ev.ShiftChanged))


def again(site: Site, event: Event) -> Sequence[Input]:
    """Return the inputs that an event stands for; none: it comes by itself, or concerns nothing any more."""
    if getattr(event, "who", "") in (CALENDAR, "hands"):
        return ()
    if isinstance(event, _AS_IT_WAS):
        return (Observed((event,)),)
    if isinstance(event, ev.Held | ev.Deleting | ev.Suspended | ev.Resumed) and not event.because().is_person:
        by_daemon = isinstance(event, ev.Held) and event.because().name == "nqsd"
        return _as_far_as_it_fits(site, event) if by_daemon else ()
    match event:
        case ev.Modified():
            return _as_far_as_it_fits(site, event)
        case ev.Redated():
            return _as_far_as_it_fits(site, event) if event.cause is None else ()
        case ev.ResourceChanged(name, state, text):
            return (ObservedResource(name, state, text),)
        case ev.ExitOff(name):
            known = site.settings.exits.get(name)
            return (Observed((event,)),) if known is None or known.enabled else ()
    asked = _command(site, event)
    who = getattr(event, "by", "") or getattr(event, "who", "operator")
    return () if asked is None else (CommandAsked(asked, person(who)),)


def _command(site: Site, event: Any) -> cm.Command | None:
    """Return what a person asked for when that happened."""
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
        case ev.UsageCorrected():
            return cm.CorrectUsage(event.group, event.value)
        case ev.ShiftChanged():  # a person's switch, or the wish to leave it to the calendar again
            if event.manual and event.shift is not None:
                return cm.SwitchShift(event.shift, event.until)
            return cm.AutomaticShift() if site.shift.manual else None
    return None


def person(name: str) -> Caller:
    """Return a caller that may do anything, as whoever asked might."""
    return Caller(name, 0, 0, (), True)


def _as_far_as_it_fits(site: Site, event: Any) -> Sequence[Input]:
    """Return it as it was if it can happen to its requests."""
    seqs = event.seqs if hasattr(event, "seqs") else (event.seq,)
    known = (site.requests.get(seq) for seq in seqs)
    return (Observed((event,)),) if all(each is not None and fits(each, event) for each in known) else ()


TakenIn = tuple[ev.Submitted] | tuple[ev.Submitted, ev.Routed]


def as_taken_in(events: Sequence[Recorded], place: int) -> TakenIn:
    """Return the submission at a place of a journal, and where it was routed to at once."""
    event = events[place].event
    assert isinstance(event, ev.Submitted)
    after = events[place + 1].event if place + 1 < len(events) else None
    mine = isinstance(after, ev.Routed) and (after.seq, after.former) == (event.seq, event.queue)
    return (event, after) if mine and isinstance(after, ev.Routed) else (event,)


def submitted_again(site: Site, as_before: TakenIn, exits: Exits, now: Instant) -> TakenIn:
    """Return what comes of a submission on ``site``. Raises Refusal."""
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
    # The owner's Unix groups as far as the journal tells: those that were kept, and those by which the queue
    # lets people in where the request landed.
    landed = site.settings.queues.get(as_before[-1].queue)
    let_in = (*landed.groups, *site.domain_of(landed.name).groups) if landed is not None else ()
    groups = (*spec.unix_groups, *let_in)
    target = routed(site, spec, queue, exits, groups, now)
    return (made,) if target == name else (made, ev.Routed(event.seq, target, name))
