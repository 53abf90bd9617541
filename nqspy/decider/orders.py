"""Orders that a worker has not answered yet."""

import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from msgspec import Struct

from nqspy.decider import messages

Answer = Future[messages.WorkerMessage | None]
"""Future answer to an order; its result is None if the worker ended first."""
W = TypeVar("W", bound=messages.WorkerMessage)


def nothing() -> Answer:
    """Return a future answer that is None already, because there is no worker."""
    answer: Answer = Future()
    answer.set_result(None)
    return answer


def answer_within(answer: Answer, fallback: W, seconds: float) -> W:
    """Return an answer that comes within so many real seconds and has ``fallback``'s type, else ``fallback``;
    an order that is still queued then is not sent."""
    try:
        found = answer.result(max(0.0, seconds))
    except TimeoutError:
        answer.cancel()
        return fallback
    return found if isinstance(found, type(fallback)) else fallback


class PassAsked(Struct, frozen=True):
    """An ordered pass; ``n``: number of the last event before it; ``samples``: use of running attempts."""

    id: int
    n: int
    samples: messages.Samples


@dataclass(slots=True)
class OpenOrder:
    """An order that the worker has not answered. ``since``: when it was given (real s, monotonic); ``answer``
    None: it comes through the inbox; ``overdue``: True if no caller waits for it any more."""

    since: float
    answer: Answer | None = None
    overdue: bool = False


class OpenOrders(dict[int, OpenOrder]):
    """Open orders by identifier, in the engine's thread; 0 is the loading of the exits."""

    def add(self, id: int, answer: Answer | None = None) -> None:
        """Record that an order was given now; ``answer``: its future, None: it comes through the inbox."""
        self[id] = OpenOrder(time.monotonic(), answer)

    @property
    def overdue(self) -> bool:
        """True if an answer is overdue: no caller waits for it any more."""
        return any(each.overdue for each in self.values())

    def age(self) -> float:
        """Return the real seconds since the oldest open order was given; 0 if none is open."""
        now = time.monotonic()
        return now - min((each.since for each in self.values()), default=now)

    def answered(self) -> Iterator[messages.WorkerMessage | None]:
        """Remove the answered orders. Yield those answers for which no caller waits any more."""
        for id, each in list(self.items()):
            if each.answer is not None and each.answer.done():
                del self[id]
                if each.overdue:
                    yield each.answer.result()
