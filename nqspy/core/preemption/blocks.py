"""Where a job could be loaded, and what it would cost to clear a place for it: over all PEs of a domain at
once (1,000 that wait for 4,096 PEs one PE at a time took most of a second).

The seed's cost "considers the number of nodes occupied by the potential bumpees, their relative priority,
and how much time remains in their do-not-disturb time" (seed 000, "Job Scheduling Algorithm"). Ours, of a
block B for a bumper of priority p,

    cost(B) = sum over the holders of PEs of B of n (1 + q) / (1 + p) (1 + t / 1 min)

n all PEs of a holder (all of them are moved), q the priority of his class, t what is left of his
do-not-disturb time. Of blocks that cost the same the one with the fewest holders counts (large jobs are
bumped by preference), then the one nearest to PE 0. Where PEs need not be in a row, they are those of the
holders who cost least for each PE, of these the largest first.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from nqspy.model.board import Board, Mask, blocks
from nqspy.model.columns import Floats, Ints
from nqspy.model.ids import MINUTE

_ROUNDING = 1e-9


class Tenant(Struct, frozen=True):
    """Who holds PEs of a domain, as a bumper sees him. ``pes``: in ascending order; ``weight``: what each of
    them costs; None: he is not to be bumped. ``gives``: PEs that he gives back under the limit
    of the bumper's class."""

    pes: tuple[int, ...]
    weight: float | None
    gives: int = 0


def weight(priority: int, bumper: int, left: int) -> float:
    """What each PE of a holder costs a bumper; ``left``: of the holder's do-not-disturb time, ms."""
    return (1 + priority) / (1 + bumper) * (1 + max(0, left) / MINUTE)


def cheapest(
    board: Board, tenants: Sequence[Tenant], count: int, contiguous: bool, short: int = 0
) -> tuple[int, ...] | None:
    """The PEs that are cleared at the least cost for a bumper of ``count`` PEs; None where there is no
    place. On a PE with a free slot nobody is bumped, nor is anybody from one that is offline. Those on them
    give at least as many PEs back under the limit of the bumper's class as it is ``short`` of there."""
    barred, free = _barred(board, tenants), board.having_room
    if contiguous:
        return _cheapest_row(barred, free, tenants, count, short)
    return _cheapest_few(barred, free, tenants, count, short)


def _barred(board: Board, tenants: Iterable[Tenant]) -> Mask:
    """PEs from which nobody can be bumped: who holds a PE and is no tenant stays."""
    known = np.zeros(len(board.held), dtype=np.int64)
    barred = ~board.usable
    for each in tenants:
        pes = list(each.pes)
        known[pes] += 1
        if each.weight is None:
            barred[pes] = True
    barred |= board.held > known
    barred[board.having_room] = False
    return barred


def _cheapest_few(
    barred: Mask, free: Mask, tenants: Sequence[Tenant], count: int, short: int
) -> tuple[int, ...] | None:
    costs, sizes = np.zeros(len(barred)), np.zeros(len(barred), dtype=np.int64)
    for each in tenants:
        pes = list(each.pes)
        costs[pes] += each.weight or 0.0
        sizes[pes] = len(pes)
    costs[free] = 0.0
    costs[barred] = np.inf
    costs[_of_those_who_give(costs, tenants, short)] = -1.0
    order = np.lexsort((-sizes, costs))[:count]
    if len(order) < count or not np.isfinite(costs[order]).all():
        return None
    return tuple(sorted(order.tolist()))


def _of_those_who_give(costs: Floats, tenants: Iterable[Tenant], short: int) -> list[int]:
    """A PE of each of those who cost least and make up for what the bumper is ``short`` of."""
    found: list[int] = []
    for each in sorted(tenants, key=lambda each: each.weight or 0.0):
        bumped = [pe for pe in each.pes if 0 < costs[pe] < np.inf]
        if bumped and short > 0 < each.gives:
            short -= each.gives
            found.append(bumped[0])
    return found


def _cheapest_row(
    barred: Mask, free: Mask, tenants: Sequence[Tenant], count: int, short: int
) -> tuple[int, ...] | None:
    if count > len(barred):
        return None
    whole = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(barred)))
    places = np.flatnonzero(whole[count:] == whole[:-count])
    if not len(places):
        return None
    costs, holders, given = _of_rows(places, free, tenants, count, len(barred))
    enough = given >= short
    if not enough.any():
        return None
    places, costs, holders = places[enough], costs[enough], holders[enough]
    least = costs.min()
    cheap = costs <= least + _ROUNDING * max(1.0, least)
    begin = int(places[cheap & (holders == holders[cheap].min())][0])
    return tuple(range(begin, begin + count))


def _of_rows(places: Ints, free: Mask, tenants: Sequence[Tenant], count: int, total: int) -> Floats:
    """What each row of ``count`` PEs costs, how many hold some of it, and what these give back under
    the limit, by its first PE: who begins before its end, less who ends before its beginning."""
    begins, ends = np.zeros((2, 3, total + 1))
    for each in tenants:
        pes = np.array(each.pes, dtype=np.int64)
        crowded = pes[~free[pes]]
        if each.weight is not None and (each.weight or each.gives) and len(crowded):
            first, sizes = blocks(crowded)
            of_each = np.array([[each.weight * len(pes)], [bool(each.weight)], [each.gives]])
            begins[:, first] += of_each
            ends[:, first + sizes] += of_each
    found: Floats = begins.cumsum(axis=1)[:, places + count - 1] - ends.cumsum(axis=1)[:, places]
    return found
