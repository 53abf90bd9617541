"""The door of the core: what other rooms use of its folders. Its files they import by name."""

from nqspy.core.fallback import resume
from nqspy.core.fallback.preempt import move_rank
from nqspy.core.gate.gate import NOW, Gate, never, refusal_of
from nqspy.core.gate.running import GroupLimit, RunLimit
from nqspy.core.order.places import Place, QueueOrder, standing
from nqspy.core.preemption import health, swap
from nqspy.core.timeline.lengths import guarantees_times

__all__ = [
    "NOW",
    "Gate",
    "GroupLimit",
    "Place",
    "QueueOrder",
    "RunLimit",
    "guarantees_times",
    "health",
    "move_rank",
    "never",
    "refusal_of",
    "resume",
    "standing",
    "swap",
]
