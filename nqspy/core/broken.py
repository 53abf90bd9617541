"""Resources whose probes found them broken: whom that keeps from starting, in which words.

A probe that was never tried counts as well. Nothing goes past a broken resource: no exit, no operator.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from nqspy.model.columns import Columns
from nqspy.model.health import ProbeState
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import Request
from nqspy.model.site import Site

Mask = npt.NDArray[np.bool_]

WHO = "probe "
"""What stands before a probe's name where it is named as the one who keeps back, suspends or requeues."""


def broken(site: Site) -> dict[str, ProbeState]:
    """The probes whose resources are broken now, by name."""
    return {name: state for name, state in site.probes.items() if state.state == "broken"}


def needs_of(site: Site, request: Request) -> Iterator[str]:
    """Probes whose resources a request needs where it is: its queue's, then its own."""
    queue = site.settings.queues.get(request.queue)
    if queue is not None:
        yield from queue.needs
    yield from request.spec.ask.needs


def keeping(site: Site, request: Request) -> Reason | None:
    """The first broken resource that a waiting request needs; None when it needs none."""
    if not site.probes:
        return None
    found = broken(site)
    return first_of(found, needs_of(site, request))


def first_of(found: Mapping[str, ProbeState], needs: Iterator[str]) -> Reason | None:
    """The reason that the first of these needs gives, None when none is among the broken ones."""
    name = next((each for each in needs if each in found), None)
    return reason(name, found[name]) if name is not None else None


def reason(name: str, state: ProbeState, *, goes_on: bool = False, since: str = "") -> Reason:
    """Why one waits for a resource; ``goes_on``: it is suspended; ``since``: the time of day it broke."""
    when = f" since {since}" if since else ""
    said = f": {state.text}" if state.text else ""
    then = "goes on" if goes_on else "starts"
    text = f"resource {name} is broken{when}{said}; it {then} when probe {name} is well again"
    return Reason(ReasonCode.RESOURCE, WHO + name, text)


def kept_back(site: Site, columns: Columns) -> Mask | None:
    """Rows whose own needs are broken; None if there is no such row. The needs of a queue keep back all its
    rows alike and are not looked at here."""
    found = broken(site)
    if not found:
        return None
    kinds = site.numbers.needs.names
    table = np.array([not found.keys().isdisjoint(each.split("+")) for each in kinds], dtype=bool)
    if not table.any():
        return None
    mask: Mask = table[columns.needs]
    return mask if mask.any() else None
