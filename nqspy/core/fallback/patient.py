"""Patient: others start past a request that waits for room, as with ``backfill=limit``, but only until the
first of the queue has waited longer than its ``patience``; then none passes it (``backfill=none``).

With it PSched's experiment is repeated (seed 002, 7): first fit that cannot starve a wide application.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from nqspy.core.fallback.reserve import Block
from nqspy.core.order.candidates import Candidates
from nqspy.model.queues import Queue
from nqspy.model.requests import Request
from nqspy.model.tree import Declared, add_setting, get

PATIENCE = add_setting(
    Queue,
    Declared("time", None, "wait of a request after which none starts before it (patient)", name="patience"),
)


class Patient(Block):
    """Policy that lets the first candidate block its queue once it has waited longer than ``patience`` (None:
    never). Its wait begins at its date in the queue."""

    words: ClassVar[Mapping[str, str]] = {"patient": "any request, until the first has waited for `patience`"}

    def next_rows(self, candidates: Candidates) -> Iterator[int]:
        """Yield the candidates with a reservation, the first ones while they may block or have a start
        reserved, then those that may start now, unless one blocks."""
        yield from self._reserved(candidates)
        while self.blocker is None and (first := self.in_front(candidates)) is not None:
            if not self.blocks(candidates.columns.request(first)) and not self.reserves_more():
                break
            yield first
        while self.blocker is None and not self.closed and (row := candidates.startable()) is not None:
            yield row
        yield from self.past_blocker(candidates)

    def blocks(self, candidate: Request) -> bool:
        """True if a candidate has waited longer than the queue's patience."""
        patience = get(self.queue, PATIENCE)
        return patience is not None and self.gate.now - candidate.date_in_queue > patience


POLICIES = (Patient,)
