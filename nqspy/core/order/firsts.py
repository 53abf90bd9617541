"""First rows of a queue by their scores; equal scores are ordered by other keys."""

import numpy as np

from nqspy.model.columns import Floats, Ints

NEVER = float("-inf")
"""The score of a removed row."""
_SAMPLE = 16
"""Sampling stride for estimating the cut-off score."""


def guess(score: Floats, most: int) -> float | None:
    """Return a score that by a sample somewhat more than ``most`` rows reach; None: there are too few
    rows."""
    sample = score[::_SAMPLE]
    rank = 2 * most // _SAMPLE + _SAMPLE
    if rank >= len(sample):
        return None
    return max(float(np.partition(sample, len(sample) - rank)[len(sample) - rank]), -1.0)


def least(rows: Ints, key: Floats | Ints) -> Ints:
    """Return the rows of these that have the least value."""
    values = key[rows]
    equal: Ints = rows[values == values.item(values.argmin())]
    return equal
