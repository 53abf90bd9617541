"""Moldable requests (seed 001, section 3.3): on which of its sizes one starts, or has its start promised.

The one with the earliest expected end is chosen. Of those on which it may start now that is the one on which
it takes least time; where its queue promises it a start, one that is promised later and ends sooner still is
waited for. Ends are reckoned as plans are (time-ahead.md 1): by wall limits, that of the size itself.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from nqspy.core.asked import excess
from nqspy.core.runtime import planned_wall
from nqspy.core.timeline.profile import FOREVER
from nqspy.model.molded import sized
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Request
from nqspy.model.shapes import Lacked
from nqspy.model.site import Site

(_ENDS_SOONER,) = reason_kinds(
    ReasonCode.RESERVED,
    ends_sooner="it could start on {pes} PEs and waits for {later}, on which it ends sooner: there it takes "
    "{time:time} instead of {asked:time}",
)

Keeping = Callable[[Request], Reason | None]
"""Why one (of a single size) does not start now."""


class SizeChoice(NamedTuple):
    """``one``: the request on the size on which it starts, None where it starts on none, for ``reason``;
    ``lacked`` as `actions.Start` has it."""

    one: Request | None
    reason: Reason | None = None
    lacked: Lacked = ()


class SizeEnd(NamedTuple):
    """When a request would end on a size, for comparing: the earlier one is less. ``end``: `FOREVER` where
    nobody knows; ``start``; ``rank`` decides between equal ones: the fewest PEs, where it said nothing of its
    times the most."""

    end: int
    start: int
    rank: int


def length_on(site: Site, one: Request) -> int:
    """How long (ms) a request on one of its sizes is expected to run; `FOREVER`: nobody knows."""
    ask, mold = one.spec.ask, one.spec.mold
    wall = planned_wall(site.settings, one.queue, ask)
    found = wall if mold is None else mold.expected_on(ask.pes, wall)
    return FOREVER if found is None else max(1, found)


def ending(site: Site, one: Request, start: int) -> SizeEnd:
    """When it would end that is started then on the size that it has."""
    pes, mold = one.spec.ask.pes, one.spec.mold
    rank = pes if mold is not None and mold.walls else -pes
    return SizeEnd(min(FOREVER, start + length_on(site, one)), start, rank)


def sizes_of(site: Site, request: Request) -> Sequence[Request]:
    """A moldable request on each of the sizes that its queue takes, the one on which it takes least time
    first."""
    queue, mold = site.settings.queues.get(request.queue), request.spec.mold
    assert mold is not None
    every = [sized(request, pes) for pes in mold.sizes]
    found = [one for one in every if queue is None or excess(site, one.spec, queue) is None]
    return sorted(found or every, key=lambda one: ending(site, one, 0))


def least_of(site: Site, request: Request) -> Request:
    """A request on the least of the sizes that its queue takes; itself where it has one."""
    if request.spec.mold is None:
        return request
    return min(sizes_of(site, request), key=lambda one: one.spec.ask.pes)


def choose(site: Site, request: Request, room: int, keeping: Keeping) -> SizeChoice:
    """The size on which it takes least time, of those for which there is ``room`` (PEs) and which nothing
    keeps back. The reason is that of its smallest size."""
    lacked: list[tuple[int, str]] = []
    least: tuple[int, Reason | None] = FOREVER, None
    for one in sizes_of(site, request):
        pes = one.spec.ask.pes
        kept = keeping(one) if pes <= room else None
        if pes <= room and kept is None:
            return SizeChoice(one, None, tuple(lacked))
        lacked.append((pes, ReasonCode.NO_PES.value if kept is None else kept.code.value))
        least = min(least, (pes, kept), key=lambda each: each[0])
    return SizeChoice(None, least[1], tuple(lacked))


def soonest(
    site: Site,
    now: int,
    request: Request,
    start_of: Callable[[Request], int | None],
    latest: int | None = None,
) -> tuple[Request, int] | None:
    """The size with the earliest expected end, and its start; ``start_of``: the first start that there can be
    on a size (None: nobody knows); ``latest``: it must have begun by then. None: there is no such size."""
    best: tuple[SizeEnd, Request] | None = None
    for one in sizes_of(site, request):
        if best is not None and ending(site, one, now) > best[0]:
            break  # nor do those end sooner that take longer still
        start = start_of(one)
        if start is None or (latest is not None and start > latest):
            continue
        found = ending(site, one, start)
        best = min(best or (found, one), (found, one), key=lambda each: each[0])
    return None if best is None else (best[1], best[0].start)


def waits_for(site: Site, now: int, one: Request, later: tuple[Request, int] | None) -> Reason | None:
    """Why one that could start now waits for another size; None: it does not."""
    if later is None or ending(site, later[0], later[1]) >= ending(site, one, now) or later[1] <= now:
        return None
    lengths = length_on(site, later[0]), length_on(site, one)  # not when: that changes from pass to pass
    return _ENDS_SOONER("scheduler", one.spec.ask.pes, later[0].spec.ask.pes, *lengths)


class Fit(NamedTuple):
    """``ask``: the first variant that may start now; None: none may, for ``why``. ``rejected``: the variants
    that were refused before, as `actions.Start.lacked`."""

    ask: Request | None
    why: Reason | None = None
    rejected: Lacked = ()


def variants_of(site: Site, candidate: Request) -> Sequence[Request]:
    """Return a moldable candidate on each of its sizes, the one that ends soonest first; else itself."""
    return (candidate,) if candidate.spec.mold is None else sizes_of(site, candidate)


def first_fit(variants: Sequence[Request], refuses: Keeping) -> Fit:
    """Return the first variant that is not refused. A candidate that fits in no variant is refused with the
    reason of its smallest."""
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
