"""Patient: others start past a request that waits for room, as with ``backfill=limit``, but only until it has
waited longer than the queue's ``patience``; then it lets none of its queue pass (``backfill=none``).

The plain rule with which PSched's experiment is repeated: first fit that cannot starve a wide application.
"""

from collections.abc import Mapping
from typing import ClassVar

from nqspy.core.fallback.reserve import Block
from nqspy.model.requests import Request


class Patient(Block):
    """Policy that lets a candidate block its queue once it has waited for longer than ``patience`` (None:
    never). Its wait begins at its date in the queue."""

    words: ClassVar[Mapping[str, str]] = {"patient": "any request, until that one has waited for `patience`"}

    def blocks(self, candidate: Request) -> bool:
        """True if a candidate has waited longer than the queue's patience."""
        patience = self.queue.patience
        return patience is not None and self.gate.now - candidate.date_in_queue > patience


POLICIES = (Patient,)
