"""Turns: users are served in turn, entries of one user in order. So no user waits for all of another's."""

import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")

PART = 0.03
"""Real seconds that each part of the engine's turn may take; what has begun is finished."""

Enough = Callable[[], bool]
"""Function called after each entry: True if the rest must wait for the next turn."""


def never() -> bool:
    """Return False: everything is done in one turn."""
    return False


def after(seconds: float, clock: Callable[[], float] = time.monotonic) -> Enough:
    """Return an `Enough` that becomes true after so many real seconds."""
    end = clock() + seconds
    return lambda: clock() >= end


class Turns(Generic[T]):
    """Waiting entries by user, each with a size that is summed up. From any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[int, deque[tuple[T, int]]] = {}  # the user in turn comes first
        self._sizes: dict[int, int] = {}
        self.count = self.size = 0

    def add(self, who: int, thing: T, size: int = 0) -> None:
        """Add an entry of a user, behind the user's others."""
        with self._lock:
            self._waiting.setdefault(who, deque()).append((thing, size))
            self._add(who, 1, size)

    def _add(self, who: int, count: int, size: int) -> None:
        self.count += count
        self.size += size
        self._sizes[who] = self._sizes.get(who, 0) + size

    def next(self, but: Collection[int] = ()) -> tuple[int, T, int] | None:
        """Remove and return an entry as user, entry, size: the first of the next user outside ``but``; None
        if there is none."""
        with self._lock:
            who = next((each for each in self._waiting if each not in but), None)
            if who is None:
                return None
            waiting = self._waiting.pop(who)
            thing, size = waiting.popleft()
            self._add(who, -1, -size)
            if waiting:
                self._waiting[who] = waiting
            else:
                del self._sizes[who]
            return who, thing, size

    def put_back(self, things: Sequence[tuple[int, T, int]]) -> None:
        """Put entries back that were not handled, in the order they came out: they are first again."""
        with self._lock:
            for who, thing, size in reversed(things):
                waiting = self._waiting.pop(who, deque())
                waiting.appendleft((thing, size))
                self._waiting = {who: waiting, **self._waiting}
                self._add(who, 1, size)

    def of(self, who: int) -> tuple[int, int]:
        """Return the number of a user's waiting entries, and their total size."""
        with self._lock:
            return len(self._waiting.get(who, ())), self._sizes.get(who, 0)
