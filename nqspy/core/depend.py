"""Requests that wait for others (``qsub --after``): what an event means for those that await it, and why one
still waits.

An unmet dependency is a hold of the system, so no pass ever looks at such a request.
"""

from msgspec import Struct

from nqspy.model import indices
from nqspy.model.arrays import ArrayState
from nqspy.model.endings import End
from nqspy.model.events import Deleted, Ended, Event, Started
from nqspy.model.ids import Seq
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import AfterWord, Dependency, Prerequisite, Request
from nqspy.model.site import Site

WHO = "dependency"
"""Who says so, in reasons and in the deletions that ``set dependency_failed delete`` brings about."""

(_WAITS,) = reason_kinds(ReasonCode.DEPENDENCY, waits_for_others="it waits until {awaited}")
(_HOPELESS,) = reason_kinds(
    ReasonCode.DEPENDENCY,
    "its owner must delete it (qdel), or an operator let it run all the same (qrls -h s); "
    "what becomes of the next one: set dependency_failed",
    hopeless="{text}",
)

SHOWN = 3
"""Prerequisites that a reason names; the others are counted."""


class Judgement(Struct, frozen=True):
    """What an event of a prerequisite settles: words met, words that can never be met any more; ``text`` says
    what happened, ``reason`` why it ended (empty: it has not)."""

    met: tuple[AfterWord, ...] = ()
    never: tuple[AfterWord, ...] = ()
    text: str = ""
    reason: str = ""

    def of(self, seq: Seq) -> Prerequisite:
        """Name what became of the prerequisite, for the job that waited for it."""
        return Prerequisite(seq, self.reason, "start" not in self.never)


BEGUN = Judgement(("start",), (), "has started")
DROPPED = Judgement(("any", "fail"), ("ok", "start"), "was deleted before it began", "deleted")


def judge(event: Event, ended: Request | None = None) -> Judgement:
    """What that event settles for those that wait for its request; of most events nothing. ``ended``: the
    request, if it ended by that.

    Deleted before it ran it has not started, and counts as failed; so does an array of which an index was. An
    attempt that ended had begun.
    """
    match event:
        case Ended() if ended is not None and ended.array is not None and _is_incomplete(ended.array):
            text = f"ended without index {indices.brief(ended.array.dropped)}, deleted before it began"
            return Judgement(("any", "fail", "start"), ("ok",), text, event.end_reason)
        case Started():
            return BEGUN
        case Ended() if End.of(event).ok:
            return Judgement(("ok", "any", "start"), ("fail",), "ended with exit status 0", "exit")
        case Ended(end_reason="not_started"):
            return Judgement(("any", "fail"), ("ok", "start"), "could not be started", event.end_reason)
        case Ended():
            return Judgement(("any", "fail", "start"), ("ok",), _how(event), event.end_reason)
        case Deleted():
            return Judgement(("any", "fail"), ("ok", "start"), f"was deleted by {event.who}", "deleted")
    return Judgement()


def _how(event: Ended) -> str:
    if event.end_reason == "exit":
        return f"ended with exit status {event.exit_status}"
    return f"ended: {End.of(event).words}"


def _is_incomplete(array: ArrayState) -> bool:
    """True if indices were deleted before they began, and all others ended well."""
    return bool(array.dropped) and not array.worst


_AWAITED = {
    "ok": "has ended with exit status 0",
    "any": "has ended",
    "fail": "has ended otherwise than with exit status 0",
    "start": "has started",
    "each": "has ended, index by index, with exit status 0",
}


def awaited(site: Site, each: Dependency) -> str:
    """``17.ymp has ended``: what must come about."""
    return f"{site.id_of(each.seq)} {_AWAITED[each.word]}"


def hopeless(never: str) -> Reason:
    """Return the reason of what waits for something that can never come about."""
    return _HOPELESS(WHO, never)


def reason(site: Site, request: Request) -> Reason:
    """Why a request with unmet dependencies waits."""
    if request.never:
        return hopeless(request.never)
    unmet = [*request.unmet]
    if request.array is not None:
        unmet += [Dependency(seq, "each") for seq, _ in request.array.awaiting]
    named = [awaited(site, each) for each in unmet[:SHOWN]]
    more = len(unmet) - len(named)
    if more:
        named.append(f"{more} more")
    return _WAITS(WHO, " and ".join(named))
