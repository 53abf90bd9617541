"""How many requests there are: of each owner, in each queue, of each owner in each queue. Kept as they come
and go, so that a limit on them costs the same with ten as with a million."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from nqspy.model.requests import Request


@dataclass(slots=True)
class RequestCounts:
    """Requests that have not ended; who and what has none is not listed."""

    total: int = 0
    owners: dict[str, int] = field(default_factory=dict)
    queues: dict[str, int] = field(default_factory=dict)
    pairs: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, requests: Iterable[Request]) -> "RequestCounts":
        """Counted from the requests themselves."""
        made = cls()
        for request in requests:
            made.enter(request)
        return made

    def copy(self) -> "RequestCounts":
        """A copy of its own."""
        return RequestCounts(self.total, dict(self.owners), dict(self.queues), dict(self.pairs))

    def enter(self, request: Request) -> None:
        """One more, where it is now; of an array as many as have not begun."""
        self.count(request.spec.owner, request.queue, request.weight)

    def leave(self, request: Request) -> None:
        """One less, where it still is."""
        self.count(request.spec.owner, request.queue, -request.weight)

    def count(self, owner: str, queue: str, by: int = 1) -> None:
        """``by`` more of an owner in a queue."""
        self.total += by
        each: tuple[tuple[dict[Any, int], Any], ...] = (
            (self.owners, owner), (self.queues, queue), (self.pairs, (queue, owner))
        )  # fmt: skip
        for counts, key in each:
            if number := counts.get(key, 0) + by:
                counts[key] = number
            else:
                counts.pop(key, None)
