"""Names of things: instants, sequence numbers and request identifiers."""

from typing import NewType

Instant = NewType("Instant", int)
"""Milliseconds since the epoch, UTC: no drift, exact ties, the same live and simulated."""

Seq = int
"""Sequence number of a request, from 1 upward, never reused."""

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def full_id(seq: Seq, host: str) -> str:
    """The identifier people see, ``SEQ.HOST``."""
    return f"{seq}.{host}"


def parse_id(text: str, host: str) -> Seq | None:
    """Sequence number named by ``17``, ``17.ymp`` or ``17.ymp@ymp``; None when it names no request of
    ``host``."""
    name, _, _at = text.partition("@")
    number, dot, where = name.partition(".")
    if not (number.isascii() and number.isdigit()) or len(number) > 18 or (dot and where != host):
        return None
    return int(number)
