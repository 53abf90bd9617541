"""Moldable requests (seed 001, section 3.3): the choice of the size that starts or has a reservation.

The size with the earliest expected end is chosen. Of the sizes that may start now, that is the one that runs
shortest. If a reservation on another size ends sooner still, the request waits for it. Ends are computed from
wall limits as in plans (time-ahead.md 1); the wall limit is that of the size.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from nqspy.core.asked import excess
from nqspy.core.runtime import planned_wall
from nqspy.core.timeline.profile import FOREVER
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Request
from nqspy.model.shapes import Lacked
from nqspy.model.site import Site
from nqspy.model.specs import sized

(_ENDS_SOONER,) = reason_kinds(
    ReasonCode.RESERVED,
    ends_sooner="could start on {pes} PEs, but ends sooner on {later}: {time:time} instead of {asked:time}",
)

Refuses = Callable[[Request], Reason | None]
"""Returns why a request of one size does not start now; None: it may start."""


class SizeEnd(NamedTuple):
    """Expected end of a request on a size; the earlier is less. ``end``: `FOREVER` if unknown. ``rank``
    decides between equal ends: the fewest PEs, or the most if the request gives no times for its sizes."""

    end: int
    start: int
    rank: int


def length_on(site: Site, one: Request) -> int:
    """Return the expected run time (ms) of a request on one of its sizes; `FOREVER`: unknown."""
    ask, mold = one.spec.ask, one.spec.mold
    wall = planned_wall(site.settings, one.queue, ask)
    length = wall if mold is None else mold.expected_on(ask.pes, wall)
    return FOREVER if length is None else max(1, length)


def ending(site: Site, one: Request, start: int) -> SizeEnd:
    """Return the expected end of a request that starts at ``start`` on its present size."""
    pes, mold = one.spec.ask.pes, one.spec.mold
    rank = pes if mold is not None and mold.walls else -pes
    return SizeEnd(min(FOREVER, start + length_on(site, one)), start, rank)


def sizes_of(site: Site, request: Request) -> Sequence[Request]:
    """Return a moldable request on each size that its queue takes, the one that runs shortest first."""
    queue, mold = site.settings.queues.get(request.queue), request.spec.mold
    assert mold is not None
    sizes = [sized(request, pes) for pes in mold.sizes]
    fitting = [one for one in sizes if queue is None or excess(site, one.spec, queue) is None]
    return sorted(fitting or sizes, key=lambda one: ending(site, one, 0))


def least_of(site: Site, request: Request) -> Request:
    """Return a moldable request on the smallest size that its queue takes; other requests as they are."""
    if request.spec.mold is None:
        return request
    return min(sizes_of(site, request), key=lambda one: one.spec.ask.pes)


def soonest(
    site: Site,
    now: int,
    request: Request,
    start_of: Callable[[Request], int | None],
    latest: int | None = None,
) -> tuple[Request, int] | None:
    """Return a request on the size with the earliest expected end, and its start; None: no size starts by
    ``latest`` (None: at any known time). ``start_of``: returns the first start on a size (None: unknown)."""
    best: tuple[SizeEnd, Request] | None = None
    for one in sizes_of(site, request):
        if best is not None and ending(site, one, now) > best[0]:
            break  # the remaining sizes run longer and end later
        start = start_of(one)
        if start is None or (latest is not None and start > latest):
            continue
        end = ending(site, one, start)
        best = min(best or (end, one), (end, one), key=lambda pair: pair[0])
    return None if best is None else (best[1], best[0].start)


def waits_for(site: Site, now: int, one: Request, later: tuple[Request, int] | None) -> Reason | None:
    """Return why ``one``, which could start now, waits for a start on another size that ends sooner
    (``later``: size and start); None: it does not wait."""
    if later is None or ending(site, later[0], later[1]) >= ending(site, one, now) or later[1] <= now:
        return None
    lengths = length_on(site, later[0]), length_on(site, one)  # the times would change from pass to pass
    return _ENDS_SOONER("scheduler", one.spec.ask.pes, later[0].spec.ask.pes, *lengths)


class Fit(NamedTuple):
    """Result of trying the variants of a candidate. ``ask``: the first that may start (None: all are refused,
    for the reason ``why``). ``rejected``: PEs and reason codes of the refused variants before it."""

    ask: Request | None
    why: Reason | None = None
    rejected: Lacked = ()


def variants_of(site: Site, candidate: Request) -> Sequence[Request]:
    """Return a moldable candidate on each size, the one that ends soonest first; others as they are."""
    return (candidate,) if candidate.spec.mold is None else sizes_of(site, candidate)


def first_fit(variants: Sequence[Request], refuses: Refuses) -> Fit:
    """Return the first variant that is not refused. If none fits, the reason is that of the smallest."""
    rejected: list[tuple[int, str]] = []
    least: tuple[int, Reason] | None = None
    for ask in variants:
        pes, why = ask.spec.ask.pes, refuses(ask)
        if why is None:
            return Fit(ask, None, tuple(rejected))
        rejected.append((pes, why.code.value))
        if least is None or pes < least[0]:
            least = pes, why
    assert least is not None
    return Fit(None, least[1])
