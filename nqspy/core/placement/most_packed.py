"""PEs that have holders already, as far as the depth of the domain allows."""

import numpy as np

from nqspy.core.placement.placement import Placement
from nqspy.model.board import Board, blocks


class MostPacked(Placement):
    """PEs with the most holders, then those of the smallest blocks, so that large blocks stay whole."""

    word, means = "most_packed", "those that most requests hold already, then those of the smallest blocks"

    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        pes = board.open()
        sizes = blocks(pes)[1]
        order = np.lexsort((pes, np.repeat(sizes, sizes), -board.held[pes]))
        return tuple(sorted(pes[order[:count]].tolist()))


PLACEMENT = MostPacked()
