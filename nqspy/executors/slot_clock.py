"""The slots in which a job runs, where PEs have several holders in turns (`model.slots`). All shepherds of a
machine count slots by the same clock, from the same zero, so they change over at the same moment without a
message, also while the daemon is down. Standard library only."""

from bisect import bisect_right
from itertools import accumulate
from typing import Any


class SlotClock:
    """Slots of a job. A round of slots begins where the machine's monotonic clock is a multiple of the whole
    round. ``partial``: outside of its slots the job runs where a PE would be idle; else it is stopped."""

    def __init__(self, message: dict[str, Any]) -> None:
        """``message``: the job's ``slots``, the ``lengths`` of all slots (real seconds), ``partial``."""
        self._mine = frozenset(message["slots"])
        self._ends: list[float] = list(accumulate(message["lengths"]))
        self.partial: bool = message["partial"]

    def runs(self, now: float) -> bool:
        """True if the slot at this instant (monotonic seconds) is one of the job's."""
        return self._slot(now) in self._mine

    def due(self, now: float) -> float:
        """Return the seconds until the next slot begins."""
        return self._ends[self._slot(now)] - now % self._ends[-1]

    def _slot(self, now: float) -> int:
        return min(bisect_right(self._ends, now % self._ends[-1]), len(self._ends) - 1)
