"""No PEs: in a command domain requests hold none, and each may ask for as many as the machine has."""

from collections.abc import Sequence

from nqspy.core.placement.placement import Placement
from nqspy.model.board import Board


class Nothing(Placement):
    """No PEs."""

    def room(self, board: Board) -> int:
        """Return how many PEs the machine has."""
        return len(board.held)

    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        return ()

    def again(self, board: Board, count: int, own: Sequence[int]) -> Sequence[int]:
        return ()
