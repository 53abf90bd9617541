"""The event that tells of one that has left its PEs (`core.preemption.bumper`)."""

from dataclasses import dataclass
from typing import ClassVar

from nqspy.model.event import Event
from nqspy.model.ids import Seq


@dataclass(frozen=True, slots=True)
class MovedOut(Event):
    """A suspended attempt has left its PEs: others may have them. ``took``: how long that took, ms."""

    kind: ClassVar[str] = "moved_out"
    seq: Seq
    attempt: int
    took: int = 0
