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
    """``since``: when it was given, real seconds; ``answer`` None: it comes through the inbox; ``overdue``:
    whoever asked has gone on without it."""

    since: float
    answer: Answer | None = None
    overdue: bool = False


class OpenOrders:
    """In the engine's thread, by identifier; 0: the loading of the exits."""

    def __init__(self) -> None:
        self._open: dict[int, OpenOrder] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def add(self, id: int, answer: Answer | None = None) -> None:
        """One was given."""
        self._open[id] = OpenOrder(time.monotonic(), answer)

    def close(self, id: int) -> None:
        """It is answered."""
        self._open.pop(id, None)

    def clear(self) -> None:
        """The worker is another one."""
        self._open.clear()

    def give_up(self, id: int) -> None:
        """Nobody waits for that answer any more."""
        self._open[id].overdue = True

    @property
    def overdue(self) -> bool:
        """True if there is one that nobody waits for any more."""
        return any(each.overdue for each in self._open.values())

    def age(self) -> float:
        """Real seconds since the oldest was given; 0: there is none."""
        now = time.monotonic()
        return now - min((each.since for each in self._open.values()), default=now)

    def answered(self) -> Iterator[messages.WorkerMessage | None]:
        """Takes out those that are answered by now; gives the answers that nobody waits for any more."""
        for id, each in list(self._open.items()):
            if each.answer is not None and each.answer.done():
                del self._open[id]
                if each.overdue:
                    yield each.answer.result()
