"""The intra-queue priority (semantics.md 1, seed 003)."""

from nqspy.core.draft import Draft
from nqspy.core.order.factors import FactorTerms
from nqspy.core.order.order import CandidateOrder
from nqspy.model.columns import Columns, Floats
from nqspy.model.queues import Queue, Weights

_NONE = Weights(0, 0, 0, 0)


class Priority(CandidateOrder):
    """The weighted sum of share, CPU time, memory and time in queue."""

    word, means = "priority", "by intra-queue priority"

    def __init__(self, draft: Draft, queue: Queue, columns: Columns) -> None:
        super().__init__(draft, queue, columns)
        self._weights = w = draft.site.settings.weights(queue.name)
        self.shared, self.step = w.share, 2.0 * (w.share + w.cpu + w.memory + w.time + 1)
        # The divisors of the factors stay as the pass found them: a start does not move the others.
        self._terms = FactorTerms(queue, columns, draft.redated(queue.name), draft.now)

    def score(self) -> Floats:
        dates = self._draft.dates(self._queue.name)
        if self._weights == _NONE:
            found: Floats = self._terms.time(dates)
            return found
        return self._terms.weighted(self._weights, dates)


ORDER = Priority
