"""A request that was handed in comes in again, and lands where it is routed to now: under other queues, other
submit exits, on a site that has gone another way."""

from collections.abc import Sequence

from msgspec.structs import replace

from nqspy.core.route import ask_submit
from nqspy.engine.handlers.changed import changed
from nqspy.engine.handlers.spec import check_limits, routed
from nqspy.model import events as ev
from nqspy.model.errors import Refusal
from nqspy.model.events import Recorded
from nqspy.model.ids import Instant
from nqspy.model.requests import Spec
from nqspy.model.site import Site
from nqspy.ports import Exits

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
