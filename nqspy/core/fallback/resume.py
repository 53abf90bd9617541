"""Resume: suspended requests without PEs come before all that wait, in the order of their starts. Each
resumes on the PEs that it had if they are free, else on others. While there are too few, the free ones are
held for the first of them, so that it cannot starve."""

from collections.abc import Collection

from nqspy.core.classes import is_bumped, is_served
from nqspy.core.draft import Draft
from nqspy.core.feature import Feature
from nqspy.core.gate.gate import Gate
from nqspy.core.placement.placements import placement_of
from nqspy.model.actions import Action, Resume
from nqspy.model.board import Board
from nqspy.model.cause import SCHEDULER
from nqspy.model.machine import set_offline
from nqspy.model.reasons import ReasonCode, reason_kinds
from nqspy.model.requests import PRIME, Request
from nqspy.model.site import Site

NAME = "resume"
"""Name of the feature for all proposals of this file; plans have it."""
(_SHORT,) = reason_kinds(
    ReasonCode.NO_PES,
    pes_to_go_on="resumes when {wanted:1 PE is|* PEs are} free"
    "{kept:; * is reserved for it|; * are reserved for it}",
)
(_WIDE,) = reason_kinds(
    ReasonCode.NEVER,
    "the domain must get more PEs, or the request must be rerun (qrerun) or deleted (qdel)",
    too_wide_to_go_on="needs {asked:1 PE|* PEs} to resume, {who} has {size} now",
)


def resume_suspended(draft: Draft, gate: Gate) -> None:
    """Resume the suspended requests without PEs that no feature keeps suspended; hold the free PEs for one
    that lacks some, unless it can never resume. A job that gave way to a bumper waits by its class."""
    site, lost = draft.site, dict[str, set[int]]()
    for request in draft.released():
        if request.seq in draft.reasons or (is_bumped(request) and is_served(site, request.queue)):
            continue
        if request.rank != PRIME and (shut := draft.shut_out(request.queue)) is not None:
            draft.keep_suspended(request, shut)
            continue
        domain, wanted = site.domain_of(request.queue), len(request.pes)
        if domain.name not in lost:
            lost[domain.name] = _lost(site, site.board(domain.name))
        found = places(request, gate.room.board(request.queue), lost[domain.name])
        if len(found) == wanted:  # no limit is asked: limits count it already
            draft.resume(request, SCHEDULER, found, by=NAME)
            gate.resume(request)
            lost[domain.name].difference_update(found)
            continue
        size = int(site.pes_of(domain).sum())
        who = f"domain {domain.name}" if site.is_divided() else "machine"
        if wanted > size:
            draft.keep_suspended(request, _WIDE(who, wanted, size))
        else:
            draft.keep_suspended(request, _SHORT(who, wanted, len(found) or None))
            gate.room.hold(request.queue, found)


def places(request: Request, board: Board, lost: Collection[int]) -> tuple[int, ...]:
    """Return PEs on which a suspended request can resume, as many as it had or, if too few are free, fewer.
    These are its former PEs, in their old order, if they are free, else those that the domain's placement
    gives it, in ascending order. Its former PEs that are ``lost`` (without CPU) fill up the number."""
    there = set(board.open().tolist())
    own = [pe for pe in request.pes if pe in there]
    given = placement_of(board.domain).again(board, len(request.pes), own)
    own_lost = [pe for pe in request.pes if pe in lost and pe not in own]
    found = [*given, *own_lost][: len(request.pes)]
    return request.pes if set(found) == set(request.pes) else tuple(sorted(found))


def free_for(site: Site, request: Request) -> tuple[int, ...]:
    """Return the PEs on which a suspended request can resume at once, if need be fewer than it had."""
    board = site.board(site.domain_of(request.queue).name)
    return places(request, board, _lost(site, board))


def _lost(site: Site, board: Board) -> set[int]:
    """Return the unheld PEs of a board that are offline for lack of a CPU, not by an operator."""
    return board.lost() - {*set_offline(site.settings.machine, site.pes())}


def stands(site: Site, action: Action) -> bool:
    """True if the request of a proposed resumption still has no PEs, and no person suspended it meanwhile."""
    pause = site.started[action.seq].pause if isinstance(action, Resume) else None
    return pause is not None and pause.pes_released and not pause.cause.is_person


FEATURE = Feature(NAME, stands=stands)
