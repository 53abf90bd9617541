"""Placement: which of a domain's free PEs a request gets, a class for each policy (``set domain D
placement=lowest|contiguous|most_packed``)."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from nqspy.model.board import Board, blocks
from nqspy.model.domains import Domain


class Placement(Protocol):
    """A policy."""

    def room(self, board: Board) -> int:
        """How many PEs one request could be given now."""

    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        """PEs for a request of at most `room` PEs, in ascending order."""

    def again(self, board: Board, count: int, own: Sequence[int]) -> Sequence[int]:
        """PEs for one that goes on with ``count`` of them, of which ``own`` are open: at most so many, its
        own first."""


class _Scattered:
    """Any PEs that have room will do."""

    def room(self, board: Board) -> int:
        """All that have room."""
        return board.free

    def again(self, board: Board, count: int, own: Sequence[int]) -> Sequence[int]:
        """Its own, then the lowest others."""
        return [*own, *(pe for pe in board.open().tolist() if pe not in own)][:count]


class Lowest(_Scattered):
    """The lowest numbers."""

    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        """The first of them."""
        return board.lowest(count)


class Contiguous:
    """Numbers without a gap: the smallest block that is large enough, of equal ones the first, so that large
    blocks stay whole."""

    def room(self, board: Board) -> int:
        """The largest block."""
        return int(blocks(board.open())[1].max(initial=0))

    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        """The beginning of that block."""
        first, sizes = blocks(board.open())
        best = int(np.where(sizes < count, np.iinfo(np.int64).max, sizes).argmin())
        return tuple(range(int(first[best]), int(first[best]) + count))

    def again(self, board: Board, count: int, own: Sequence[int]) -> Sequence[int]:
        """Its own where all are open, else another block; where there is none, what is open of its own."""
        return own if len(own) == count or self.room(board) < count else self.pick(board, count)


class MostPacked(_Scattered):
    """PEs that have holders already, as far as the depth allows; then those of the smallest blocks, so that
    large blocks stay whole for others."""

    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        """Most holders first, then smaller blocks, then lower numbers."""
        pes = board.open()
        sizes = blocks(pes)[1]
        order = np.lexsort((pes, np.repeat(sizes, sizes), -board.held[pes]))
        return tuple(sorted(pes[order[:count]].tolist()))


class HoldsNothing:
    """In a command domain requests hold no PEs, and each may ask for as many as the machine has."""

    def room(self, board: Board) -> int:
        """All PEs of the machine."""
        return len(board.held)

    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        """None."""
        return ()

    def again(self, board: Board, count: int, own: Sequence[int]) -> Sequence[int]:
        """None."""
        return ()


POLICIES: Mapping[str, Placement] = {
    "lowest": Lowest(),
    "contiguous": Contiguous(),
    "most_packed": MostPacked(),
}
"""By their words in the settings (`domains.PLACEMENTS`)."""
_COMMAND = HoldsNothing()


def policy_of(domain: Domain) -> Placement:
    """The policy of a domain."""
    return _COMMAND if domain.is_command else POLICIES[domain.placement]
