"""Quotas: requests of a user, a queue and the site that have not ended (``queued_limit``, ``loadonly``), and
bytes of scripts, environments and other text that a user has stored (``user_spool``)."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from nqspy.engine.handlers.context import StoredBlobs, Transaction
from nqspy.model.errors import BadValue, Refusal
from nqspy.model.queues import Global, Queue
from nqspy.model.requests import Request, Spec
from nqspy.model.site import RequestCounts
from nqspy.model.specs import text_size
from nqspy.model.units import GREATEST, part_of


@dataclass(slots=True)
class QueueQuota:
    """Checks the quotas for one submission, and counts what it has accepted of it so far (``coming``;
    ``blobs``: by owner). So a list fits as a whole or not at all."""

    tx: Transaction
    coming: RequestCounts = field(default_factory=RequestCounts)
    blobs: dict[str, StoredBlobs] = field(default_factory=dict)

    def add(self, owner: str, queues: Iterable[str], number: int = 1) -> None:
        """Count a request of ``owner`` (an array as ``number``, its indices) that is submitted to the first
        of these queues and ends up in the last. Raises Refusal with the limit and the present number."""
        settings = self.tx.site.settings
        self._check(settings.global_, owner, "", "global", number)
        names = dict.fromkeys(queues)
        for name in names:
            if name in settings.queues:
                self._check(settings.queues[name], owner, name, f"queue {name}", number)
        self.coming.count(owner, list(names)[-1], number)

    def enter(self, request: Request, queue: Queue) -> None:
        """Raise Refusal unless a queue's quotas let an existing request move into it."""
        self._check(queue, request.owner, queue.name, f"queue {queue.name}", request.weight)

    def _check(self, holder: Global | Queue, owner: str, queue: str, where: str, number: int) -> None:
        most, each = holder.queued_limit, holder.user_queued_limit
        load = holder.run_limit if isinstance(holder, Queue) and holder.loadonly else None
        if most is None and each is None and load is None:
            return
        have = own = 0
        for tally in (self.tx.site.tally, self.coming):
            have += tally.queues.get(queue, 0) if queue else tally.total
            own += tally.pairs.get((queue, owner), 0) if queue else tally.owners.get(owner, 0)
        there = f"in queue {queue}" if queue else "that have not ended"
        asked = f"; this array counts {number}" if number > 1 else ""
        if each is not None and own + number > each:
            raise Refusal(
                "user_queued_limit", user=owner, have=own, most=each, there=there, where=where, asked=asked
            )
        if most is not None and have + number > most:
            raise Refusal("queued_limit", have=have, most=most, there=there, where=where, asked=asked)
        if load is not None and have + number > load:
            if have >= load:
                raise Refusal("queue_full", queue=queue, most=load)
            raise Refusal("queue_too_small", queue=queue, most=load, number=number)

    def add_blobs(self, spec: Spec, bodies: Iterable[tuple[str, bytes]] = ()) -> None:
        """Count script and environment of a request (``bodies``: hash, bytes), and its own text if it is
        large. Raises Refusal with the limit and the present size."""
        owner = spec.owner
        before = self.tx.group.stored_blobs.get(owner, StoredBlobs())
        mine = self.blobs.setdefault(owner, StoredBlobs())
        for digest, body in bodies:
            if digest not in before.sizes:
                mine.add(digest, len(body))
        if text := text_size(spec):
            mine.add(f"{self.tx.site.n} {len(mine.sizes)}", text)
        wish, journal = self.tx.site.settings.server.user_spool, self.tx.journal
        most = part_of(wish, journal.capacity() or GREATEST)
        have = journal.stored_bytes(owner)
        if most is None or have + before.total + mine.total <= most:
            return
        both = before.sizes | mine.sizes
        new = sum(size for digest, size in both.items() if not journal.has_blob(owner, digest))
        if new and have + new > most:
            have, new, most = (amount >> 10 for amount in (have, new, most))
            raise Refusal("user_spool", user=owner, wish=wish, have=have, new=new, most=most)

    def accept(self) -> None:
        """Count the submission's stored bytes for later submissions of the commit group."""
        for owner, mine in self.blobs.items():
            before = self.tx.group.stored_blobs.setdefault(owner, StoredBlobs())
            for digest, size in mine.sizes.items():
                before.add(digest, size)


def check_spool(text: str) -> None:
    """Raise BadValue unless a text is a value of ``user_spool``."""
    try:
        part_of(text, 1)
    except BadValue as error:
        raise BadValue(f"user_spool: {error}") from None
