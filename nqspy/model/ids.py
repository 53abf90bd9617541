"""Names of things: instants, sequence numbers and request identifiers."""

from dataclasses import dataclass
from typing import NewType

Instant = NewType("Instant", int)
"""Milliseconds since the epoch, UTC: no drift, exact ties, the same live and simulated."""

Seq = int
"""Sequence number of a request, from 1 upward, never reused."""

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


@dataclass(frozen=True, slots=True, order=True)
class JobRef:
    """Identity of whatever can hold PEs: a request, or one element of an array (``index``). People see
    ``17.ymp`` and ``17[3].ymp``."""

    seq: Seq
    index: int | None = None

    def full(self, host: str) -> str:
        """The identifier people see."""
        element = "" if self.index is None else f"[{self.index}]"
        return f"{self.seq}{element}.{host}"

    @classmethod
    def parse(cls, text: str, host: str) -> "JobRef | None":
        """What ``17``, ``17.ymp``, ``17[3].ymp`` or ``17.ymp@ymp`` names; None when it names nothing of
        ``host``."""
        name, _, _at = text.partition("@")
        number, dot, where = name.partition(".")
        whole, bracket, element = number.partition("[")
        if not _is_number(whole) or (dot and where != host):
            return None
        if not bracket:
            return cls(int(whole))
        index = element.removesuffix("]")
        return cls(int(whole), int(index)) if element != index and _is_number(index) else None

    @property
    def request(self) -> Seq | None:
        """The request it is; None for an element of an array."""
        return self.seq if self.index is None else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def request_named(text: str, host: str) -> Seq | None:
    """The request that an identifier names, None when it names none of ``host``."""
    found = JobRef.parse(text, host)
    return found.request if found is not None else None
