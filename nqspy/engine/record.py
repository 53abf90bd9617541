"""Which event an action of a plan becomes when it is carried out."""

from nqspy.model import events as ev
from nqspy.model.actions import Action, Hold, Move, Redate, Requeue, Resume, Start, Suspend
from nqspy.model.cause import Cause
from nqspy.model.promises import Promise, Promised
from nqspy.model.site import Site


def event_of(site: Site, action: Action) -> ev.Event | None:
    """The event that says an action was decided; None for one that changes nothing by itself (a notice, a
    signal)."""
    match action:
        case Start(seq, attempt, pes, forced):
            return ev.Starting(seq, attempt, pes, forced)
        case Redate(seqs, date, cause, who):
            return ev.Redated(seqs, date, cause, who)
        case Move(seq, queue):
            return ev.Routed(seq, queue, site.requests[seq].queue)
        case Hold(seq, who, text):
            return ev.Held((seq,), "s", who, text, cause=Cause("exit", who))
        case Suspend(seq, attempt, cause, text, parked):
            return ev.Suspended(seq, attempt, str(cause), parked, text, cause=cause)
        case Resume(seq, attempt, cause, pes):
            return ev.Resumed(seq, attempt, str(cause), pes, cause=cause)
        case Requeue(seq, attempt, cause, text):
            return ev.Deleting(seq, attempt, str(cause), True, text, cause=cause)
        case Promise(key, value):
            return Promised(action.by, key, value)
    return None
