"""The second look at a plan that comes back late: each action stands only if nothing that mattered to it
has changed."""

from collections.abc import Collection

from nqspy.core.queueing.limits import Tally
from nqspy.model.actions import Action, Hold, Move, Redate, Requeue, Resume, Start, Suspend
from nqspy.model.health import SWAP
from nqspy.model.ids import Seq
from nqspy.model.requests import Request, State
from nqspy.model.site import Site

NOW = 3
"""Rank of ``schedule request ... now``: limits do not hold for it."""


class Recheck:
    """Looks at a plan's actions in their order, each before it is carried out.

    ``changed``: requests to which something happened since the plan was asked for. A change of settings or
    shift voids a whole plan: that is not asked here.
    """

    def __init__(self, site: Site, changed: Collection[Seq]) -> None:
        self._site = site
        self._changed = changed
        self._fallen: set[Seq] = set()
        self._tally = Tally(site)

    def stands(self, action: Action) -> bool:
        """Whether it may be carried out now: its request unchanged, its PEs free, its limits respected.

        What a start brings about (a re-dating) falls with the start.
        """
        holds = self._holds(action)
        if isinstance(action, Start):
            if holds:
                self._tally.add(self._site.requests[action.seq])
            else:
                self._fallen.add(action.seq)
        return holds

    def _holds(self, action: Action) -> bool:
        match action:
            case Start():
                return self._may_start(action)
            case Redate():
                return action.cause not in self._fallen
            case Move(seq) | Hold(seq):
                request = self._site.requests.get(seq)
                return request is not None and request.state is State.QUEUED and seq not in self._changed
            case Suspend(seq, attempt, who):
                return self._unchanged(seq, attempt) and (who != SWAP or self._memory_is_short())
            case Requeue(seq, attempt):
                return self._unchanged(seq, attempt)
            case Resume(seq, attempt):
                return self._unchanged(seq, attempt) and self._may_resume(self._site.started[seq])
        return True

    def _unchanged(self, seq: Seq, attempt: int) -> bool:
        request = self._site.started.get(seq)
        return request is not None and request.attempt == attempt and seq not in self._changed

    def _memory_is_short(self) -> bool:
        return self._site.pressure.level == "high" and not self._site.pressure.answered

    def _may_resume(self, request: Request) -> bool:
        return not request.parked or self._taken().isdisjoint(request.pes)

    def _taken(self) -> set[int]:
        return {pe for other in self._site.started.values() if not other.parked for pe in other.pes}

    def _may_start(self, action: Start) -> bool:
        site, request = self._site, self._site.requests.get(action.seq)
        if request is None or request.state is not State.QUEUED or request.attempt + 1 != action.attempt:
            return False
        queue = site.settings.queues.get(request.queue)
        if action.seq in self._changed or queue is None or not queue.started:
            return False
        if not self._taken().isdisjoint(action.pes):
            return False
        return request.rank >= NOW or self._tally.keeping(request, action.forced) is None
