"""The block of PEs that is cleared for a *bumper*: a job that has waited longer than its class allows.

The seed's cost "considers the number of nodes occupied by the potential bumpees, their relative priority,
and how much time remains in their do-not-disturb time" (seed 000, "Job Scheduling Algorithm"). Ours, of a
block B for a bumper of priority p,

    cost(B) = sum over the holders of PEs of B of n (1 + q) / (1 + p) (1 + t / 1 min)

n: all PEs of a holder, since it leaves all of them; q: the priority of its class; t: the rest of its
do-not-disturb time. Of blocks with the same cost the one with the fewest holders is cleared, since large jobs
are bumped by preference, then the one nearest to PE 0. Where PEs need not be in a row, the PEs of the holders
with the least cost for each PE are cleared, of equal ones those of the largest holder.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nqspy.core.classes import ClassTable, may_bump, undisturbed_until
from nqspy.model.board import Board, Mask, blocks
from nqspy.model.columns import Floats, Ints
from nqspy.model.ids import MINUTE, Instant
from nqspy.model.requests import Request

_ROUNDING = 1e-9


class Tenant(Struct, frozen=True):
    """A holder of PEs with its cost for a bumper. ``pes``: in ascending order. ``weight``: cost of each PE;
    None: it must not be bumped. ``gives``: PEs that become free under the limit of the bumper's class."""

    pes: tuple[int, ...]
    weight: float | None
    gives: int = 0


def tenant(
    holder: Request, bumper: Request, table: ClassTable, now: Instant, gives: int, leaves: bool
) -> Tenant:
    """Return a holder of PEs with its cost for a bumper. ``gives``: as in `Tenant`; ``leaves``: the holder
    leaves already, at no cost."""
    pes, kind, own = tuple(sorted(holder.pes)), table.of(holder), table.of(bumper)
    if leaves:
        return Tenant(pes, 0.0, gives)
    until = undisturbed_until(holder, kind)
    if until is None or not may_bump(own, kind):
        return Tenant(pes, None)
    weight = (1 + kind.priority) / (1 + own.priority) * (1 + max(0, until - now) / MINUTE)
    return Tenant(pes, weight, gives)


def can_be_cleared(board: Board, tenants: Sequence[Tenant], pes: Iterable[int]) -> bool:
    """True if each of these PEs has a free slot, or all its tenants may be bumped."""
    leave = {pe for each in tenants if each.weight is not None for pe in each.pes}
    stay = {pe for each in tenants if each.weight is None for pe in each.pes}
    usable = set(np.flatnonzero(board.usable).tolist())
    return (set(board.open().tolist()) | ((leave - stay) & usable)).issuperset(pes)


def on_block(board: Board, holders: Iterable[Request], pes: Iterable[int]) -> list[Request]:
    """Return the holders of those of these PEs that have no free slot: they must leave first."""
    crowded = set(pes) - set(board.open().tolist())
    return [holder for holder in holders if not crowded.isdisjoint(holder.pes)]


def cheapest(
    board: Board, tenants: Sequence[Tenant], count: int, in_a_row: bool, short: int = 0
) -> tuple[int, ...] | None:
    """Return the ``count`` PEs (``in_a_row``: without a gap) that are cheapest to clear for a bumper; None:
    they cannot be cleared. A PE with a free slot needs no clearing, an offline PE is not used. ``short``: PEs
    that the leaving tenants must free under the limit of the bumper's class."""
    there = range(len(board.held))  # the machine may have lost PEs that a tenant holds
    tenants = [replace(each, pes=tuple(pe for pe in each.pes if pe in there)) for each in tenants]
    barred, free = ~board.usable, board.having_room
    known = np.zeros(len(board.held), dtype=np.int64)
    for each in tenants:
        pes = list(each.pes)
        known[pes] += 1
        if each.weight is None:
            barred[pes] = True
    barred |= board.held > known  # a holder that is no tenant stays
    barred[free] = False
    if in_a_row:
        return _cheapest_row(barred, free, tenants, count, short)
    return _cheapest_few(barred, free, tenants, count, short)


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
    # So that the class has room the cheapest tenants leave, each by one PE.
    chosen: list[int] = []
    for each in sorted(tenants, key=lambda each: each.weight or 0.0):
        bumped = [pe for pe in each.pes if 0 < costs[pe] < np.inf]
        if bumped and short > 0 < each.gives:
            short -= each.gives
            chosen.append(bumped[0])
    costs[chosen] = -1.0
    order = np.lexsort((-sizes, costs))[:count]
    if len(order) < count or not np.isfinite(costs[order]).all():
        return None
    return tuple(sorted(order.tolist()))


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
    """Return three figures for each row of ``count`` PEs, by its first PE: its cost, the tenants that hold
    some of it, and the PEs that they free under the class limit."""
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
