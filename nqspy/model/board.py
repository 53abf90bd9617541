"""Who holds which PE: `lifecycle` keeps it, everything that asks for it asks here.

A PE has one slot or more; each slot has at most one holder. Who has let go of his PEs (`Pause.pes_released`)
holds none.
"""

from collections.abc import Collection, Iterable, Iterator

from nqspy.model.ids import Seq

Holders = dict[int, tuple[Seq, ...]]
"""Who holds a slot of a PE, by PE; PEs that nobody holds are left out."""


def take(holders: Holders, seq: Seq, pes: Iterable[int]) -> None:
    """One holder more of these PEs."""
    for pe in pes:
        holders[pe] = (*holders.get(pe, ()), seq)


def give(holders: Holders, seq: Seq, pes: Iterable[int]) -> None:
    """One holder less."""
    for pe in pes:
        left = tuple(holder for holder in holders.get(pe, ()) if holder != seq)
        if left:
            holders[pe] = left
        else:
            holders.pop(pe, None)


def has_slots(holders: Holders, pes: Iterable[int], slots: int) -> bool:
    """Whether each of these PEs has a slot that nobody holds."""
    return all(len(holders.get(pe, ())) < slots for pe in pes)


class Board:
    """The PEs ``pes``, with ``slots`` each, of which nothing may be started on those ``offline``; a copy that
    a pass may change. ``free``: how many of them have room."""

    def __init__(self, pes: range, holders: Holders, offline: Collection[int] = (), slots: int = 1) -> None:
        self.pes, self.slots = pes, slots
        self._offline = frozenset(offline)
        self._holders = dict(holders)
        full = {pe for pe, held in holders.items() if len(held) >= slots}
        self.free = len(pes) - sum(pe in pes for pe in full | self._offline)

    def _has_room(self, pe: int) -> bool:
        return pe in self.pes and pe not in self._offline and len(self._holders.get(pe, ())) < self.slots

    def open(self) -> Iterator[int]:
        """The PEs that have room, in ascending order."""
        return filter(self._has_room, self.pes)

    def gone(self) -> set[int]:
        """PEs offline that nobody holds: there is nothing to wait for."""
        return {pe for pe in self._offline if pe not in self._holders}

    def take(self, seq: Seq, pes: Iterable[int]) -> None:
        """One holder more of these PEs."""
        for pe in pes:
            had = self._has_room(pe)
            take(self._holders, seq, (pe,))
            self.free -= had and not self._has_room(pe)

    def give(self, seq: Seq, pes: Iterable[int]) -> None:
        """One holder less."""
        for pe in pes:
            had = self._has_room(pe)
            give(self._holders, seq, (pe,))
            self.free += self._has_room(pe) and not had
