"""How long what has run for a while goes on, where nothing like it is known to have run longer.

Lifetimes on parallel machines are spread evenly over the logarithm of time: F(t) = b0 + b1 ln t, between a
shortest and a longest one (A. B. Downey, "Predicting queue times on space-sharing parallel computers", IPPS
1997). So the longer one has run the longer it is expected to run.
"""

from collections.abc import Sequence
from math import isqrt

import numpy as np


def median_beyond(ran: int, longest: int) -> int:
    """The median of all lifetimes between these two (ms): of those that ran for ``ran`` half has ended by
    then. (From F: (ln m - ln ran) / (ln longest - ln ran) = 1/2.)"""
    return max(ran + 1, isqrt(ran * longest))


def longest_of(walls: Sequence[int]) -> int:
    """Where F, laid through these lifetimes (ms) by least squares, is 1; 0 where they tell no line."""
    if len(walls) < 2 or min(walls) == max(walls):
        return 0
    logs = np.log(np.maximum(1, np.sort(np.array(walls, dtype=np.float64))))
    parts = (np.arange(len(walls)) + 0.5) / len(walls)
    slope, begin = np.polyfit(logs, parts, 1)
    end = float((1 - begin) / slope) if slope > 0 else 0.0
    return round(np.exp(end)) if 0 < end < _BEYOND else 0


_BEYOND = 40.0
"""ln ms of what no lifetime reaches: 7 million years."""
