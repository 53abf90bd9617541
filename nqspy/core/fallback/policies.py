"""The fallback policies of the setting ``backfill``: a new one is a file of this folder and a line here."""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module

from nqspy.core.classes import BY_CLASS
from nqspy.core.draft import Draft
from nqspy.core.fallback.policy import Skip
from nqspy.core.fallback.preempt import Preempt
from nqspy.core.fallback.reserve import ReserveStarts
from nqspy.core.gate.gate import Gate
from nqspy.core.order.candidates import Candidates
from nqspy.core.order.jobs import ClassCandidates, class_queues
from nqspy.model.queues import Queue
from nqspy.model.tree import set_words

FILES = (
    "reserve",  # none, limit, probable, contract
    "patient",
)
"""Files of this folder that declare ``POLICIES``."""

POLICIES: Mapping[str, type[Skip]] = {
    word: policy
    for name in FILES
    for policy in import_module(f"nqspy.core.fallback.{name}").POLICIES
    for word in policy.words
}
set_words(Queue, "backfill", {word: policy.words[word] for word, policy in POLICIES.items()})


def served(draft: Draft, gate: Gate, queues: Iterable[Queue]) -> Iterator[tuple[Candidates, Skip]]:
    """Yield each queue's candidates with its policy; first the class queues, those of a domain together."""
    for by_class in class_queues(draft.site) if draft.barred is None else ():
        jobs = ClassCandidates(draft, by_class, gate)
        yield jobs, Preempt(draft, gate, jobs)
    for queue in queues:
        if queue.order != BY_CLASS:
            kind = POLICIES[queue.backfill]
            reserves_none = queue.reserve == 0 and not gate.reserved.count(queue.name)  # former ones stay
            plain = kind is ReserveStarts and reserves_none and queue.backfill_order == "order"
            yield Candidates(draft, queue, gate), Skip(queue, gate) if plain else kind(queue, gate)
