"""The placements: which of a domain's free PEs a request gets (``set domain D placement=...``)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from nqspy.model.board import Board, blocks


class Placement(ABC):
    """A rule that chooses PEs. Here any PEs that have room will do. ``word``: its word in the settings, and
    what it ``means``; ``in_a_row``: the PEs of a request have numbers without a gap; ``shares``: it looks for
    PEs that few others hold."""

    word: ClassVar[str] = ""
    means: ClassVar[str] = ""
    in_a_row: ClassVar[bool] = False
    shares: ClassVar[bool] = False

    def room(self, board: Board) -> int:
        """Return the greatest number of PEs that one request could be given now on this board."""
        return board.free

    @abstractmethod
    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        """Return PEs for a request of at most `room` PEs, in ascending order."""

    def again(self, board: Board, count: int, own: Sequence[int]) -> Sequence[int]:
        """Return up to ``count`` PEs for a suspended request that had so many, first its former PEs that are
        free (``own``)."""
        return [*own, *(pe for pe in board.open().tolist() if pe not in own)][:count]


class Lowest(Placement):
    """Placement on the PEs with the lowest numbers."""

    word, means = "lowest", "the lowest numbers"

    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        return board.lowest(count)


class Contiguous(Placement):
    """Placement in a row, at the beginning of the smallest block that is large enough."""

    word, means = "contiguous", "numbers without a gap, from the smallest block that has enough"
    in_a_row = True

    def room(self, board: Board) -> int:
        """Return the size (PEs) of the largest block of neighbouring free PEs."""
        return int(blocks(board.open())[1].max(initial=0))

    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        first, sizes = blocks(board.open())
        best = int(np.where(sizes < count, np.iinfo(np.int64).max, sizes).argmin())
        return tuple(range(int(first[best]), int(first[best]) + count))

    def again(self, board: Board, count: int, own: Sequence[int]) -> Sequence[int]:
        """Return ``own`` if that is all that it had, else another block; if there is none, ``own``."""
        return own if len(own) == count or self.room(board) < count else self.pick(board, count)


class FirstBlock(Contiguous):
    """Placement in a row: the beginning of the first block that is large enough, nearest to PE 0."""

    word, means = "first_block", "numbers without a gap, from the first block that has enough"

    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        first, sizes = blocks(board.open())
        begin = int(first[int((sizes >= count).argmax())])
        return tuple(range(begin, begin + count))


class MostPacked(Placement):
    """Placement on the PEs with the most holders, as far as the depth of the domain allows, then on those of
    the smallest blocks, so that large blocks stay whole."""

    word, means = "most_packed", "those that most requests hold already, then those of the smallest blocks"

    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        pes = board.open()
        sizes = blocks(pes)[1]
        order = np.lexsort((pes, np.repeat(sizes, sizes), -board.held[pes]))
        return tuple(sorted(pes[order[:count]].tolist()))


class Nothing(Placement):
    """Placement on no PEs: requests of a command domain hold none, each may ask for the whole machine."""

    def room(self, board: Board) -> int:
        """Return how many PEs the machine has."""
        return len(board.held)

    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        return ()

    def again(self, board: Board, count: int, own: Sequence[int]) -> Sequence[int]:
        return ()


PLACEMENTS = (Lowest(), Contiguous(), FirstBlock(), MostPacked())
