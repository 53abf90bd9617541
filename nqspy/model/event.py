"""What all events have in common."""

from dataclasses import dataclass
from typing import ClassVar

from nqspy.model.ids import Instant


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events. ``kind``: its name in the journal; ``version`` rises with a field's meaning."""

    kind: ClassVar[str] = ""
    version: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its number (from 1, without gaps) and the instant at which it happened."""

    n: int
    at: Instant
    event: Event
