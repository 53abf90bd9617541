"""Orders that a worker has not answered yet."""

import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from msgspec import Struct

from nqspy.decider import messages

Answer = Future[messages.WorkerMessage | None]
"""What a worker will have said to an order; None: it has ended before."""
W = TypeVar("W", bound=messages.WorkerMessage)


def nothing() -> Answer:
    """The answer of a worker that there is not."""
    answer: Answer = Future()
    answer.set_result(None)
    return answer


def answer_within(answer: Answer, fallback: W, seconds: float) -> W:
    """The answer if it comes within so many real seconds and is of the kind of ``fallback``, else that."""
    try:
        found = answer.result(max(0.0, seconds))
    except TimeoutError:
        return fallback
    return found if isinstance(found, type(fallback)) else fallback


class PassAsked(Struct, frozen=True):
    """The pass that was asked for, as of event ``n``."""

    id: int
    n: int
    samples: messages.Samples


@dataclass(slots=True)
class OpenOrder:
    """``since``: real seconds; ``answer`` None: it comes through the inbox; ``overdue``: not awaited."""

    since: float
    answer: Answer | None = None
    overdue: bool = False


class OpenOrders(dict[int, OpenOrder]):
    """In the engine's thread, by identifier; 0: the loading of the exits."""

    def add(self, id: int, answer: Answer | None = None) -> None:
        """Note that an order was given."""
        self[id] = OpenOrder(time.monotonic(), answer)

    @property
    def overdue(self) -> bool:
        """True if the answer to any of them is not awaited any more."""
        return any(each.overdue for each in self.values())

    def age(self) -> float:
        """Real seconds since the oldest was given; 0: there is none."""
        now = time.monotonic()
        return now - min((each.since for each in self.values()), default=now)

    def answered(self) -> Iterator[messages.WorkerMessage | None]:
        """Take out those that are answered by now. Yield the answers that are not awaited any more."""
        for id, each in list(self.items()):
            if each.answer is not None and each.answer.done():
                del self[id]
                if each.overdue:
                    yield each.answer.result()
