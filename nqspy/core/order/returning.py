"""Suspended requests that wait to resume, in the order of their starts: candidates in front of all others."""

from nqspy.core.classes import is_bumped, is_served
from nqspy.core.draft import Draft
from nqspy.core.gate.gate import NOW
from nqspy.core.order.candidates import Candidates
from nqspy.model.requests import Request


def returning(draft: Draft) -> list[Request]:
    """Return the suspended requests without PEs that no feature keeps suspended. A job that gave way to a
    bumper waits by its class."""
    return [
        request
        for request in draft.parked()
        if request.seq not in draft.reasons
        and not (is_bumped(request) and is_served(draft.site, request.queue))
    ]


class ReturningCandidates(Candidates):
    """A row is a place in ``requests``. ``queue`` is that of the first."""

    def __init__(self, draft: Draft, requests: list[Request]) -> None:
        self.queue, self.names = draft.site.settings.queues[requests[0].queue], set()
        self._requests, self._rest = requests, set(range(len(requests)))

    def take(self, row: int) -> Request:
        self._rest.remove(row)
        return self._requests[row]

    def is_left(self, row: int) -> bool:
        return row in self._rest

    def urgent(self) -> list[tuple[int, int]]:
        """Return all rows, ahead of what an operator scheduled."""
        return [(NOW + 1, row) for row in range(len(self._requests))]

    def refresh(self) -> None:
        """Do nothing: the order does not depend on what starts."""
