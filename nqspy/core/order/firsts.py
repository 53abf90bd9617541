"""Which rows of a line come first: by their scores, and where these are equal by other keys."""

from collections.abc import Sequence

import numpy as np

from nqspy.core.gate.rule import Mask
from nqspy.model.columns import Floats, Ints

NEVER = float("-inf")
"""The score of a row that was taken."""
_SAMPLE = 16
"""Every how manieth score is looked at to guess where the best begin."""


def foremost(out: Mask | None, base: Floats, table: Floats | None, pair: Ints) -> tuple[float, Ints]:
    """The best score of rows that are not ``out``, and which rows have it."""
    score = base
    if table is not None:
        score = table.take(pair)
        score += base
    if out is not None:
        score = np.where(out, NEVER, score)
    top = score.item(score.argmax())
    return top, (score == top).nonzero()[0]


def guess(score: Floats, most: int) -> float | None:
    """A score that probably somewhat more than ``most`` rows reach, by a sample; None: they are too few."""
    sample = score[::_SAMPLE]
    rank = 2 * most // _SAMPLE + _SAMPLE
    if rank >= len(sample):
        return None
    return max(float(np.partition(sample, len(sample) - rank)[len(sample) - rank]), -1.0)


def first(rows: Ints, keys: Sequence[Floats | Ints], count: int) -> Ints:
    """The ``count`` rows that are first by these keys (smaller first, the last key without ties), in no
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
    """Those of these rows that have the least value."""
    values = key[rows]
    found: Ints = rows[values == values.item(values.argmin())]
    return found
