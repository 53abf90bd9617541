"""Why a request or a queue has to wait, where neither a limit nor an exit says it."""

from nqspy.core.draft import Draft
from nqspy.core.placement import policy_of
from nqspy.model.board import Board
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Request
from nqspy.model.shapes import shown_sizes
from nqspy.model.site import Site

(STOPPED,) = reason_kinds(ReasonCode.STOPPED, stopped="{who} is stopped: start {who}")
"""A queue that nobody has started."""
(LINE_CLOSED,) = reason_kinds(
    ReasonCode.LINE_CLOSED, line_closed="{request} closes the line of queue {queue}: {text}"
)
BOUNDED, FREED = reason_kinds(
    ReasonCode.LATER,
    offers_bounded="jobselect was offered as many candidates as one pass allows "
    "(global offers_per_pass {most})",
    freed="what kept it back has gone with the last decisions; the next pass, at once, looks at it",
)
_ASKS = "{asked:it asks for 1 PE, |it asks for * PEs, }"
_AWAY = "{away:; 1 is offline|; * are offline}"
_NONE_FREE, _SOME_FREE = reason_kinds(
    ReasonCode.NO_PES,
    no_pe_free=_ASKS + "none of {size} PEs{domain: of domain *} is free" + _AWAY,
    few_pes_free=_ASKS + "{free} of {size} PEs{domain: of domain *} {free:is|are} free"
    "{block:, * of them in one block}" + _AWAY,
)
(_ALL_AWAY,) = reason_kinds(
    ReasonCode.NO_PES,
    "PEs must come back: set machine offline=(), or those whose CPU is gone",
    pes_offline=_ASKS + "{free} of {size} PEs{domain: of domain *} {free:is|are} free" + _AWAY,
)

(_BEHIND,) = reason_kinds(
    ReasonCode.RESERVED, kept_ahead="those ahead of it would hold what is kept for {request}"
)
(IN_LINE,) = reason_kinds(
    ReasonCode.RESERVED,
    "the request in front of it must start",
    in_line="{request} waits in front of it, and no request of queue {queue} passes another (backfill=none)",
)


def behind(reason: Reason) -> Reason:
    """What closes a queue for want of what is kept, said of those behind: that the one in front would delay a
    promised start, as its wall time is not theirs; or that it lets nobody pass."""
    if reason.kind == IN_LINE.name:
        return reason
    return _BEHIND(reason.who, reason.values[-1], until=reason.until)


def no_pes(draft: Draft, queue: str) -> Reason:
    """All of a queue wait for PEs."""
    return _short(draft.site, draft.board(queue), draft.room(queue), None)


def lacking(site: Site, board: Board, request: Request) -> Reason | None:
    """That there are too few PEs for one beside what runs; None: there are enough."""
    room = policy_of(board.domain).room(board)
    return _short_for(site, board, room, request) if request.spec.ask.pes > room else None


def _short_for(site: Site, board: Board, room: int, request: Request) -> Reason:
    if board.size - board.away < request.spec.ask.pes <= board.size:
        who, domain = _whose(site, board)
        return _ALL_AWAY(who, _asked(request), board.free, board.size, domain, board.away)
    return _short(site, board, room, _asked(request))


def _short(site: Site, board: Board, room: int, asked: int | str | None) -> Reason:
    who, domain = _whose(site, board)
    if not board.free:
        return _NONE_FREE(who, asked, board.size, domain, board.away or None)
    block = room if room < board.free else None
    return _SOME_FREE(who, asked, board.free, board.size, domain, block, board.away or None)


def _whose(site: Site, board: Board) -> tuple[str, str | None]:
    """Who says so, and the domain where there are several."""
    domain = board.domain.name if site.is_divided() else None
    return (f"domain {domain}" if domain else "machine"), domain


def _asked(request: Request) -> int | str:
    """How many PEs it asks for: a number, or on which numbers it may run."""
    mold = request.spec.mold
    return request.spec.ask.pes if mold is None else shown_sizes(mold.sizes)


def too_few(draft: Draft, request: Request) -> Reason:
    """One that waits only for PEs."""
    return _short_for(draft.site, draft.board(request.queue), draft.room(request.queue), request)


def asking(request: Request, reason: Reason) -> Reason:
    """That all of its queue wait for PEs, said of one of them."""
    values = (_asked(request), *reason.values[1:])
    return Reason(reason.kind, reason.who, values, reason.until, reason.ahead)
