"""How many mails a person gets within an hour: what is more waits, and comes in one when the hour is over."""

from collections import deque
from typing import Generic, TypeVar

from nqspy.model.ids import HOUR, Instant

T = TypeVar("T")


class RateLimit(Generic[T]):
    """Counts mails by address and keeps those above the limit; ``limit`` None: everything goes at once. A
    clock that was set back forgets what lies ahead of it."""

    def __init__(self) -> None:
        self._sent: dict[str, deque[Instant]] = {}
        self._waiting: dict[str, list[T]] = {}

    def note(self, address: str, at: Instant) -> None:
        """One was sent then."""
        self._sent.setdefault(address, deque()).append(at)

    def admit(self, address: str, item: T, now: Instant, limit: int | None) -> bool:
        """Whether it may go now; else it waits, and so does everything after it."""
        if address in self._waiting or self._full(address, now, limit):
            self._waiting.setdefault(address, []).append(item)
            return False
        self.note(address, now)
        return True

    def due(self, now: Instant, limit: int | None) -> list[tuple[str, list[T]]]:
        """Who may get one again, with all that waits; that one is counted."""
        found = []
        for address in [name for name in self._waiting if not self._full(name, now, limit)]:
            found.append((address, self._waiting.pop(address)))
            self.note(address, now)
        return found

    def next(self) -> Instant | None:
        """When to ask again at the latest; None: nothing waits."""
        times = (self._sent[name][0] + HOUR for name in self._waiting if self._sent.get(name))
        return min((Instant(at) for at in times), default=None)

    def _full(self, address: str, now: Instant, limit: int | None) -> bool:
        sent = self._sent.get(address)
        if sent is None:
            return False
        kept = deque(at for at in sent if now - HOUR < at <= now)
        if kept:
            self._sent[address] = kept
        else:
            del self._sent[address]
        return limit is not None and len(kept) >= limit
