"""First come, first served."""

from nqspy.core.draft import Draft
from nqspy.core.order.factors import FactorTerms
from nqspy.core.order.order import CandidateOrder
from nqspy.model.columns import Columns, Floats
from nqspy.model.queues import Queue


class Fcfs(CandidateOrder):
    """First come, first served."""

    word, means = "fcfs", "by date in queue"

    def __init__(self, draft: Draft, queue: Queue, columns: Columns) -> None:
        super().__init__(draft, queue, columns)
        self._terms = FactorTerms(queue, columns, draft.redated(queue.name), draft.now)

    def score(self) -> Floats:
        found: Floats = self._terms.time(self._draft.dates(self._queue.name))
        return found


ORDER = Fcfs
