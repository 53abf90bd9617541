"""Room for more: how many requests that have not ended a user, the site and a queue may have
(``queued_limit``)."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from nqspy.model.errors import Refusal
from nqspy.model.queues import Global, Queue
from nqspy.model.site import Site
from nqspy.model.tally import Tally


@dataclass(slots=True)
class Room:
    """Counts a submission's requests as they are accepted, on top of those that are there: a list fits as a
    whole or not at all."""

    site: Site
    coming: Tally = field(default_factory=Tally)

    def take(self, owner: str, queues: Iterable[str]) -> None:
        """One more request of ``owner`` that is handed to the first of these queues and lands in the last.
        Raises Refusal naming the limit and how many there are."""
        settings = self.site.settings
        self._check(settings.global_, owner, "", "global")
        names = dict.fromkeys(queues)
        for name in names:
            if name in settings.queues:
                self._check(settings.queues[name], owner, name, f"queue {name}")
        self.coming.count(owner, list(names)[-1])

    def enter(self, owner: str, queue: Queue) -> None:
        """A request of ``owner`` that is there already moves into a queue. Raises Refusal."""
        self._check(queue, owner, queue.name, f"queue {queue.name}")

    def _check(self, holder: Global | Queue, owner: str, queue: str, where: str) -> None:
        most, each = holder.queued_limit, holder.user_queued_limit
        if most is None and each is None:
            return
        have, own = (sum(counts) for counts in zip(*self._counts(owner, queue), strict=True))
        there = f"in queue {queue}" if queue else "that have not ended"
        if each is not None and own >= each:
            limit = f"a user may have {each} (set {where} queued_limit user={each})"
            raise _full(f"{owner} has {own} requests {there}; {limit}")
        if most is not None and have >= most:
            raise _full(f"there are {have} requests {there} of {most} (set {where} queued_limit={most})")

    def _counts(self, owner: str, queue: str) -> Iterable[tuple[int, int]]:
        for tally in (self.site.tally, self.coming):
            if queue:
                yield tally.queues.get(queue, 0), tally.pairs.get((queue, owner), 0)
            else:
                yield tally.total, tally.owners.get(owner, 0)


def _full(text: str) -> Refusal:
    return Refusal(f"Maximum number of jobs already in queue: {text}", "queued_limit", 198)
