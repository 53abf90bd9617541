"""Requests that wait for others (``qsub --after``): the effect of an event on them, and why they wait. An
unmet dependency is a hold of the system, so no pass ever examines such a request."""

from msgspec import Struct

from nqspy.model import indices
from nqspy.model.endings import End
from nqspy.model.events import Deleted, Ended, Event, Started
from nqspy.model.ids import Seq
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import AfterWord, Dependency, Prerequisite, Request
from nqspy.model.site import Site

WHO = "dependency"
"""Source named in reasons, and in deletions by ``set dependency_failed delete``."""

(_WAITS,) = reason_kinds(ReasonCode.DEPENDENCY, waits_for_others="waits until {awaited}")
(_HOPELESS,) = reason_kinds(
    ReasonCode.DEPENDENCY,
    "delete it (qdel {id}), or have an operator release it (qrls -h s {id}); "
    "for later requests: set dependency_failed",
    hopeless="{text}",
)

SHOWN = 3
"""Most prerequisites that a reason names; the others are counted."""


class Judgement(Struct, frozen=True):
    """Effect of an event of a prerequisite: the dependency words (``ok``, ``start``, ...) that are now
    ``met``, and those that can ``never`` be met. ``text``: the event in words; ``reason``: why the
    prerequisite ended (empty: it has not)."""

    met: tuple[AfterWord, ...] = ()
    never: tuple[AfterWord, ...] = ()
    text: str = ""
    reason: str = ""

    def of(self, seq: Seq) -> Prerequisite:
        """Return this outcome of the prerequisite ``seq`` as it is stored in a request that waited for it."""
        return Prerequisite(seq, self.reason, "start" not in self.never)


BEGUN = Judgement(("start",), (), "has started")
DROPPED = Judgement(("any", "fail"), ("ok", "start"), "was deleted before it began", "deleted")


def judge(event: Event, ended: Request | None = None) -> Judgement:
    """Return the effect of an event on the requests that wait for its request; no effect for other kinds of
    events. ``ended``: that request, if the event ended it. A request deleted before it ran has not started
    and counts as failed, as an array with such an index does."""
    array = None if ended is None else ended.array
    match event:
        case Ended() if array is not None and array.dropped and not array.worst:
            text = f"ended without index {indices.brief(array.dropped)}, deleted before it began"
            return Judgement(("any", "fail", "start"), ("ok",), text, event.end_reason)
        case Started():
            return BEGUN
        case Ended() if End.of(event).ok:
            return Judgement(("ok", "any", "start"), ("fail",), "ended with exit status 0", "exit")
        case Ended(end_reason="not_started"):
            return Judgement(("any", "fail"), ("ok", "start"), "could not be started", event.end_reason)
        case Ended():
            status = f" with exit status {event.exit_status}" if event.end_reason == "exit" else None
            text = f"ended{status or f': {End.of(event).words}'}"
            return Judgement(("any", "fail", "start"), ("ok",), text, event.end_reason)
        case Deleted():
            return Judgement(("any", "fail"), ("ok", "start"), f"was deleted by {event.who}", "deleted")
    return Judgement()


AWAITED = {
    "ok": "has ended with exit status 0",
    "any": "has ended",
    "fail": "has ended, but not with exit status 0",
    "start": "has started",
    "each": "has ended with exit status 0 at the same index",
}
"""Condition in words that a prerequisite must meet, by the word of the dependency."""


def awaited(site: Site, each: Dependency) -> str:
    """Return the condition of a dependency in words: ``17.ymp has ended``."""
    return f"{site.id_of(each.seq)} {AWAITED[each.word]}"


def hopeless(never: str) -> Reason:
    """Return the reason of a request with a dependency that can never be met; ``never``: why, in words."""
    return _HOPELESS(WHO, never)


def reason(site: Site, request: Request) -> Reason:
    """Return why a request with unmet dependencies waits, with the first `SHOWN` of them."""
    if request.never:
        return hopeless(request.never)
    unmet = [*request.unmet]
    if request.array is not None:
        unmet += [Dependency(seq, "each") for seq, _ in request.array.awaiting]
    named = [awaited(site, each) for each in unmet[:SHOWN]]
    more = [f"{len(unmet) - SHOWN} more"] if len(unmet) > SHOWN else []
    return _WAITS(WHO, " and ".join(named + more))
