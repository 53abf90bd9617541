"""Why a request may not start now, rule by rule: to add one is a function here and its name in `RULES`."""

from collections.abc import Callable
from typing import NamedTuple

from shadow.claims import FOR_ALL, PEOPLE
from shadow.followed import Followed
from shadow.places import ShadowBoards, needs_of

from nqspy.model.consumables import offline_of, units_of
from nqspy.model.health import ResourceState
from nqspy.model.ids import Instant
from nqspy.model.molded import sized
from nqspy.model.requests import Request, State, finite
from nqspy.model.settings import Settings

NOW = 3
"""Rank of ``schedule request ID now``."""


class RoomKept(NamedTuple):
    """Why one may not start. ``sure``: it may not; else the journal does not tell whether it may; ``room``:
    it waits for what all share."""

    text: str
    sure: bool = True
    room: bool = False


class PassMoment(NamedTuple):
    """The site as it is judged. A pass comes at some instant between ``first``, that of the last event it
    saw, and ``last``, that of its decision. ``unseen``: as the pass saw it, which did not know what was given
    back since."""

    followed: Followed
    places: ShadowBoards
    first: Instant
    last: Instant
    unseen: bool


Rule = Callable[[PassMoment, Request, bool], RoomKept | None]
"""Told whether an exit forces the start."""


def state(moment: PassMoment, request: Request, forced: bool) -> RoomKept | None:
    """Queued, in a batch queue that is started (manual: `queues`, `dependencies`, `exits`)."""
    queue = moment.followed.site.settings.queues.get(request.queue)
    if request.state is not State.QUEUED:
        return RoomKept(_STATES.get(request.state, f"it was {request.state}"))
    if queue is None or queue.kind != "batch":
        return RoomKept(f"{request.queue} is no batch queue")
    return None if queue.started else RoomKept(f"queue {queue.name} was stopped")


_STATES = {State.HELD: "it was held, or waited for others", State.WAITING: "its date had not come"}


def memory(moment: PassMoment, request: Request, forced: bool) -> RoomKept | None:
    """While memory is short, or one that gave way is away, nothing starts (manual: `swap`)."""
    followed = moment.followed
    control = followed.site.settings.of_features.get("swap_control")
    if control is None or not control.enabled:
        return None
    running = followed.taken.requests.values()
    away = any(
        each.pause is not None and each.pause.cause.name == "swap" and not each.ending for each in running
    )
    return RoomKept("memory was short") if away or followed.pressure != "calm" else None


def needs(moment: PassMoment, request: Request, forced: bool) -> RoomKept | None:
    """Nothing goes past a broken resource (manual: `health`)."""
    broken = needs_of(moment.followed.site, request) & moment.followed.broken
    return RoomKept(f"resource {min(broken)} was broken") if broken else None


def limits(moment: PassMoment, request: Request, forced: bool) -> RoomKept | None:
    """All limits must allow it; ``now`` goes past them, an exit's force past all but those on PEs."""
    if request.rank == NOW:
        return None
    above = moment.followed.taken.above(request, moment.unseen)
    if forced:
        above = [each for each in above if each.amount[0] in FOR_ALL]
    if not above:
        return None
    people = any(each.amount[0] in PEOPLE for each in above)
    never = any(each.asked > each.most for each in above)
    return RoomKept(f"{above[0]} left too little", room=not people and not never)


def past_use(moment: PassMoment, request: Request, forced: bool) -> RoomKept | None:
    """A cap counts past use, of which the journal of a night does not tell (manual: `shares`)."""
    groups, name = moment.followed.site.settings.groups, request.group
    while not forced and request.rank != NOW and name in groups:
        if groups[name].limit is not None:
            return RoomKept("a group's cap counts past use", sure=False)
        name = groups[name].parent or ""
    return None


def drained(moment: PassMoment, request: Request, forced: bool) -> RoomKept | None:
    """No start whose wall limit goes beyond the shift that drains its queue (manual: `shifts`). When that
    comes is not in the journal beforehand."""
    settings = moment.followed.site.settings
    draining = (each for each in settings.shifts.values() if each.spill == "drain")
    if (
        request.rank != NOW
        and wall_limit(settings, request)
        and any(d.stops(request.queue) for d in draining)
    ):
        return RoomKept("a shift may drain its queue", sure=False)
    return None


def units(moment: PassMoment, request: Request, forced: bool) -> RoomKept | None:
    """As many units are free as it asks for (manual: `consumables`); nobody goes past that."""
    site, taken = moment.followed.site, moment.followed.taken
    broken = {name: ResourceState("broken", moment.last) for name in moment.followed.broken}
    for name, count in request.spec.ask.consumables:
        each = site.settings.consumables.get(name)
        there = set(units_of(each, site.found)) if each is not None else set()
        open_ = there - set(offline_of(each, site.found, broken)) if each is not None else there
        free = [unit for unit in open_ if (name, unit) not in taken.units]
        if count > len(free):
            return RoomKept(f"{len(free)} units of {name} were free", room=count <= len(open_))
    return None


def pes(moment: PassMoment, request: Request, forced: bool) -> RoomKept | None:
    """As many PEs of its domain are free as it asks for (manual: `queues`, `domains`)."""
    asked, room = request.spec.ask.pes, moment.places.room(request.queue)
    if asked <= room:
        return None
    return RoomKept(
        f"{room} PEs could be given, it asks for {asked}", room=asked <= moment.places.size(request.queue)
    )


RULES: tuple[Rule, ...] = (state, pes, limits, needs, memory, units, past_use, drained)


def kept_back(moment: PassMoment, request: Request, forced: bool = False) -> RoomKept | None:
    """What keeps a request from starting; what surely does before what perhaps does; None: it may start."""
    perhaps = None
    for rule in RULES:
        kept = rule(moment, request, forced)
        if kept is not None and kept.sure:
            return kept
        perhaps = perhaps or kept
    return perhaps


def waits_for_room_alone(moment: PassMoment, request: Request) -> bool:
    """Whether nothing surely keeps it back but a want of what all share: whom a limit of his own people keeps
    back lets others pass, whatever else he lacks (manual: `backfill`), and so does who can never start."""
    least = on_least(moment.followed.site.settings, request)
    found = (rule(moment, least, False) for rule in RULES)
    return all(kept is None or kept.room or not kept.sure for kept in found)


def on_least(settings: Settings, request: Request) -> Request:
    """A moldable request on the least of its sizes within the limits of its queue (manual: `moldable`)."""
    mold, queue = request.spec.mold, settings.queues.get(request.queue)
    if mold is None or queue is None:
        return request
    most, longest = finite(queue.per_request.pe_limit), finite(queue.per_request.wall_limit)
    for one in (sized(request, pes) for pes in mold.sizes):
        pes, wall = one.spec.ask.pes, finite(one.spec.ask.wall)
        if (most is None or pes <= most) and (longest is None or wall is None or wall <= longest):
            return one
    return request


def wall_limit(settings: Settings, request: Request) -> int | None:
    """Wall time (ms) after which a request is ended: what it asked for, else its queue's limit for one."""
    asked, queue = finite(request.spec.ask.wall), settings.queues.get(request.queue)
    return asked if asked is not None or queue is None else finite(queue.per_request.wall_limit)
