"""Why a request does not start now: typed, with the refuser's name; *later*, *never* and *broken* are
different codes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from nqspy.model.ids import Instant, Seq

HOPELESS = "can never come about"
"""Stands in the reason of a request whose prerequisite ended otherwise than it was to."""
DECAY = "past use must decay"
"""Stands in the reason of a request whose group has used up its cap."""
CLOSED = "lets nothing run"
"""Stands in the reason of a request that waits under a limit of 0."""
TOO_LARGE = "even when nothing runs"
"""Stands in the reason of a request that asks for more than a limit ever leaves."""
CAPPED = "it cannot start under this limit"
"""Stands in the reason of a request that asks for more PEs than its group's cap has."""


class ReasonCode(StrEnum):
    """What kind of thing keeps a request back."""

    LIMIT = "LIMIT"
    NO_PES = "NO_PES"
    DEPENDENCY = "DEPENDENCY"
    EXIT = "EXIT"
    LINE_CLOSED = "LINE_CLOSED"
    SHIFT = "SHIFT"
    HELD = "HELD"
    DATE = "DATE"
    RESERVED = "RESERVED"
    STOPPED = "STOPPED"
    LATER = "LATER"
    NEVER = "NEVER"
    RESOURCE = "RESOURCE"
    MEMORY = "MEMORY"
    SUSPENDED = "SUSPENDED"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason: its code, who says so (a queue, ``complex x``, an exit's name, ...), a sentence, and
    until when if known."""

    code: ReasonCode
    who: str
    text: str
    until: Instant | None = None

    def matches(self, **fields: object) -> bool:
        """Whether every field named has the value given (for tests: irrelevant fields do not break them)."""
        return all(getattr(self, name) == value for name, value in fields.items())


ALIKE = ("owner", "group", "name", "queue", "cpu", "memory", "wall", "pes")
"""Fields of a request that a refusal may name to say how far it reaches: to all of the same queue that are
alike in them. ``name``: the same name, given by the owner in both cases or in neither."""


@dataclass(frozen=True, slots=True)
class Reach:
    """A reason that holds for all waiting requests of a queue whose ``fields`` have these values."""

    queue: str
    fields: tuple[tuple[str, str | int | None], ...]
    reason: Reason


@dataclass(frozen=True, slots=True)
class Reasons:
    """Reasons of a whole pass without a loop over all: ``own`` of the requests that were looked at,
    ``closing`` of the queues, and ``reach``: those that hold for many alike (`core.alike`).
    """

    own: Mapping[Seq, Reason] = field(default_factory=dict)
    closing: Mapping[str, Reason] = field(default_factory=dict)
    reach: tuple[Reach, ...] = ()

    def of(self, seq: Seq, queue: str) -> Reason | None:
        """The reason of one queued request: its own, else its queue's."""
        return self.own.get(seq) or self.closing.get(queue)
