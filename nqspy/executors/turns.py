"""The slots in which a job runs, where PEs have several holders in turns (`model.slots`). All shepherds of a
machine count slots by the same clock, from the same zero, so they change over at the same moment without a
message, also while the daemon is down. Standard library only."""

from typing import Any


class Turns:
    """Slots of a job: it runs in the ``slots`` of ``count`` that are ``seconds`` long each, real time. Slot 0
    begins where the machine's monotonic clock is a multiple of the whole round."""

    def __init__(self, message: dict[str, Any]) -> None:
        self._mine = frozenset(message["slots"])
        self._count: int = message["count"]
        self._seconds: float = message["seconds"]

    def runs(self, now: float) -> bool:
        """True if the slot at this instant (monotonic seconds) is one of the job's."""
        return int(now / self._seconds) % self._count in self._mine

    def due(self, now: float) -> float:
        """Return the seconds until the next slot begins."""
        return (int(now / self._seconds) + 1) * self._seconds - now
