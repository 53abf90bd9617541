"""Route: pipe queues pass requests on by the limits that they ask for (semantics.md 1, nqs.md 5).

Destinations are tried in order; the first that accepts wins. A destination accepts a request if

- it is enabled and not full (``loadonly``), and the owner has access,
- all limits that the request asks for are within its own; an omitted CPU time counts as ``set default
  cpu_limit``,
- its domain takes such requests.
"""

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nqspy.core import views
from nqspy.core.asked import turned_away
from nqspy.core.draft import Draft
from nqspy.core.explain import STOPPED
from nqspy.core.feature import Feature
from nqspy.core.gate.gate import refusal_of
from nqspy.model.actions import Action, Move
from nqspy.model.arrays import counted
from nqspy.model.ids import Instant
from nqspy.model.people import lets_in
from nqspy.model.queues import Queue
from nqspy.model.reasons import ReasonCode, reason_kinds
from nqspy.model.requests import Request, Spec, State
from nqspy.model.site import RequestCounts, Settings, Site
from nqspy.model.units import UNLIMITED
from nqspy.ports import Exits, PassView, RequestView, SubmitAnswer

_ITS_TURN, _NOT_NOW = reason_kinds(
    ReasonCode.LATER,
    turn_comes="waits to be routed in one of the next passes",
    no_destination_now="no destination queue takes it now: {objections}",
)
(_NOT_EVER,) = reason_kinds(ReasonCode.NEVER, no_destination="no destination queue takes it: {objections}")

TURN = 10_000
"""Longest time (ms) until the next part is tried of a pipe queue that is too long for one pass."""


class Objection(Struct, frozen=True):
    """Reason of a destination to refuse a request, in a line. ``later``: it may accept it at another time."""

    text: str
    later: bool = False


def may_enter(queue: Queue, owner: str, groups: Collection[str] = ()) -> bool:
    """True if a user in these Unix groups may submit to a queue."""
    closed = queue.restricted and not (queue.users or queue.groups)
    return not closed and lets_in(queue.users, queue.groups, owner, groups)


def closed_domain(site: Site, queue: Queue, owner: str, groups: Collection[str]) -> str | None:
    """Return why a queue's domain takes no requests of a user; None: it takes them, or it is a pipe queue."""
    return turned_away(site.domain_of(queue.name), owner, groups) if queue.kind == "batch" else None


class Routes:
    """Finder of destinations, for one pass or submission. It counts the requests placed so far, which fill
    queues (``moved``); ``coming``: those that were accepted before in a submission of several. With ``exits``
    that have a route hook, and ``view``, the site chooses the destinations to try."""

    def __init__(
        self,
        site: Site,
        exits: Exits | None = None,
        view: PassView | None = None,
        coming: RequestCounts | None = None,
    ) -> None:
        self._site = site
        self._coming = coming or RequestCounts()
        self._exits = exits if exits is not None and exits.has("route") else None
        self._view = view
        self._held: dict[str, int] = {}
        self._moved: Counter[tuple[str, str]] = Counter()

    def find(
        self,
        spec: Spec,
        pipe: Queue,
        groups: Collection[str] = (),
        view: RequestView | None = None,
        number: int = 1,
    ) -> tuple[str | None, list[Objection]]:
        """Return the batch queue (or stopped pipe queue) that takes the request now, else None, and the
        objections of the queues that do not. ``view``: the request as the route exit sees it; ``number``: the
        count of requests that it stands for, of an array its indices that have not begun."""
        objections: list[Objection] = []
        names: Sequence[str] = pipe.destinations
        if self._exits is not None and view is not None and self._view is not None:
            names = self._exits.route(view, names, self._view)
        for name in names:
            queue = self._site.settings.queues.get(name)
            if queue is None:
                objections.append(Objection(f"{name}: there is no such queue"))
                continue
            objection = self._objection(spec, queue, groups, number)
            if objection is not None:
                objections.append(objection)
                continue
            if queue.kind == "batch" or not queue.started:
                return name, objections
            target, more = self.find(spec, queue, groups, view, number)
            if target is not None:
                return target, objections
            objections += more
        return None, objections

    def moved(self, queue: str, owner: str, number: int) -> None:
        """Count ``number`` more requests of an owner in a queue from now on."""
        self._held[queue] = self._count(queue) + number
        self._moved[queue, owner] += number

    def _objection(self, spec: Spec, queue: Queue, groups: Collection[str], number: int) -> Objection | None:
        if queue.kind == "batch":
            asked = as_routed(spec, self._site.settings.default.cpu_limit)
            above = refusal_of(self._site, asked, queue)
            if above is not None:
                return Objection(above if above.startswith(f"{queue.name}: ") else f"{queue.name}: {above}")
        if not may_enter(queue, spec.owner, groups):
            return Objection(f"{queue.name}: {spec.owner} has no access")
        if (closed := closed_domain(self._site, queue, spec.owner, groups)) is not None:
            return Objection(f"{queue.name}: {closed}")
        full = self._full(spec.owner, queue, number)
        if not queue.enabled and (full is None or full.later):
            return Objection(f"{queue.name}: the queue is disabled", later=True)
        return full

    def _full(self, owner: str, queue: Queue, number: int) -> Objection | None:
        """Return the objection if ``number`` further requests of an owner would exceed a limit of queued ones
        (of the queue, of a user, of ``loadonly``); None: they fit. If several are exceeded, one that is less
        than ``number`` itself comes first: that one refuses the requests for ever."""
        name, pair, tallies = queue.name, (queue.name, owner), (self._site.tally, self._coming)
        own = sum(tally.pairs.get(pair, 0) for tally in tallies) + self._moved[pair]
        loaded = queue.run_limit if queue.loadonly else None
        bounds = (
            (queue.queued_limit, self._count(name), "queued_limit is {}, it has {}"),
            (queue.user_queued_limit, own, f"user_queued_limit is {{}}, {owner} has {{}}"),
            (loaded, self._count(name), "run_limit is {} (loadonly), it has {}"),
        )
        counts = f"; this array counts {number}" if number > 1 else ""
        objections = [
            Objection(f"{name}: {text.format(most, have)}{counts}", later=number <= most)
            for most, have, text in bounds
            if most is not None and have + number > most
        ]
        return min(objections, key=lambda each: each.later, default=None)

    def _count(self, queue: str) -> int:
        if queue not in self._held:
            self._held[queue] = self._site.count(queue) + self._coming.queues.get(queue, 0)
        return self._held[queue]


