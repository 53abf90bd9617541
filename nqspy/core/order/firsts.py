"""First rows of a queue by their scores; equal scores are ordered by other keys."""

from collections.abc import Sequence

import numpy as np

from nqspy.core.gate.rule import Mask
from nqspy.model.columns import Floats, Ints

NEVER = float("-inf")
"""The score of a removed row."""
_SAMPLE = 16
"""Sampling stride for estimating the cut-off score."""


def foremost(out: Mask | None, base: Floats, table: Floats | None, pair: Ints) -> tuple[float, Ints]:
    """Return the best score of rows that are not ``out``, and the rows that have it."""
    score = base
    if table is not None:
        score = table.take(pair)
        score += base
    if out is not None:
        score = np.where(out, NEVER, score)
    top = score.item(score.argmax())
    return top, (score == top).nonzero()[0]


def guess(score: Floats, most: int) -> float | None:
    """Return a score that by a sample somewhat more than ``most`` rows reach; None: there are too few
    rows."""
    sample = score[::_SAMPLE]
    rank = 2 * most // _SAMPLE + _SAMPLE
    if rank >= len(sample):
        return None
    return max(float(np.partition(sample, len(sample) - rank)[len(sample) - rank]), -1.0)


def first(rows: Ints, keys: Sequence[Floats | Ints], count: int) -> Ints:
    """Return the ``count`` first rows by these keys (smaller first, the last key without ties), in no
    order."""
    if len(rows) <= count:
        return rows
    if count == 1:
        return first(least(rows, keys[0]), keys[1:], 1)
    values = keys[0][rows]
    bound = np.partition(values, count - 1)[count - 1]
    tied = rows[values == bound]
    sure = rows[values < bound]
    return np.concatenate([sure, first(tied, keys[1:], count - len(sure))])


def least(rows: Ints, key: Floats | Ints) -> Ints:
    """Return the rows of these that have the least value."""
    values = key[rows]
    equal: Ints = rows[values == values.item(values.argmin())]
    return equal
