"""Virtual clock: a heap of inputs by instant. Time jumps from one instant with an input to the next."""

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from nqspy.model.ids import Instant

_FEW = 64
"""Dropped items up to this number may always stay in the heap."""


class Heap:
    """Inputs by instant; equal instants in the order in which they were pushed.

    ``None`` (only a wake-up) and callables (called at their instant) happen by themselves; all else is
    ``sure`` to happen.
    """

    def __init__(self) -> None:
        self._items: list[tuple[Instant, int, Any]] = []
        self._order = count()
        self._dropped: set[int] = set()
        self._by_themselves: set[int] = set()
        self._streams: dict[int, Iterator[tuple[Instant, Any]]] = {}
        self._put_off: Callable[[], object] | None = None

    def reserve(self) -> int:
        """Return a number for an input that may be pushed later, with its place in the order taken now."""
        return next(self._order)

    def push(self, at: Instant, item: Any, number: int = -1) -> int:
        """Add an input; return the number by which `drop` finds it. ``number``: one got from `reserve`."""
        if number < 0:
            number = next(self._order)
        if item is None or callable(item):
            self._by_themselves.add(number)
        heapq.heappush(self._items, (at, number, item))
        return number

    def put_off(self, push: Callable[[], object]) -> None:
        """Call ``push`` once before the heap is next read, so that inputs that change again at the same
        instant are pushed once. It replaces a function that waits to be called."""
        self._put_off = push

    def _catch_up(self) -> None:
        push, self._put_off = self._put_off, None
        if push is not None:
            push()

    def stream(self, items: Iterator[tuple[Instant, Any]]) -> None:
        """Add inputs in the order of their instants; each is read when the one before it has come."""
        for at, item in items:
            self._streams[self.push(at, item)] = items
            return

    def drop(self, number: int) -> None:
        """Drop an input that is still to come, by its number. It is only marked, and removed in its turn or
        when most are marked, so nothing is searched."""
        self._dropped.add(number)
        self._by_themselves.discard(number)
        if len(self._dropped) > _FEW and 2 * len(self._dropped) > len(self._items):
            self._items = [entry for entry in self._items if entry[1] not in self._dropped]
            heapq.heapify(self._items)
            self._dropped.clear()

    @property
    def sure(self) -> int:
        """Number of inputs to come that are sure to happen."""
        self._catch_up()
        return len(self._items) - len(self._by_themselves) - len(self._dropped)

    def next_at(self) -> Instant | None:
        """Return the next instant at which something happens; None: nothing does."""
        if self._put_off is not None:
            self._catch_up()
        items, dropped = self._items, self._dropped
        while items and items[0][1] in dropped:
            dropped.remove(heapq.heappop(items)[1])
        return items[0][0] if items else None

    def pop(self) -> tuple[Instant, list[Any]]:
        """Return the next instant and all its inputs. Raises IndexError if nothing is left."""
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
        """Return all inputs to come, each as instant, number and input, in no particular order."""
        self._catch_up()
        return [entry for entry in self._items if entry[1] not in self._dropped]
