"""The second look at a plan that comes back late: each action stands only if nothing that mattered to it
has changed."""

from nqspy.model.actions import Action, Hold, Move, Redate, Start
from nqspy.model.ids import Seq
from nqspy.model.requests import State
from nqspy.model.site import Site


def still_holds(site: Site, action: Action, refused: set[Seq]) -> bool:
    """Whether an action may be carried out now: its request unchanged, its PEs free, its limits respected.

    ``refused``: starts of this plan that fell; what they brought about falls with them.
    """
    if isinstance(action, Start):
        return _may_start(site, action)
    if isinstance(action, Redate):
        return action.cause not in refused
    if isinstance(action, (Move, Hold)):
        return action.seq in site.requests and site.requests[action.seq].state is State.QUEUED
    return True


def _may_start(site: Site, action: Start) -> bool:
    request = site.requests.get(action.seq)
    if request is None or request.state is not State.QUEUED or request.attempt + 1 != action.attempt:
        return False
    queue = site.settings.queues.get(request.queue)
    if queue is None or not queue.started or len(action.pes) != request.spec.ask.pes:
        return False
    taken = {pe for other in site.started.values() for pe in other.pes}
    return not taken.intersection(action.pes)
