"""Orders of candidates: a score for each row, higher first. Equal scores go by date in queue."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from nqspy.core.draft import Draft
from nqspy.core.order.factors import FactorTerms
from nqspy.core.runtime import planned_walls
from nqspy.model.columns import Columns, Floats
from nqspy.model.queues import Queue, Weights

_ENDLESS = float(1 << 42)
"""A wall time (ms) above all that are asked for."""
_NONE = Weights(0, 0, 0, 0)


class Order(Protocol):
    """``step``: two scores differ by less than half of it. ``shared``: share values are added to the scores,
    times this weight."""

    step: float
    shared: int

    def score(self) -> Floats:
        """Return the score of every row, in an array that the caller may change."""


class Fcfs:
    """First come, first served."""

    step, shared = 4.0, 0

    def __init__(self, draft: Draft, queue: Queue, columns: Columns) -> None:
        self._draft, self._queue = draft, queue
        self._terms = FactorTerms(queue, columns, draft.redated(queue.name), draft.now)

    def score(self) -> Floats:
        found: Floats = self._terms.time(self._draft.dates(self._queue.name))
        return found


class Sjf:
    """The shortest wall limit first."""

    step, shared = 4.0, 0

    def __init__(self, draft: Draft, queue: Queue, columns: Columns) -> None:
        self._draft, self._queue, self._columns = draft, queue, columns

    def score(self) -> Floats:
        walls = planned_walls(self._draft.site.settings, self._queue.name, self._columns.wall)
        return -np.minimum(walls, _ENDLESS) / _ENDLESS


class Priority:
    """The weighted sum of share, CPU time, memory and time in queue (semantics.md 1, seed 003)."""

    def __init__(self, draft: Draft, queue: Queue, columns: Columns) -> None:
        self._draft, self._queue = draft, queue
        self._weights = weights = draft.site.settings.weights(queue.name)
        self.shared, self.step = weights.share, 2.0 * (sum(_parts(weights)) + 1)
        # The divisors of the factors stay as the pass found them: a start does not move the others.
        self._terms = FactorTerms(queue, columns, draft.redated(queue.name), draft.now)

    def score(self) -> Floats:
        dates = self._draft.dates(self._queue.name)
        if self._weights == _NONE:
            found: Floats = self._terms.time(dates)
            return found
        return self._terms.weighted(self._weights, dates)


def _parts(weights: Weights) -> tuple[int, ...]:
    return weights.share, weights.cpu, weights.memory, weights.time


ORDERS: Mapping[str, type[Fcfs] | type[Sjf] | type[Priority]] = {
    "priority": Priority,
    "fcfs": Fcfs,
    "sjf": Sjf,
}
"""By the words of ``order=``."""
