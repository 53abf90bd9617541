"""The fallback policies, by the words of ``backfill=``."""

from nqspy.core.fallback.block import Block
from nqspy.core.fallback.policy import Skip
from nqspy.core.fallback.reserve import Reserve
from nqspy.core.gate.gate import Gate
from nqspy.model.queues import Queue

POLICIES: dict[str, type[Skip]] = {"none": Block, "limit": Reserve, "probable": Reserve, "contract": Reserve}


def policy_of(queue: Queue, gate: Gate) -> Skip:
    """Return the policy of a queue for one pass."""
    kind = POLICIES[queue.backfill]
    plain = kind is Reserve and queue.reserve == 0 and queue.backfill_order == "order"
    return Skip(queue, gate) if plain else kind(queue, gate)
