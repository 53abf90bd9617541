"""The orders: a score for each row of a queue, higher first. Equal scores go by date in queue."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from nqspy.core.classes import BY_CLASS, ClassTable
from nqspy.core.draft import Draft
from nqspy.core.order.factors import FactorTerms
from nqspy.core.runtime import planned_walls
from nqspy.model.columns import Columns, Floats
from nqspy.model.queues import Queue, Weights


class CandidateOrder(ABC):
    """The order of one queue in one pass, by scores.

    ``word``: its word in the settings, and what it ``means``. ``step``: two scores differ by less than half
    of it; each rank adds it once. ``shared``: share values are added to the scores, times this weight.
    """

    word: ClassVar[str]
    means: ClassVar[str]
    step: float = 4.0
    shared: int = 0

    def __init__(self, draft: Draft, queue: Queue, columns: Columns) -> None:
        self._draft, self._queue, self._columns = draft, queue, columns

    @abstractmethod
    def score(self) -> Floats:
        """Return the score of every row, in an array that the caller may change."""


class Fcfs(CandidateOrder):
    """Order by date in queue: first come, first served."""

    word, means = "fcfs", "by date in queue"

    def __init__(self, draft: Draft, queue: Queue, columns: Columns) -> None:
        super().__init__(draft, queue, columns)
        # The divisors of the factors stay as the pass found them: a start does not move the others.
        self._terms = FactorTerms(queue, columns, draft.redated(queue.name), draft.now)

    def score(self) -> Floats:
        found: Floats = self._terms.time(self._draft.dates(self._queue.name))
        return found


class Priority(Fcfs):
    """Order by intra-queue priority (semantics.md 1): weighted share, CPU time, memory and time in queue."""

    word, means = "priority", "by intra-queue priority"

    def __init__(self, draft: Draft, queue: Queue, columns: Columns) -> None:
        super().__init__(draft, queue, columns)
        self._weights = w = draft.site.settings.weights(queue.name)
        self.shared, self.step = w.share, 2.0 * (w.share + w.cpu + w.memory + w.time + 1)

    def score(self) -> Floats:
        if self._weights == _NONE:
            return super().score()
        return self._terms.weighted(self._weights, self._draft.dates(self._queue.name))


_NONE = Weights(0, 0, 0, 0)


class Sjf(CandidateOrder):
    """Order by wall limit, the shortest first."""

    word, means = "sjf", "the shortest by its wall limit"

    def score(self) -> Floats:
        walls = planned_walls(self._draft.site.settings, self._queue.name, self._columns.wall)
        return -np.minimum(walls, _ENDLESS) / _ENDLESS


_ENDLESS = float(1 << 42)
"""Wall time (ms) that counts for a request without a limit: longer than any limit."""


class ByClass(CandidateOrder):
    """Order by class, the highest first, for the places in `qstat`: a pass takes jobs by `order.jobs`."""

    word, means = BY_CLASS, "by class, and one that waits too long has others give way"

    def score(self) -> Floats:
        table = ClassTable(self._draft.site.settings)
        ranks = np.array([table.of(job).priority for job in self._columns.requests()], dtype=np.float64)
        found: Floats = ranks / (1 + ranks.max(initial=0))
        return found


ORDERS = (Priority, Fcfs, Sjf, ByClass)
