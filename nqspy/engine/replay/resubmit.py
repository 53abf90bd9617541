"""A request that was handed in comes in again, and lands where it is routed to now: under other queues, other
submit exits, on a site that has gone another way."""

from collections.abc import Sequence

from msgspec.structs import replace

from nqspy.core.limits_of_submission import ask_submit, destination
from nqspy.engine.handlers.changed import changed
from nqspy.engine.handlers.spec import check_limits, routed
from nqspy.engine.replay.follow import Follower
from nqspy.model import events as ev
from nqspy.model.errors import Refusal
from nqspy.model.event import Recorded
from nqspy.model.ids import Instant
from nqspy.model.requests import Spec
from nqspy.model.site import Site
from nqspy.ports import Exits

TakenIn = tuple[ev.Submitted] | tuple[ev.Submitted, ev.Routed]


def as_taken_in(events: Sequence[Recorded], place: int) -> TakenIn:
    """The submission at a place of a journal, and where it was routed to at once."""
    event = events[place].event
    assert isinstance(event, ev.Submitted)
    after = events[place + 1].event if place + 1 < len(events) else None
    mine = isinstance(after, ev.Routed) and (after.seq, after.former) == (event.seq, event.queue)
    return (event, after) if mine and isinstance(after, ev.Routed) else (event,)


class Resubmission:
    """By ``exits``; ``was`` is the course as it was, at the same instant. ``asked``: submissions are shown to
    the submit exits, as they were accepted then."""

    def __init__(self, exits: Exits, was: Follower, asked: bool) -> None:
        self._exits, self._was, self._asked = exits, was, asked

    def routed(self, site: Site, as_before: TakenIn, now: Instant) -> TakenIn:
        """What comes of it on ``site``. Raises Refusal."""
        event = as_before[0]
        spec = self._wanted(site, event.spec, now)
        name = event.queue if spec.queue == event.spec.queue else spec.queue
        queue = site.settings.queues.get(name)
        if queue is None:
            raise Refusal("unknown_queue", queue=name)
        if not queue.enabled:
            raise Refusal("queue_disabled", queue=name)
        if spec == event.spec and self._is_routed_as_before(site, event, now):
            return as_before
        check_limits(site, spec, queue)
        made = replace(event, spec=spec, queue=name)
        if queue.kind == "batch":
            return (made,)
        target = routed(site, spec, queue, self._exits, spec.unix_groups, now)
        return (made,) if target == name else (made, ev.Routed(event.seq, target, name))

    def _wanted(self, site: Site, spec: Spec, now: Instant) -> Spec:
        """As the submit exits want it."""
        if not (self._asked and self._exits.has("submit")):
            return spec
        answer = ask_submit(site, spec, self._exits, now)
        return spec if answer is None else changed(site, spec, answer)

    def _is_routed_as_before(self, site: Site, event: ev.Submitted, now: Instant) -> bool:
        """Whether it goes where it would have gone under the settings of then: who may enter which queue by
        his Unix groups is not in the journal, and the same in both."""
        was, spec = self._was, event.spec
        queues = [each.settings.queues.get(event.queue) for each in (site, was.site)]
        pipes = [each for each in queues if each is not None and each.kind != "batch" and each.started]
        if len(pipes) < 2:
            return False
        here = destination(site, spec, pipes[0], self._exits, spec.unix_groups, now)
        then = destination(was.site, spec, pipes[1], was.exits, spec.unix_groups, now)
        return here[0] == then[0]
