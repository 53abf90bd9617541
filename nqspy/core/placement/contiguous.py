"""Numbers without a gap: from the smallest block that is large enough, so that large blocks stay whole."""

from collections.abc import Sequence

import numpy as np

from nqspy.core.placement.placement import Placement
from nqspy.model.board import Board, blocks


class Contiguous(Placement):
    """The beginning of the smallest block that is large enough, of equal ones the first."""

    word, means = "contiguous", "numbers without a gap, from the smallest block that has enough"
    in_a_row = True

    def room(self, board: Board) -> int:
        """Return the size of the largest block."""
        return int(blocks(board.open())[1].max(initial=0))

    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        first, sizes = blocks(board.open())
        best = int(np.where(sizes < count, np.iinfo(np.int64).max, sizes).argmin())
        return tuple(range(int(first[best]), int(first[best]) + count))

    def again(self, board: Board, count: int, own: Sequence[int]) -> Sequence[int]:
        """Return its own PEs if all are open, else another block; if there is none, its own that are open."""
        return own if len(own) == count or self.room(board) < count else self.pick(board, count)


PLACEMENT = Contiguous()
