"""The words for why a request or a queue has to wait, where neither a limit nor an exit says it."""

from dataclasses import replace

from nqspy.core.draft import Draft
from nqspy.core.queueing.limits import never
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import Request
from nqspy.model.site import Site


def never_reason(site: Site, request: Request) -> Reason:
    """Why a request that asks for more PEs than there are can never start."""
    text = never(site, request.queue, request.spec.ask.pes)
    return Reason(ReasonCode.NEVER, _who(site, request.queue), text or "")


def _who(site: Site, queue: str) -> str:
    return f"domain {site.domain_of(queue).name}" if site.is_divided() else "machine"


def stopped(queue: Queue) -> str:
    """A queue that nobody has started."""
    return f"queue {queue.name} is stopped: start queue {queue.name}"


def no_pes(draft: Draft, queue: str) -> Reason:
    """All of a queue wait for PEs."""
    return Reason(ReasonCode.NO_PES, _who(draft.site, queue), _free(draft, queue))


def too_few(draft: Draft, request: Request) -> Reason:
    """One that waits only for PEs."""
    return asking(request, no_pes(draft, request.queue))


def asking(request: Request, reason: Reason) -> Reason:
    """That all of its queue wait for PEs, said of one of them."""
    pes = request.spec.ask.pes
    asked = "1 PE" if pes == 1 else f"{pes} PEs"
    return replace(reason, text=f"it asks for {asked}, {reason.text}")


def _free(draft: Draft, queue: str) -> str:
    board, room = draft.board(queue), draft.room(queue)
    where = f" of domain {board.domain.name}" if draft.site.is_divided() else ""
    block = f", {room} of them in one block" if room < board.free else ""
    free = f"{board.free or 'none'} of {board.size} PEs{where}"
    return f"{free} {'are' if board.free > 1 else 'is'} free{block}"
