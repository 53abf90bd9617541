"""An owner's order among his own requests (``qsub -p``): none is offered before one of the same owner, group
and queue with a higher priority.

It is kept by putting the lower ones back, never by putting a higher one forward: so nobody gains on others.
"""

import numpy as np

from nqspy.model.columns import Columns, Floats

STEP = 1e-9
"""How far a request is put behind a higher one of its owner's: less than any difference that counts."""


def behind_their_own(base: Floats, columns: Columns) -> None:
    """Lowers the values of rows (minus infinity: no candidate) to below those of the same pair's rows of
    higher priority. Rows that an operator has scheduled are left alone. Nothing is done where nobody gave a
    priority."""
    if not columns.prioritised:
        return
    given = columns.priority != 0
    concerned = np.isin(columns.pair, np.unique(columns.pair[given])) & (columns.rank == 0)
    rows = np.flatnonzero(concerned & (base != -np.inf))
    order = rows[np.lexsort((-columns.priority[rows], columns.pair[rows]))]
    pairs, priorities = columns.pair[order], columns.priority[order]
    cuts = np.flatnonzero((np.diff(pairs) != 0) | (np.diff(priorities) != 0)) + 1
    least, last = np.inf, -1
    for run in np.split(order, cuts) if len(order) else ():
        pair = int(columns.pair[run[0]])
        least = least if pair == last else np.inf
        base[run] = np.minimum(base[run], least - STEP)
        least, last = min(least, float(base[run].min())), pair
