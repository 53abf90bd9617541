"""The lowest numbers."""

from nqspy.core.placement.placement import Placement
from nqspy.model.board import Board


class Lowest(Placement):
    """The PEs with the lowest numbers."""

    word, means = "lowest", "the lowest numbers"

    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        return board.lowest(count)


PLACEMENT = Lowest()
