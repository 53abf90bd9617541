"""Inbox, which others write and the engine thread reads: messages by user, and all else in one queue:
observations, wake-ups, orders to stop. `Host`: the daemon as its parts see it."""

import contextlib
import queue
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from msgspec import Struct

from nqspy.answers.serving import Serving
from nqspy.answers.turns import Turns
from nqspy.daemon.home import Home
from nqspy.model.events import Event
from nqspy.model.people import Caller
from nqspy.rpc.limits import person
from nqspy.rpc.server import Asked


class WakeUp(Struct, frozen=True):
    """The wake-up time has come: check the time."""


class Stop(Struct, frozen=True):
    """Order to stop the daemon (a signal)."""

    mode: str = "leave"


class EngineCall(Struct, frozen=True):
    """Work from another thread for the engine's thread."""

    work: Callable[[], None]


class _Message:
    """Marks in the queue that messages wait which the reader does not know yet."""


class Inbox:
    """Many writers, one reader. `drain` returns all except messages, `next_message` returns those in turn."""

    def __init__(self, limit: int = 512) -> None:
        # Of all queues this one alone may be written by a signal's handler while its reader reads.
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._limit = limit
        self._messages: Turns[Asked] = Turns()
        self._marked = False

    def put(self, item: Any) -> None:
        """Add an item; from any thread, never blocks."""
        self._queue.put(item)

    def put_message(self, item: Asked) -> None:
        """Add a message; from any thread."""
        self._messages.add(person(item.caller), item, item.size)
        if not self._marked:
            self._marked = True
            self._queue.put(_Message())

    def backlog(self, who: int | None = None) -> tuple[int, int]:
        """Return how many messages wait for the engine, and their bytes: of one user, None: of all."""
        messages = self._messages
        return (messages.count, messages.size) if who is None else messages.of(who)

    def drain(self, timeout: float | None = None) -> list[Any]:
        """Wait for an item or message (``timeout`` s, None: for ever) and return all items there are."""
        items: list[Any] = []
        with contextlib.suppress(queue.Empty):
            items.append(self._queue.get(timeout=0.0 if self._messages.count else timeout))
            while len(items) < self._limit:
                items.append(self._queue.get_nowait())
        count = len(items)
        items = [each for each in items if not isinstance(each, _Message)]
        if len(items) < count:
            self._marked = False
        return items

    def next_message(self, but: Collection[int] = ()) -> Asked | None:
        """Return the next message, of the next user in turn except those in ``but``; None without one."""
        found = self._messages.next(but)
        return None if found is None else found[1]

    def put_back(self, messages: Sequence[Asked]) -> None:
        """Put back unanswered messages, in the order they came out: they are the first again."""
        self._messages.put_back([(person(each.caller), each, each.size) for each in messages])


class Host(Serving, Protocol):
    """The daemon as its parts see it. All but ``inbox`` and ``clock`` belongs to the engine's thread."""

    inbox: Inbox
    owner: Caller
    damage: list[str]
    """Things that were missing at the start: events, files that declare settings."""

    @property
    def home(self) -> Home:
        """Return the files of the home."""

    def note(self, event: Event) -> None:
        """Journal an event."""
