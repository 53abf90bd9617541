"""Suspended requests whose PEs others might have go on, unless an earlier feature keeps them back.

They come before everything that waits, in the order of their starts: on the PEs they had where those are
free, else on others. While there are too few, those that are free are kept for the first of them, so that it
cannot starve.
"""

from collections.abc import Collection

from nqspy.core.classes import is_bumped, is_served
from nqspy.core.draft import Draft
from nqspy.core.feature import Feature
from nqspy.core.placement.placements import placement_of
from nqspy.model.actions import Action, Resume
from nqspy.model.board import Board
from nqspy.model.cause import SCHEDULER
from nqspy.model.ids import Instant
from nqspy.model.offline import by_hand
from nqspy.model.reasons import ReasonCode, reason_kinds
from nqspy.model.requests import Request
from nqspy.model.site import Site

(_SHORT,) = reason_kinds(
    ReasonCode.NO_PES,
    pes_to_go_on="it goes on when {wanted:a PE is|* PEs are} free"
    "{kept:; * of them is kept for it|; * of them are kept for it}",
)
(_WIDE,) = reason_kinds(
    ReasonCode.NEVER,
    "the domain must get PEs again, or the request be run again or deleted",
    too_wide_to_go_on="{asked} PEs are more than the {size} that {who} has now",
)


def act(draft: Draft, now: Instant) -> Instant | None:
    """Lets go on what nobody keeps back any more and for which there are PEs."""
    site = draft.site
    gone: dict[str, set[int]] = {}
    for request in draft.parked():
        if request.seq in draft.own or (is_bumped(request) and is_served(site, request.queue)):
            continue
        name = site.domain_of(request.queue).name
        who = f"domain {name}" if site.is_divided() else "machine"
        lost = gone.setdefault(name, _gone(site, site.board(name)))
        found = places(request, draft.board(request.queue), lost)
        if len(found) == len(request.pes):
            draft.resume(request, SCHEDULER, found)
            lost.difference_update(found)
        elif len(request.pes) > (size := int(site.pes_of(site.domain(name)).sum())):
            # Nothing is kept for one that cannot go on however long it waits.
            draft.keep(request, _WIDE(who, len(request.pes), size))
        else:
            draft.keep(request, _SHORT(who, len(request.pes), len(found) or None))
            draft.take(request, found)
    return None


def places(request: Request, board: Board, gone: Collection[int]) -> tuple[int, ...]:
    """PEs on which a parked request can go on, as many as there are up to those it had: those very ones if
    they are free, in their old order; else what the domain's placement gives one that comes back, in
    ascending order; at last its own whose CPU is ``gone``, for which there is nothing to wait."""
    there = set(board.open().tolist())
    own = [pe for pe in request.pes if pe in there]
    given = placement_of(board.domain).again(board, len(request.pes), own)
    lost = [pe for pe in request.pes if pe in gone and pe not in own]
    found = [*given, *lost][: len(request.pes)]
    return request.pes if set(found) == set(request.pes) else tuple(sorted(found))


def free_for(site: Site, request: Request) -> tuple[int, ...]:
    """PEs on which it can go on at once, as `places` has it, fewer than it had when there are not enough."""
    board = site.board(site.domain_of(request.queue).name)
    return places(request, board, _gone(site, board))


def _gone(site: Site, board: Board) -> set[int]:
    """PEs whose CPU is gone; not those that an operator has set offline, on which nobody is to go on."""
    return board.gone() - {*by_hand(site.settings.machine, site.pes())}


def stands(site: Site, action: Action) -> bool:
    """Whether others may still have the PEs of one that is to go on: it is to take some then."""
    return isinstance(action, Resume) and site.started[action.seq].pes_released


FEATURE = Feature("resume", act, stands=stands)
