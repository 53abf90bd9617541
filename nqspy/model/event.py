"""What all events have in common."""

from typing import ClassVar

from msgspec import Struct

from nqspy.model.ids import Instant


class Event(Struct, frozen=True, omit_defaults=True):
    """Base of all events. ``kind``: its name in the journal; ``version`` rises with a field's meaning. The
    journal leaves out fields that have their defaults, so a default never changes."""

    kind: ClassVar[str] = ""
    version: ClassVar[int] = 1


class Recorded(Struct, frozen=True):
    """An event with its number (from 1, without gaps) and the instant at which it happened."""

    n: int
    at: Instant
    event: Event
