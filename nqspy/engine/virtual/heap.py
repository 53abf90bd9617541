"""The virtual clock: a heap of (instant, order, input). Time jumps to the next instant with an input."""

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from nqspy.model.ids import Instant

_FEW = 64
"""So many items that were taken back may stay in the heap, whatever else is there."""


class Heap:
    """Inputs by their instant; equal instants in the order in which they were pushed.

    ``None`` (only a look) and what is callable (it is asked at its instant) come about by themselves; all
    else is ``sure`` to happen.
    """

    def __init__(self) -> None:
        self._items: list[tuple[Instant, int, Any]] = []
        self._order = count()
        self._dropped: set[int] = set()
        self._by_themselves: set[int] = set()
        self._streams: dict[int, Iterator[tuple[Instant, Any]]] = {}
        self._put_off: Callable[[], object] | None = None

    def reserve(self) -> int:
        """A number for an input that may be pushed later, and then stands where it would by now."""
        return next(self._order)

    def push(self, at: Instant, item: Any, number: int = -1) -> int:
        """Add an input, return the number to take it back by; ``number``: one reserved for it."""
        if number < 0:
            number = next(self._order)
        if item is None or callable(item):
            self._by_themselves.add(number)
        heapq.heappush(self._items, (at, number, item))
        return number

    def put_off(self, push: Callable[[], object]) -> None:
        """Have something pushed when next the heap is asked what is to come: what changes again at the same
        instant is not pushed each time. There is one at a time; another is put in its place."""
        self._put_off = push

    def _catch_up(self) -> None:
        push, self._put_off = self._put_off, None
        if push is not None:
            push()

    def stream(self, items: Iterator[tuple[Instant, Any]]) -> None:
        """Add inputs in the order of their instants: each is asked for when the one before it has come."""
        for at, item in items:
            self._streams[self.push(at, item)] = items
            return

    def drop(self, number: int) -> None:
        """Takes back an input that is still to come. It is only marked; its place in the heap goes when its
        turn comes or when most are marked, so that nothing is searched."""
        self._dropped.add(number)
        self._by_themselves.discard(number)
        if len(self._dropped) > _FEW and 2 * len(self._dropped) > len(self._items):
            self._items = [entry for entry in self._items if entry[1] not in self._dropped]
            heapq.heapify(self._items)
            self._dropped.clear()

    @property
    def sure(self) -> int:
        """Number of inputs still to come that are sure to happen."""
        self._catch_up()
        return len(self._items) - len(self._by_themselves) - len(self._dropped)

    def next_at(self) -> Instant | None:
        """The next instant at which something happens."""
        if self._put_off is not None:
            self._catch_up()
        items, dropped = self._items, self._dropped
        while items and items[0][1] in dropped:
            dropped.remove(heapq.heappop(items)[1])
        return items[0][0] if items else None

    def pop(self) -> tuple[Instant, list[Any]]:
        """The next instant and everything that happens then. Raises IndexError when nothing is left."""
        at = self.next_at()
        if at is None:
            raise IndexError("nothing is left to happen")
        line, dropped, items = self._items, self._dropped, list[Any]()
        while line and line[0][0] == at:
            _, number, item = heapq.heappop(line)
            if number in dropped:
                dropped.remove(number)
                continue
            items.append(item)
            self._by_themselves.discard(number)
            if self._streams and (stream := self._streams.pop(number, None)) is not None:
                self.stream(stream)
        return at, items

    def entries(self) -> list[tuple[Instant, int, Any]]:
        """All that is still to come, in no particular order."""
        self._catch_up()
        return [entry for entry in self._items if entry[1] not in self._dropped]
