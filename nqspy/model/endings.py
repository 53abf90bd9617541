"""Ends of requests, and the statuses shown for them: all code that must know if an end was good asks here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

FAILED, DELETED = 1, 3
"""Exit status of a bad end whose script left none or 0; DELETED as of PBS's ``qsub -W block=true``."""
SIGNALLED = 256
"""Added by PBS to the number of the signal that ended a job."""
_PBS = {
    "not_started": -1, "lost": -4, "memory_limit": -27, "cpu_limit": -28, "wall_limit": -29, "contract": -29,
    "process_limit": -101, "file_limit": -102, "deleted": -103,
}  # fmt: skip
"""``Exit_status`` by reason of ends not by the script: OpenPBS's JOB_EXEC numbers, and three of our own."""


class End(NamedTuple):
    """End of a request: reason in one word, and exit status or signal of its script."""

    reason: str
    status: int | None = None
    signal: int | None = None

    @classmethod
    def of(cls, event: Any) -> End:
        """Return the end in an `Ended` event; for others (`Deleted`, None): deleted before the start."""
        reason = getattr(event, "end_reason", None)
        return cls("deleted") if reason is None else cls(reason, event.exit_status, event.exit_signal)

    @classmethod
    def of_object(cls, row: Mapping[str, Any]) -> End:
        """Return the end in an object of ``qstat --json`` for a request that has ended."""
        return cls(row["end_reason"], row["exit_status"], row["exit_signal"])

    @property
    def ok(self) -> bool:
        """True if the script ended by itself with exit status 0."""
        return self.reason == "exit" and self.status == 0 and self.signal is None

    @property
    def code(self) -> int:
        """Exit status of a command that waits for this end: 0 only if the end was good."""
        if self.ok:
            return 0
        return self.status or (128 + self.signal if self.signal else self._own)

    @property
    def shown_status(self) -> int | None:
        """``exit_status`` for people and programs: the script's, or None; but never 0 for a bad end."""
        return self._own if self.status == 0 and not self.ok else self.status

    @property
    def pbs_status(self) -> int:
        """``Exit_status``: the script's, 256 and the signal, or negative if something else ended the job."""
        if self.ok:
            return 0
        code = SIGNALLED + self.signal if self.signal is not None else self.status
        return code if code and self.reason in ("exit", "signal", "deleted") else _PBS.get(self.reason, -1)

    @property
    def words(self) -> str:
        """End in words, ``exit, exit status 3``: reason, and status (not 0 of a bad end) or signal."""
        parts = [self.reason]
        if self.status is not None and (self.status or self.ok):
            parts.append(f"exit status {self.status}")
        if self.signal is not None:
            parts.append(f"signal {self.signal}")
        return ", ".join(parts)

    @property
    def _own(self) -> int:
        return DELETED if self.reason == "deleted" else FAILED
