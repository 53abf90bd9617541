"""Acts of people and observations of the site as inputs of a course, in which requests may stand otherwise;
and submissions, which land where they are routed to now."""

from collections.abc import Callable, Mapping, Sequence
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
from nqspy.model.ids import Instant, Seq
from nqspy.model.indices import Runs
from nqspy.model.observations import ObservedResource
from nqspy.model.people import Caller
from nqspy.model.requests import Spec
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
    """Return the inputs that an event of the journal stands for; none: it comes by itself, or nothing is left
    that it concerns."""
    if getattr(event, "who", "") in (CALENDAR, "hands"):
        return ()
    if isinstance(event, _AS_IT_WAS):
        return (Observed((event,)),)
    make = _MAKERS.get(type(event))
    return () if make is None else make(site, event)


def person(name: str) -> Caller:
    """Return a caller that may do anything, as whoever asked might."""
    return Caller(name, 0, 0, (), True)


def _ids(site: Site, seqs: Sequence[Seq], some: Runs = ()) -> tuple[str, ...]:
    names = (site.id_of(seq) for seq in seqs)
    shown = f"[{indices.show(some)}]" if some else "[]"
    return tuple(name.replace("[]", shown, 1) for name in names)


def _ask(who: str, command: cm.Command) -> Sequence[Input]:
    return (CommandAsked(command, person(who)),)


def _as_far_as_it_fits(site: Site, event: Any) -> Sequence[Input]:
    """Return it as it was if it can happen to its requests."""
    seqs = event.seqs if hasattr(event, "seqs") else (event.seq,)
    known = (site.requests.get(seq) for seq in seqs)
    return (Observed((event,)),) if all(each is not None and fits(each, event) for each in known) else ()


def _held(site: Site, event: ev.Held) -> Sequence[Input]:
    if not event.because().is_person:
        return _as_far_as_it_fits(site, event) if event.because().name == "nqsd" else ()
    return _ask(event.who, cm.HoldRequests(_ids(site, event.seqs, event.indices), event.letter))


def _deleting(site: Site, event: ev.Deleting) -> Sequence[Input]:
    if not event.because().is_person:
        return ()
    ids = _ids(site, (event.seq,))
    asked = cm.RerunRequests(ids) if event.rerun else cm.Delete(ids, force=True, lenient=True)
    return _ask(event.who, asked)


def _paused(site: Site, event: ev.Suspended | ev.Resumed) -> Sequence[Input]:
    if not event.because().is_person:
        return ()
    ids, resume = _ids(site, (event.seq,)), isinstance(event, ev.Resumed)
    return _ask(event.by, cm.SuspendRequests(ids, resume))


def _switched(site: Site, event: ev.ShiftChanged) -> Sequence[Input]:
    """Return a person's switch, or the wish to leave it to the calendar again; nothing where the calendar has
    switched."""
    if event.manual and event.shift is not None:
        return _ask("operator", cm.SwitchShift(event.shift, event.until))
    return _ask("operator", cm.AutomaticShift()) if site.shift.manual else ()


def _off(site: Site, event: ev.ExitOff) -> Sequence[Input]:
    known = site.settings.exits.get(event.exit)
    return (Observed((event,)),) if known is None or known.enabled else ()


_MAKERS: Mapping[type[Event], Callable[[Site, Any], Sequence[Input]]] = {
    ev.Held: _held,
    ev.Released: lambda site, event: _ask(
        event.who,
        cm.ReleaseRequests(_ids(site, event.seqs, event.indices), event.letters, lenient=True),
    ),
    ev.Moved: lambda site, event: _ask(event.who, cm.MoveRequests(_ids(site, event.seqs), event.queue)),
    ev.Modified: _as_far_as_it_fits,
    ev.Ranked: lambda site, event: _ask(
        event.who, cm.ScheduleRequest(_ids(site, (event.seq,)), _PLACES[event.rank])
    ),
    ev.Deleted: lambda site, event: _ask(
        event.who, cm.Delete(_ids(site, (event.seq,), event.indices), force=True, lenient=True)
    ),
    ev.Deleting: _deleting,
    ev.Suspended: _paused,
    ev.Resumed: _paused,
    ev.Redated: lambda site, event: _as_far_as_it_fits(site, event) if event.cause is None else (),
    ev.UsageCorrected: lambda site, event: _ask(event.who, cm.CorrectUsage(event.group, event.value)),
    ev.ShiftChanged: _switched,
    ev.ResourceChanged: lambda site, event: (ObservedResource(event.name, event.state, event.text),),
    ev.ExitOff: _off,
}


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
    groups = _groups(site, spec, as_before[-1].queue)
    target = routed(site, spec, queue, exits, groups, now)
    return (made,) if target == name else (made, ev.Routed(event.seq, target, name))


def _groups(site: Site, spec: Spec, landed: str) -> tuple[str, ...]:
    """Return the owner's Unix groups as far as the journal tells: those that were kept, and those by which
    the queue lets people in where the request landed."""
    queue = site.settings.queues.get(landed)
    let_in = (*queue.groups, *site.domain_of(landed).groups) if queue is not None else ()
    return (*spec.unix_groups, *let_in)
