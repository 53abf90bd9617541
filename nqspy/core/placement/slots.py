"""Placement for PEs that are shared in slots (seed 002, section 5.2): it keeps the number of gangs small."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nqspy.core.placement.placement import Contiguous
from nqspy.model.board import Board


class Slots(Contiguous):
    """Placement in a row, where as few others as possible hold the same PE: the fewer share one, the more
    often each runs. Of equal places it takes the one with the fewest holders in all, then the lowest."""

    word, means = "slots", "numbers without a gap, where the fewest other requests take turns"
    shares = True

    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        held = sliding_window_view(board.held, count)
        starts = np.flatnonzero(sliding_window_view(board.having_room, count).all(axis=1))
        most, total = held[starts].max(axis=1), held[starts].sum(axis=1)
        begin = int(starts[np.lexsort((starts, total, most))[0]])
        return tuple(range(begin, begin + count))


PLACEMENTS = (Slots(),)
