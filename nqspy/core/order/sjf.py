"""Shortest job first."""

import numpy as np

from nqspy.core.order.order import CandidateOrder
from nqspy.core.runtime import planned_walls
from nqspy.model.columns import Floats

_ENDLESS = float(1 << 42)
"""A wall time (ms) above all that are asked for."""


class Sjf(CandidateOrder):
    """The shortest wall limit first."""

    word, means = "sjf", "the shortest by its wall limit"

    def score(self) -> Floats:
        walls = planned_walls(self._draft.site.settings, self._queue.name, self._columns.wall)
        return -np.minimum(walls, _ENDLESS) / _ENDLESS


ORDER = Sjf
