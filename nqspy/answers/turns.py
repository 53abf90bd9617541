"""Turns: users are served in turn, entries of one user in order: no user waits for all of another."""

import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")

PART = 0.03
"""Real seconds that each part of the engine's turn may take, except to finish what it has begun."""

Enough = Callable[[], bool]
"""Asked after each thing done: whether the rest has to wait for the next turn."""


def never() -> bool:
    """All is done in one turn."""
    return False


def after(seconds: float, clock: Callable[[], float] = time.monotonic) -> Enough:
    """Enough is what took so many real seconds."""
    end = clock() + seconds
    return lambda: clock() >= end


class Turns(Generic[T]):
    """Things that wait, by user. From any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[int, deque[tuple[T, int]]] = {}  # whose turn is next comes first
        self._sizes: dict[int, int] = {}
        self.count = self.size = 0

    def add(self, who: int, thing: T, size: int = 0) -> None:
        """Add a thing of a user; users that have something waiting already come before."""
        with self._lock:
            self._waiting.setdefault(who, deque()).append((thing, size))
            self._add(who, 1, size)

    def _add(self, who: int, count: int, size: int) -> None:
        self.count += count
        self.size += size
        self._sizes[who] = self._sizes.get(who, 0) + size

    def next(self, but: Collection[int] = ()) -> tuple[int, T, int] | None:
        """The next thing and its size, of the user in turn, but none of those; None: nothing waits."""
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
        """Put back what was taken and not done, in the order in which it was taken: it is first again."""
        with self._lock:
            for who, thing, size in reversed(things):
                waiting = self._waiting.pop(who, deque())
                waiting.appendleft((thing, size))
                self._waiting = {who: waiting, **self._waiting}
                self._add(who, 1, size)

    def of(self, who: int) -> tuple[int, int]:
        """Number of things of one user that wait, and their sizes."""
        with self._lock:
            return len(self._waiting.get(who, ())), self._sizes.get(who, 0)
