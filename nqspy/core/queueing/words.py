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
    return Reason(ReasonCode.NEVER, "machine", never(site, request.spec.ask.pes) or "")


def stopped(queue: Queue) -> str:
    """A queue that nobody has started."""
    return f"queue {queue.name} is stopped: start queue {queue.name}"


def no_pes(draft: Draft) -> Reason:
    """All of a queue wait for PEs."""
    return Reason(ReasonCode.NO_PES, "machine", _free(draft))


def too_few(draft: Draft, request: Request) -> Reason:
    """One that waits only for PEs."""
    return asking(request, no_pes(draft))


def asking(request: Request, reason: Reason) -> Reason:
    """That all of its queue wait for PEs, said of one of them."""
    pes = request.spec.ask.pes
    asked = "1 PE" if pes == 1 else f"{pes} PEs"
    return replace(reason, text=f"it asks for {asked}, {reason.text}")


def _free(draft: Draft) -> str:
    return f"{draft.free or 'none'} of {draft.site.pes()} PEs {'are' if draft.free > 1 else 'is'} free"
