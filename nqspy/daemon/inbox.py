"""The one queue that others write and the engine thread reads: messages, observations, the bell, wishes to
stop."""

import queue
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Ring:
    """The bell has rung: look at the time."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Somebody wants the daemon to stop (a signal)."""

    mode: str = "leave"


@dataclass(frozen=True, slots=True)
class EngineCall:
    """Something another thread has to have done in the engine's."""

    work: Callable[[], None]


class Inbox:
    """Many writers, one reader; a drain takes everything that has arrived as one group."""

    def __init__(self, limit: int = 512) -> None:
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._limit = limit
        # Bytes of messages: each number is written by one thread only, the counter's and the engine's.
        self._came = 0
        self._taken = 0

    def put(self, item: Any) -> None:
        """Adds an item; from any thread, never blocks."""
        self._queue.put(item)

    def put_message(self, item: Any) -> None:
        """Adds a message, which has a ``size``; from the counter's thread."""
        self._came += item.size
        self._queue.put(item)

    def backlog(self) -> tuple[int, int]:
        """How much waits for the engine: items, and bytes of messages."""
        return self._queue.qsize(), self._came - self._taken

    def drain(self, timeout: float | None = None) -> list[Any]:
        """Waits for the first item (``timeout`` s, None: as long as it takes) and returns all that are
        there."""
        try:
            items = [self._queue.get(timeout=timeout)]
        except queue.Empty:
            return []
        while len(items) < self._limit:
            try:
                items.append(self._queue.get_nowait())
            except queue.Empty:
                break
        self._taken += sum(getattr(item, "size", 0) for item in items)
        return items
