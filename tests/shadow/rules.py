"""Why a request may not start now, rule by rule. A new rule is a function here and its name in `RULES`."""

from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from shadow.claims import FORCED, OWNER, Amount, Claim, claims, held_by
from shadow.followed import Followed
from shadow.places import Boards, needs_of

from nqspy.model.consumables import offline_of, units_of
from nqspy.model.health import ResourceState
from nqspy.model.ids import Instant, Seq
from nqspy.model.people import lineage
from nqspy.model.requests import Request, State, finite
from nqspy.model.settings import Settings
from nqspy.model.specs import sized

NOW = 3
"""Rank of ``schedule request ID now``."""


class Blocked(NamedTuple):
    """Why a request may not start. ``sure``: it may not; otherwise the journal does not tell; ``room``: it
    waits for what all requests share."""

    text: str
    sure: bool = True
    room: bool = False


class Moment:
    """The site as it is judged. The pass came between ``first``, the instant of the last event it saw, and
    ``last``, that of its decision. ``unseen``: as the pass saw it, without what was given back since."""

    def __init__(self, followed: Followed, first: Instant, last: Instant, unseen: bool) -> None:
        self.followed, self.first, self.last, self.unseen = followed, first, last, unseen
        self.holding = followed.holding()
        self.amounts, pes = Counter[Amount](), Counter[int]()
        held = [held_by(followed.site, request) for request in self.holding]
        for amounts, own_pes in [*held, followed.unseen] if unseen else held:
            self.amounts.update(amounts)
            pes.update(own_pes)
        self.places = Boards(followed, pes)

    @cached_property
    def units(self) -> dict[tuple[str, str], Seq]:
        """Units that are held, and by which request."""
        return {(n, unit): r.seq for r in self.holding for n, units in r.units for unit in units}

    def above(self, request: Request) -> list[Claim]:
        """Return the limits that a start of the request would exceed."""
        asked = claims(self.followed.site, request)
        return [each for each in asked if self.amounts[each.amount] + each.asked > each.most]


Rule = Callable[[Moment, Request, bool], Blocked | None]
"""The third argument: an exit forces the start."""


def state(moment: Moment, request: Request, forced: bool) -> Blocked | None:
    """A request must be queued in a started batch queue (manual: `queues`, `dependencies`, `exits`)."""
    queue = moment.followed.site.settings.queues.get(request.queue)
    if request.state is not State.QUEUED:
        return Blocked(_STATES.get(request.state, f"it was {request.state}"))
    if queue is None or queue.kind != "batch":
        return Blocked(f"{request.queue} is no batch queue")
    return None if queue.started else Blocked(f"queue {queue.name} was stopped")


_STATES = {State.HELD: "it was held, or waited for others", State.WAITING: "its date had not come"}


def memory(moment: Moment, request: Request, forced: bool) -> Blocked | None:
    """While memory is short, or a request that gave way is away, nothing starts (manual: `swap`)."""
    control = moment.followed.site.settings.of_features.get("swap_control")
    if control is None or not control.enabled:
        return None
    pauses = [request.run.pause for request in moment.holding if not request.ending]
    away = any(pause is not None and pause.cause.name == "swap" for pause in pauses)
    return Blocked("memory was short") if away or moment.followed.pressure != "calm" else None


def needs(moment: Moment, request: Request, forced: bool) -> Blocked | None:
    """Nothing starts on a broken resource (manual: `health`)."""
    broken = needs_of(moment.followed.site, request) & moment.followed.broken
    return Blocked(f"resource {min(broken)} was broken") if broken else None


def limits(moment: Moment, request: Request, forced: bool) -> Blocked | None:
    """All limits must allow it; ``now`` passes them, an exit's force passes all but those on PEs."""
    if request.rank == NOW:
        return None
    above = [each for each in moment.above(request) if not forced or each.amount[0] in FORCED]
    if not above:
        return None
    owners = any(each.amount[0] in OWNER for each in above)
    never = any(each.asked > each.most for each in above)
    return Blocked(f"{above[0]} left too little", room=not owners and not never)


