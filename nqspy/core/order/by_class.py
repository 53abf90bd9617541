"""Order by job class, for the places of `qstat`. A pass takes the jobs of all class queues (`jobs`)."""

import numpy as np

from nqspy.core.classes import BY_CLASS, ClassTable
from nqspy.core.order.order import CandidateOrder
from nqspy.model.columns import Floats


class ByClass(CandidateOrder):
    """The highest class first."""

    word, means = BY_CLASS, "by class, and one that waits too long has others give way"

    def score(self) -> Floats:
        table = ClassTable(self._draft.site.settings)
        ranks = np.array([table.of(job).priority for job in self._columns.requests()], dtype=np.float64)
        found: Floats = ranks / (1 + ranks.max(initial=0))
        return found


ORDER = ByClass
