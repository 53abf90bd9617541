"""A placement: which of a domain's free PEs a request gets (``set domain D placement=...``)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from nqspy.model.board import Board


class Placement(ABC):
    """A rule that chooses PEs. Here any PEs that have room will do.

    ``word``: its word in the settings, and what it ``means``; ``in_a_row``: the PEs of a request have numbers
    without a gap.
    """

    word: ClassVar[str] = ""
    means: ClassVar[str] = ""
    in_a_row: ClassVar[bool] = False

    def room(self, board: Board) -> int:
        """Return how many PEs one request could be given now."""
        return board.free

    @abstractmethod
    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        """Return PEs for a request of at most `room` PEs, in ascending order."""

    def again(self, board: Board, count: int, own: Sequence[int]) -> Sequence[int]:
        """Return up to ``count`` PEs for a request that had so many before, its ``own`` open ones first."""
        return [*own, *(pe for pe in board.open().tolist() if pe not in own)][:count]
