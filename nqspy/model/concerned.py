"""Which requests an event concerns."""

from collections.abc import Iterable
from typing import Any

from nqspy.model import events as ev
from nqspy.model.ids import Seq
from nqspy.model.requests import Request
from nqspy.model.site import Site
from nqspy.model.transitions import STEPS, fits

_OF_MANY = frozenset(kind for kind in STEPS if hasattr(kind, "seqs"))


def concerned(site: Site, event: Any) -> Iterable[Request]:
    """The requests that an event concerns, as far as they are there and it fits them."""
    if type(event) in _OF_MANY:
        return (request for seq in event.seqs for request in _fitting(site, seq, event))
    return _fitting(site, event.seq, event)


def _fitting(site: Site, seq: Seq, event: Any) -> tuple[Request, ...]:
    request = site.requests.get(seq)
    if request is None:
        return ()
    if fits(request, event):
        return (request,)
    misfit(site, request, event)
    return ()


def misfit(site: Site, request: Request, event: ev.Event) -> None:
    """An event that cannot have happened: it changes nothing, and is told (tests raise instead)."""
    attempt = f", attempt {request.run.number}" if request.attempt is not None else ""
    site.misfits += 1
    site.misfit = (
        f"request {request.seq} is {request.state}{attempt}: event {event.kind} {event} does not fit"
    )
