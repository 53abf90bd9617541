"""Inbox that others write and the engine's thread reads: messages by user, and all else in one queue:
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
    """Item of the inbox: the wake-up time has come, so the engine runs."""


class Stop(Struct, frozen=True):
    """Order to stop the daemon, by a signal. ``mode``: see `Daemon.stop`."""

    mode: str = "leave"


class EngineCall(Struct, frozen=True):
    """Item of the inbox: work from another thread for the engine's thread."""

    work: Callable[[], None]


class _Message:
    """Item in the queue that tells the reader of new messages."""


class Inbox:
    """Queue with many writers and one reader. `drain` returns up to ``limit`` items other than clients'
    messages; `next_message` returns those one at a time, each user in turn."""

    def __init__(self, limit: int = 512) -> None:
        # Only this kind of queue may be written by a signal's handler while its reader reads.
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._limit = limit
        self._messages: Turns[Asked] = Turns()
        self._marked = False

    def put(self, item: Any) -> None:
        """Add an item; from any thread, never blocks."""
        self._queue.put(item)

    def put_message(self, item: Asked) -> None:
        """Add a client's message behind others of its user; from any thread."""
        self._messages.add(person(item.caller), item, item.size)
        if not self._marked:
            self._marked = True
            self._queue.put(_Message())

    def backlog(self, who: int | None = None) -> tuple[int, int]:
        """Return number and bytes of messages that wait for the engine: of one user (uid), None: of all."""
        messages = self._messages
        return (messages.count, messages.size) if who is None else messages.of(who)

    def drain(self, timeout: float | None = None) -> list[Any]:
        """Wait at most ``timeout`` s (None: without limit) for an item or message; return the items."""
        items: list[Any] = []
        with contextlib.suppress(queue.Empty):
            items.append(self._queue.get(timeout=0.0 if self._messages.count else timeout))
            while len(items) < self._limit:
                items.append(self._queue.get_nowait())
        count = len(items)
        items = [item for item in items if not isinstance(item, _Message)]
        if len(items) < count:
            self._marked = False
        return items

    def next_message(self, but: Collection[int] = ()) -> Asked | None:
        """Remove and return the message of the next user in turn except the uids in ``but``; None if none."""
        found = self._messages.next(but)
        return None if found is None else found[1]

    def put_back(self, messages: Sequence[Asked]) -> None:
        """Put unanswered messages back in the order they came out: they are the first again."""
        self._messages.put_back([(person(message.caller), message, message.size) for message in messages])


class Host(Serving, Protocol):
    """The daemon as its parts see it. Only ``inbox`` and ``clock`` may be used in other threads."""

    inbox: Inbox
    owner: Caller
    damage: list[str]
    """Texts about things missing at the start: events, files that declare settings."""

    @property
    def home(self) -> Home:
        """Return the paths of the home."""

    def note(self, event: Event) -> None:
        """Add an event to the journal."""
