"""An owner's order among his own requests (``qsub -p``): none is offered before one of the same owner, group
and queue with a higher priority.

It is kept by putting the lower ones back, never by putting a higher one forward: so nobody gains on others.
"""

import numpy as np

from nqspy.model.columns import Columns, Floats, Ints

STEP = 1e-9
"""How far a request is put behind a higher one of its owner's: less than any difference that counts."""


def behind_their_own(base: Floats, columns: Columns, dates: Ints, turns: Ints) -> None:
    """Lowers the values of rows (minus infinity: no candidate) to below those of the same pair's rows of
    higher priority, where some of a priority stand before one of these: by value, ``dates``, ``turns``. Rows
    that an operator has scheduled are left alone. Nothing is done where nobody gave a priority."""
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
"""What orders rows: whose is less comes first."""
_FIRST: _Place = (-np.inf, 0, 0)
"""Before everybody."""


def _place(base: Floats, dates: Ints, turns: Ints, rows: Ints, *, first: bool) -> _Place:
    """That of the first, or the last, of these rows."""
    for keys in (-base, dates, turns):
        found = keys[rows]
        rows = rows[found == (found.min() if first else found.max())]
    row = rows[0]
    return -float(base[row]), int(dates[row]), int(turns[row])
