"""Holders of PEs. A PE has one slot or more (the depth of its domain); each slot has at most one holder. A
request that has released its PEs (`Pause.pes_released`) holds none. `lifecycle` keeps these data."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt

from nqspy.model.columns import Ints
from nqspy.model.domains import APPLICATION, Domain, numbers
from nqspy.model.ids import Seq

Mask = npt.NDArray[np.bool_]
_FEW = 64
_FEW_CHANGED = 6

Holders = dict[int, tuple[Seq, ...]]
"""Holders of the slots of a PE, by PE; only PEs with a holder."""


def hold(holders: Holders, seq: Seq, pes: Iterable[int]) -> None:
    """Add the request ``seq`` to the holders of these PEs."""
    for pe in pes:
        holders[pe] = (*holders.get(pe, ()), seq)


def release(holders: Holders, seq: Seq, pes: Iterable[int]) -> None:
    """Remove the request ``seq`` from the holders of these PEs."""
    for pe in pes:
        remaining = tuple([holder for holder in holders.get(pe, ()) if holder != seq])
        if remaining:
            holders[pe] = remaining
        else:
            holders.pop(pe, None)


def has_slots(holders: Holders, pes: Iterable[int], slots: int) -> bool:
    """True if each of these PEs has fewer than ``slots`` holders."""
    return all(len(holders.get(pe, ())) < slots for pe in pes)


@cache
def _all(total: int) -> Mask:
    mask = np.ones(total, dtype=bool)
    mask.flags.writeable = False
    return mask


@cache
def _mask(ranges: tuple[str, ...], total: int) -> Mask:
    mask = np.zeros(total, dtype=bool)
    mask[[pe for pe in numbers(ranges) if pe < total]] = True
    mask.flags.writeable = False
    return mask


def pes_of(domains: Mapping[str, Domain], name: str, total: int) -> Mask:
    """Return a mask over a machine's ``total`` PEs: True for those of the domain ``name`` (unknown: none)."""
    if name != APPLICATION:
        return _mask(domains[name].pes, total) if name in domains else np.zeros(total, dtype=bool)
    others = [each for each in domains.values() if each.name != APPLICATION]
    remaining = _all(total)
    for each in others:
        remaining = remaining & ~_mask(each.pes, total)
    return remaining


def blocks(pes: Ints) -> tuple[Ints, Ints]:
    """Return first PE and length of each run of adjacent numbers, as arrays; ``pes`` must be ascending."""
    starts = np.flatnonzero(np.diff(pes, prepend=-2) != 1)
    return pes[starts], np.diff(starts, append=len(pes))