def past_use(moment: Moment, request: Request, forced: bool) -> Blocked | None:
    """A cap counts past use, which a journal of one night does not have (manual: `shares`)."""
    groups = moment.followed.site.settings.groups
    capped = any(name in groups and groups[name].limit is not None for name in lineage(groups, request.group))
    passes = forced or request.rank == NOW
    return Blocked("a group's cap counts past use", sure=False) if capped and not passes else None


def drained(moment: Moment, request: Request, forced: bool) -> Blocked | None:
    """No start whose wall limit goes beyond the shift that drains its queue (manual: `shifts`). The journal
    does not say beforehand when that shift comes."""
    settings = moment.followed.site.settings
    drains = any(each.spill == "drain" and each.stops(request.queue) for each in settings.shifts.values())
    limited = request.rank != NOW and wall_limit(settings, request)
    return Blocked("a shift may drain its queue", sure=False) if limited and drains else None


def units(moment: Moment, request: Request, forced: bool) -> Blocked | None:
    """As many units must be free as it asks for (manual: `consumables`); nothing passes that."""
    site = moment.followed.site
    broken = {name: ResourceState("broken", moment.last) for name in moment.followed.broken}
    for name, count in request.spec.ask.consumables:
        known = site.settings.consumables.get(name)
        offline = set(offline_of(known, site.found, broken)) if known else set()
        usable = set(units_of(known, site.found)) - offline if known else set()
        free = [unit for unit in usable if (name, unit) not in moment.units]
        if count > len(free):
            return Blocked(f"{len(free)} units of {name} were free", room=count <= len(usable))
    return None


def pes(moment: Moment, request: Request, forced: bool) -> Blocked | None:
    """As many PEs of its domain must be free as it asks for (manual: `queues`, `domains`)."""
    asked, places, queue = request.spec.ask.pes, moment.places, request.queue
    if asked <= (room := places.room(queue)):
        return None
    return Blocked(f"{room} PEs could be given, it asks for {asked}", room=asked <= places.size(queue))


RULES: tuple[Rule, ...] = (state, pes, limits, needs, memory, units, past_use, drained)


def blocked(moment: Moment, request: Request, forced: bool = False) -> Blocked | None:
    """Return why a request may not start, sure reasons first; None: no rule refuses it."""
    perhaps = None
    for rule in RULES:
        why = rule(moment, request, forced)
        if why is not None and why.sure:
            return why
        perhaps = perhaps or why
    return perhaps


def waits_for_room_alone(moment: Moment, request: Request) -> bool:
    """True if only what all requests share is missing. A request that a limit of its owner holds, or that can
    never start, blocks no other (manual: `backfill`)."""
    least = on_least(moment.followed.site.settings, request)
    reasons = (rule(moment, least, False) for rule in RULES)
    return all(why is None or why.room or not why.sure for why in reasons)


def on_least(settings: Settings, request: Request) -> Request:
    """Return a moldable request on the least of its sizes that its queue takes (manual: `moldable`)."""
    mold, queue = request.spec.mold, settings.queues.get(request.queue)
    if mold is None or queue is None:
        return request
    most, longest = finite(queue.per_request.pe_limit), finite(queue.per_request.wall_limit)
    for one in (sized(request, size) for size in mold.sizes):
        size, wall = one.spec.ask.pes, finite(one.spec.ask.wall)
        if (most is None or size <= most) and (longest is None or wall is None or wall <= longest):
            return one
    return request


def wall_limit(settings: Settings, request: Request) -> int | None:
    """Return the wall limit (ms) of a request: its own, else its queue's; None: it has none."""
    asked, queue = finite(request.spec.ask.wall), settings.queues.get(request.queue)
    return asked if asked is not None or queue is None else finite(queue.per_request.wall_limit)
