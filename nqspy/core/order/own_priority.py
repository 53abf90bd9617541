"""Order of an owner's own requests (``qsub -p``): a request of a higher priority is offered before others of
the same owner, group and queue.

Lower requests move back, and no request moves forward: so no owner gains on others.
"""

import numpy as np

from nqspy.model.columns import Columns, Floats, Ints

STEP = 1e-9
"""Difference by which a request is put behind a higher one of its owner: less than any that matters."""


def behind_their_own(base: Floats, columns: Columns, dates: Ints, turns: Ints) -> None:
    """Lower values until no row comes before one of its owner and group with a higher priority.

    The rows of a priority are lowered if one of them comes before a row of higher priority, by value,
    ``dates``, ``turns``. A value of minus infinity means no candidate. Rows that an operator has scheduled
    are left alone.
    """
    if not columns.prioritised:
        return
    given = columns.priority != 0
    concerned = np.isin(columns.pair, np.unique(columns.pair[given])) & (columns.rank == 0)
    rows = np.flatnonzero(concerned & (base != -np.inf))
    order = rows[np.lexsort((-columns.priority[rows], columns.pair[rows]))]
    pairs, priorities = columns.pair[order], columns.priority[order]
    cuts = np.flatnonzero((np.diff(pairs) != 0) | (np.diff(priorities) != 0)) + 1
    least, last = _FIRST, -1
    for run in np.split(order, cuts) if len(order) else ():
        pair = int(columns.pair[run[0]])
        least = least if pair == last else _FIRST
        if _place(base, dates, turns, run, first=True) < least:
            base[run] = np.minimum(base[run], -least[0] - STEP)
        least, last = max(least, _place(base, dates, turns, run, first=False)), pair


_Place = tuple[float, int, int]
"""Sorting key of rows: the least comes first."""
_FIRST: _Place = (-np.inf, 0, 0)
"""Key before all others."""


def _place(base: Floats, dates: Ints, turns: Ints, rows: Ints, *, first: bool) -> _Place:
    """Return the key of the first, or the last, of these rows."""
    for keys in (-base, dates, turns):
        values = keys[rows]
        rows = rows[values == (values.min() if first else values.max())]
    row = rows[0]
    return -float(base[row]), int(dates[row]), int(turns[row])
