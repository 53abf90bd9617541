"""Where a job could be loaded, and what it would cost to clear a place for it: over all PEs of a domain at
once (1,000 that wait for 4,096 PEs one PE at a time took most of a second).

The seed's cost "considers the number of nodes occupied by the potential bumpees, their relative priority,
and how much time remains in their do-not-disturb time" (seed 000, "Job Scheduling Algorithm"). Ours, of a
block B for a bumper of priority p,

    cost(B) = sum over held PEs of B of (1 + q) / (1 + p) * (1 + t / 1 min)

q the priority of who holds a PE and t what is left of its do-not-disturb time. Of blocks that cost the same
the one with the fewest holders counts, then that whose holders are largest (large jobs are bumped by
preference: what they leave beside the block serves others), then the one nearest to PE 0.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nqspy.model.board import Board, Mask, blocks
from nqspy.model.columns import Floats, Ints
from nqspy.model.ids import MINUTE

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Tenant:
    """Who holds PEs of a domain, as a bumper sees him. ``pes``: in ascending order; ``weight``: what each of
    them costs; None: he is not to be bumped."""

    pes: tuple[int, ...]
    weight: float | None


def weight(priority: int, bumper: int, left: int) -> float:
    """What a held PE costs a bumper; ``left``: of the holder's do-not-disturb time, ms."""
    return (1 + priority) / (1 + bumper) * (1 + max(0, left) / MINUTE)


def nearest(free: Mask, count: int, contiguous: bool) -> tuple[int, ...] | None:
    """The ``count`` PEs of those that are set nearest to PE 0, in a row where they have to be ``contiguous``;
    None where there are not as many."""
    pes = np.flatnonzero(free)
    if len(pes) < count:
        return None
    if not contiguous:
        return tuple(pes[:count].tolist())
    first, sizes = blocks(pes)
    fits = sizes >= count
    if not fits.any():
        return None
    begin = int(first[int(fits.argmax())])
    return tuple(range(begin, begin + count))


def widest(free: Mask, contiguous: bool) -> int:
    """How many PEs one job could be given of those that are set."""
    pes = np.flatnonzero(free)
    return int(blocks(pes)[1].max(initial=0)) if contiguous else len(pes)


def cheapest(
    board: Board, usable: Mask, tenants: Sequence[Tenant], count: int, contiguous: bool
) -> tuple[int, ...] | None:
    """The PEs that are cleared at the least cost for a bumper of ``count`` PEs; None where there is no
    place. ``usable``: the domain's PEs that are not offline. On a PE with a free slot nobody is bumped."""
    costs = _costs(board, usable, tenants)
    if contiguous:
        return _cheapest_row(costs, tenants, count)
    return _cheapest_few(costs, tenants, count)


def _costs(board: Board, usable: Mask, tenants: Iterable[Tenant]) -> Floats:
    """By PE; infinity where nobody can be bumped. Who holds a PE and is no tenant stays."""
    costs = np.where(usable, 0.0, np.inf)
    known = np.zeros(len(usable), dtype=np.int64)
    for each in tenants:
        pes = list(each.pes)
        known[pes] += 1
        costs[pes] += np.inf if each.weight is None else each.weight
    costs[board.held > known] = np.inf
    costs[board.open()] = 0.0
    return costs


def _cheapest_few(costs: Floats, tenants: Iterable[Tenant], count: int) -> tuple[int, ...] | None:
    sizes = np.zeros(len(costs), dtype=np.int64)
    for each in tenants:
        sizes[list(each.pes)] = len(each.pes)
    order = np.lexsort((-sizes, costs))[:count]
    if len(order) < count or not np.isfinite(costs[order]).all():
        return None
    return tuple(sorted(order.tolist()))


def _cheapest_row(costs: Floats, tenants: Sequence[Tenant], count: int) -> tuple[int, ...] | None:
    if count > len(costs):
        return None
    barred = _over(np.isinf(costs).astype(np.float64), count)
    sums = _over(np.where(np.isinf(costs), 0.0, costs), count)
    sums[barred > 0] = np.inf
    least = float(sums.min())
    if least == np.inf:
        return None
    found = np.flatnonzero(sums <= least + _ROUNDING * max(1.0, least))
    if len(found) > 1:
        found = _of_fewest_and_largest(found, tenants, count, len(costs))
    return tuple(range(int(found[0]), int(found[0]) + count))


def _over(values: Floats, count: int) -> Floats:
    """Sums over each row of ``count`` PEs, by its first."""
    whole = np.concatenate((np.zeros(1), np.cumsum(values)))
    sums: Floats = whole[count:] - whole[:-count]
    return sums


def _of_fewest_and_largest(found: Ints, tenants: Sequence[Tenant], count: int, total: int) -> Ints:
    """Of these rows, by their first PEs, those with the fewest holders; of these those with the largest."""
    begins, ends = np.zeros((2, 2, total + 1), dtype=np.int64)
    for each in tenants:
        if each.weight:
            first, sizes = blocks(np.array(each.pes, dtype=np.int64))
            of_each = np.array([[1], [len(each.pes)]])
            begins[:, first] += of_each
            ends[:, first + sizes] += of_each
    begun, over = begins.cumsum(axis=1), ends.cumsum(axis=1)
    holders, sizes = begun[:, found + count - 1] - over[:, found]
    fewest = holders == holders.min()
    most = sizes == sizes[fewest].max()
    left: Ints = found[fewest & most]
    return left
