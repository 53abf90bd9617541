"""Which event an action of a plan becomes when it is carried out."""

from nqspy.model import events as ev
from nqspy.model.actions import Action, Hold, Move, Redate, Requeue, Resume, Start, Suspend
from nqspy.model.site import Site

BY = "scheduler"
"""Who suspends and resumes where a pass decides it."""


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
            return ev.Held((seq,), "s", who, text)
        case Suspend(seq, attempt, who, text, parked):
            return ev.Suspended(seq, attempt, who or BY, parked, text)
        case Resume(seq, attempt, who, pes):
            return ev.Resumed(seq, attempt, who or BY, pes)
        case Requeue(seq, attempt, who, text):
            return ev.Deleting(seq, attempt, who, True, text)
    return None
