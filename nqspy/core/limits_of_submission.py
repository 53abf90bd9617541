"""Decisions on a request at submission: the destination of a pipe queue, and the `submit` exit."""

from collections.abc import Collection

from msgspec.structs import replace

from nqspy.core import route
from nqspy.core.draft import Draft
from nqspy.core.sight import SiteView, handed, seen
from nqspy.model.arrays import counted
from nqspy.model.ids import Instant
from nqspy.model.queues import Queue
from nqspy.model.requests import Request, Spec, State
from nqspy.model.site import RequestCounts, Site
from nqspy.ports import Exits, SubmitAnswer


def destination(
    site: Site,
    spec: Spec,
    pipe: Queue,
    exits: Exits,
    groups: Collection[str],
    now: Instant,
    coming: RequestCounts | None = None,
) -> tuple[str | None, list[route.Objection]]:
    """Return the queue to which a pipe queue passes a submission now, else None, and the objections of the
    destinations. ``groups``: Unix groups of the caller."""
    number = counted(spec.array)
    if not exits.has("route"):
        return route.Routes(site, coming=coming).find(spec, pipe, groups, number=number)
    request, draft = _arriving(site, spec, pipe.name, exits, now)
    view = SiteView(draft)  # the draft's own view would be a circle
    return route.Routes(site, exits, view, coming).find(spec, pipe, groups, seen(request, draft), number)


def ask_submit(
    site: Site, spec: Spec, exits: Exits, now: Instant, script: bytes = b""
) -> SubmitAnswer | None:
    """Return the answer of the submit exits; None: there are none, or they have no answer."""
    if not exits.has("submit"):
        return None
    request, draft = _arriving(site, spec, spec.queue, exits, now)
    return exits.submit(handed(request, draft, script), SiteView(draft))


def _arriving(site: Site, spec: Spec, queue: str, exits: Exits, now: Instant) -> tuple[Request, Draft]:
    exits.begin(site)
    draft = Draft(site, now, exits, {})
    spec = spec if spec.queue == queue else replace(spec, queue=queue)
    return Request(site.next_seq, spec, queue, State.ARRIVING, now, now), draft
