"""The PEs nearest to PE 0: for jobs that are scheduled by class (seed 000)."""

from nqspy.core.placement.contiguous import Contiguous
from nqspy.core.placement.lowest import Lowest
from nqspy.core.placement.placement import Placement
from nqspy.core.placement.placements import PLACEMENTS
from nqspy.model.board import Board, blocks
from nqspy.model.domains import Domain


class FirstBlock(Contiguous):
    """The beginning of the first block that is large enough."""

    def pick(self, board: Board, count: int) -> tuple[int, ...]:
        first, sizes = blocks(board.open())
        begin = int(first[int((sizes >= count).argmax())])
        return tuple(range(begin, begin + count))


_FIRST_BLOCK, _LOWEST = FirstBlock(), Lowest()


def nearest(domain: Domain) -> Placement:
    """Return the placement of a domain's jobs: in a row where that of its other requests is."""
    return _FIRST_BLOCK if PLACEMENTS[domain.placement].in_a_row else _LOWEST
