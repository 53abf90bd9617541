"""The virtual clock: a heap of (instant, order, input). Time jumps to the next instant at which something
happens."""

import heapq
from itertools import count
from typing import Any

from nqspy.model.ids import Instant


class Heap:
    """Inputs by their instant; equal instants in the order in which they were pushed."""

    def __init__(self) -> None:
        self._items: list[tuple[Instant, int, Any]] = []
        self._order = count()
        self._dropped: set[int] = set()

    def push(self, at: Instant, item: Any) -> int:
        """Adds an input for an instant; returns its number, by which it can be taken back."""
        number = next(self._order)
        heapq.heappush(self._items, (at, number, item))
        return number

    def drop(self, number: int) -> None:
        """Takes back an input that is still to come. It is only marked; its place in the heap goes when its
        turn comes, so that nothing is searched."""
        self._dropped.add(number)

    def next_at(self) -> Instant | None:
        """The next instant at which something happens."""
        while self._items and self._items[0][1] in self._dropped:
            self._dropped.discard(heapq.heappop(self._items)[1])
        return self._items[0][0] if self._items else None

    def pop(self) -> tuple[Instant, list[Any]]:
        """The next instant and everything that happens then. Raises IndexError when nothing is left."""
        at = self.next_at()
        if at is None:
            raise IndexError("nothing is left to happen")
        items = []
        while self.next_at() == at:
            items.append(heapq.heappop(self._items)[2])
        return at, items

    def entries(self) -> list[tuple[Instant, int, Any]]:
        """All that is still to come, in no particular order."""
        return [entry for entry in self._items if entry[1] not in self._dropped]