class Board:
    """The PEs of a domain with their holders. `Site.board` makes it; a pass changes its own copy.

    A mask has a bool for each PE of the machine; only this class may change one. ``own``: mask of the
    domain's PEs, ``size`` their number. Nothing may start on ``offline`` ones, nor on those with a
    ``foreign`` holder, which has all slots and never gives way. ``held``: number of holders of each PE,
    without foreign ones. ``usable``: mask of the domain's PEs that may be given. ``having_room``: mask of the
    usable PEs with a free slot; ``free``: number of these PEs, however many slots each has free."""

    __slots__ = (
        "_foreign", "_made_of", "_offline", "domain", "free", "having_room", "held", "size", "usable",
    )  # fmt: skip

    def __init__(
        self, domain: Domain, own: Mask, holders: Holders, offline: Collection[int] = (),
        foreign: Collection[int] = (),
    ) -> None:  # fmt: skip
        self.domain, self.size = replace(domain), int(np.count_nonzero(own))  # settings change in place
        self.held = np.zeros(len(own), dtype=np.int64)
        self._made_of = own, offline, foreign
        self.usable, self._offline = own, [pe for pe in offline if pe < len(own) and own[pe]]
        self._foreign = [pe for pe in foreign if pe < len(own) and own[pe]]
        if barred := self._offline + self._foreign:
            self.usable = own.copy()
            self.usable[barred] = False
        if len(holders) < _FEW:  # then array by array costs more than one by one
            for pe, those in holders.items():
                if pe < len(own):
                    self.held[pe] = len(those)
        else:
            pes = np.fromiter(holders, np.int64, len(holders))
            counts = np.fromiter(map(len, holders.values()), np.int64, len(holders))
            inside = pes < len(own)
            self.held[pes[inside]] = counts[inside]
        self.having_room = self.usable & (self.held < domain.depth)
        self.free = int(np.count_nonzero(self.having_room))

    def is_of(self, domain: Domain, own: Mask, offline: Collection[int], foreign: Collection[int]) -> bool:
        """True if the board was made from this domain, these PEs, and these offline and foreign ones."""
        former, *barred = self._made_of
        same = former is own or (len(former) == len(own) and bool((former == own).all()))
        return same and barred == [offline, foreign] and self.domain == domain

    def is_like(self, other: "Board") -> bool:
        """True if on both boards each PE has as many holders, and the same PEs have a free slot."""
        alike = np.array_equal(self.held, other.held) and np.array_equal(self.having_room, other.having_room)
        return alike and self.free == other.free

    def copy(self) -> "Board":
        """Return an independent copy."""
        made = Board.__new__(Board)
        made.domain, made.size, made.free = self.domain, self.size, self.free
        made.held, made.having_room = self.held.copy(), self.having_room.copy()
        made.usable, made._offline, made._made_of = self.usable, self._offline, self._made_of
        made._foreign = self._foreign
        return made

    def without(self, pes: Collection[int]) -> "Board":
        """Return a copy on which these PEs have no free slot."""
        made, away = self.copy(), list(pes)
        made.usable = self.usable.copy()
        made.usable[away] = made.having_room[away] = False
        made.free = int(np.count_nonzero(made.having_room))
        return made

    def slots(self) -> int:
        """Return the number of usable PEs with a free slot plus the number of held slots on usable PEs."""
        return self.free + int(self.held[self.usable].sum())

    def open(self) -> Ints:
        """Return the PEs that have a free slot, in ascending order."""
        return np.flatnonzero(self.having_room)

    def lowest(self, count: int) -> tuple[int, ...]:
        """Return the ``count`` PEs with a free slot and the lowest numbers; there must be so many."""
        first = int(self.having_room.argmax())
        if count == 1:
            return (first,)
        block = self.having_room[first : first + count]
        if len(block) == count and block.all():
            return tuple(range(first, first + count))
        return tuple(self.open()[:count].tolist())

    @property
    def away(self) -> int:
        """Number of the domain's PEs that are offline."""
        return len(self._offline)

    @property
    def foreign(self) -> int:
        """Number of the domain's PEs with a foreign holder that are not offline."""
        return len(set(self._foreign) - set(self._offline))

    def lost(self) -> set[int]:
        """Return the domain's offline PEs that no request holds."""
        return {pe for pe in self._offline if not self.held[pe]}

    def overfull(self) -> bool:
        """True if a PE has more holders than the domain's depth allows."""
        return bool((self.held[self.usable] > self.domain.depth).any())

    def hold(self, pes: Iterable[int]) -> None:
        """Count one more holder on each of these PEs of the board."""
        self._change(pes, 1)

    def release(self, pes: Iterable[int]) -> None:
        """Count one holder less on each of these PEs of the board."""
        self._change(pes, -1)

    def _change(self, pes: Iterable[int], more: int) -> None:
        size = len(self.held)
        many = [pe for pe in pes if pe < size]  # the machine may have had more when they were given
        if len(many) < _FEW_CHANGED:
            for pe in many:
                self.held[pe] = now = self.held.item(pe) + more
                roomy = self.usable.item(pe) and now < self.domain.depth
                self.free += roomy - self.having_room.item(pe)
                self.having_room[pe] = roomy
            return
        self.held[many] += more
        room = self.usable[many] & (self.held[many] < self.domain.depth)
        self.free += int(np.count_nonzero(room)) - int(np.count_nonzero(self.having_room[many]))
        self.having_room[many] = room
