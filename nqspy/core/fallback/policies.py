"""The fallback policies of the setting ``backfill``: a new one is a file of this folder and a line here."""

from collections.abc import Mapping
from importlib import import_module

from nqspy.core.fallback.policy import Skip
from nqspy.core.fallback.reserve import ReserveStarts
from nqspy.core.gate.gate import Gate
from nqspy.model.queues import Queue
from nqspy.model.tree import set_words

FILES = (
    "block",
    "reserve",
)
"""Files of this folder that declare a ``POLICY``."""

_LISTED: tuple[type[Skip], ...] = tuple(import_module(f"nqspy.core.fallback.{name}").POLICY for name in FILES)
POLICIES: Mapping[str, type[Skip]] = {word: policy for policy in _LISTED for word in policy.words}
set_words(Queue, "backfill", {word: policy.words[word] for word, policy in POLICIES.items()})


def policy_of(queue: Queue, gate: Gate) -> Skip:
    """Return the policy of a queue for one pass."""
    kind = POLICIES[queue.backfill]
    plain = kind is ReserveStarts and queue.reserve == 0 and queue.backfill_order == "order"
    return Skip(queue, gate) if plain else kind(queue, gate)