def as_routed(spec: Spec, default_cpu: int | None) -> Spec:
    """Return a request as routing compares it with limits: an omitted CPU time becomes the site's default."""
    if spec.ask.cpu_wanted() is not None:
        return spec
    return replace(spec, ask=replace(spec.ask, cpu=UNLIMITED if default_cpu is None else default_cpu))


# ---------------------------------------------------------------- at submission


def destination(
    site: Site,
    spec: Spec,
    pipe: Queue,
    exits: Exits,
    groups: Collection[str],
    now: Instant,
    coming: RequestCounts | None = None,
) -> tuple[str | None, list[Objection]]:
    """Return the queue that takes a submission to a pipe queue now, else None, and the others' objections."""
    number = counted(spec.array)
    if not exits.has("route"):
        return Routes(site, coming=coming).find(spec, pipe, groups, number=number)
    request, draft = _arriving(site, spec, pipe.name, exits, now)
    routes = Routes(site, exits, views.SiteView(draft), coming)  # the draft's own view would be a circle
    return routes.find(spec, pipe, groups, views.request_view(request, draft), number)


def ask_submit(
    site: Site, spec: Spec, exits: Exits, now: Instant, script: bytes = b""
) -> SubmitAnswer | None:
    """Return the answer of the submit exits on a submission; None: there is no such exit, or no answer."""
    if not exits.has("submit"):
        return None
    request, draft = _arriving(site, spec, spec.queue, exits, now)
    return exits.submit(views.submit_view(request, draft, script), views.SiteView(draft))


def _arriving(site: Site, spec: Spec, queue: str, exits: Exits, now: Instant) -> tuple[Request, Draft]:
    exits.begin(site)
    draft = Draft(site, now, exits, {})
    spec = spec if spec.queue == queue else replace(spec, queue=queue)
    return Request(site.next_seq, spec, queue, State.ARRIVING, now, now), draft


# ---------------------------------------------------------------- the feature


def verify(settings: Settings, site: Site) -> list[str]:
    """Return a line for each pipe queue without a destination."""
    blind = (each for each in settings.queues.values() if each.kind == "pipe" and not each.destinations)
    return [f"pipe queue {each.name} has no destination: set destination=(...) {each.name}" for each in blind]


def act(draft: Draft, now: Instant) -> Instant | None:
    """Move the requests that a destination takes now. A pass tries at most ``offers_per_pass`` requests of a
    pipe queue; the next passes try the others."""
    pipes = [(queue, columns) for queue, columns in draft.waiting if queue.kind == "pipe"]
    if not pipes:
        return None
    routes, again = Routes(draft.site, draft.exits, views.view_of(draft)), None
    most = draft.site.settings.global_.offers_per_pass
    for pipe, columns in pipes:
        if not pipe.started:
            draft.closing[pipe.name] = STOPPED(f"queue {pipe.name}")
            continue
        order = np.lexsort((columns.turn, columns.date))
        if len(order) > most:  # a part of them, that moves on with each event, and with time
            order = np.roll(order, -((draft.site.n + now // TURN * most) % len(order)))[:most]
            again = Instant(now + TURN)
        for request in map(columns.request, order.tolist()):
            view, number = views.request_view(request, draft), request.weight
            target, objections = routes.find(request.spec, pipe, request.spec.unix_groups, view, number)
            if target is not None:
                routes.moved(target, request.owner, number)
                draft.before.append(Move(request.seq, target))
                continue
            text = "; ".join(objection.text for objection in objections) or "it has no destination"
            later = not objections or any(objection.later for objection in objections)
            draft.reasons[request.seq] = (_NOT_NOW if later else _NOT_EVER)(f"queue {pipe.name}", text)
        draft.closing[pipe.name] = _ITS_TURN(f"queue {pipe.name}")
    return again


def stands(site: Site, action: Action) -> bool:
    """True for a move: it is right as long as its request waits."""
    return isinstance(action, Move)


FEATURE = Feature("route", act, verify=verify, stands=stands)
