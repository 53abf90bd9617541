"""A fallback policy: what happens when a candidate does not fit, and which candidate is examined next.

A policy serves one queue for one pass. It never examines a candidate itself: `next_rows` names the next row,
and each candidate that did not start is reported to `blocked`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from nqspy.core.draft import Choice
from nqspy.core.gate.gate import Gate, Which
from nqspy.core.order.candidates import Candidates
from nqspy.core.variants.sizes import variants_of
from nqspy.model.ids import Instant
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reason
from nqspy.model.requests import Request


class Skip:
    """Policy without reservations: others start past a candidate that does not fit, and candidates that the
    gate refuses are not examined.

    ``words``: its words in the settings, each with the requests that may start past one that waits.
    ``blocker``: the candidate that waits for room and lets no other of its queue pass. ``wake_at``: when the
    policy wants another pass. ``explained``: `explain` sets the reasons of its candidates, else the policy
    does.
    """

    words: ClassVar[Mapping[str, str]] = {}
    explained: ClassVar[bool] = True

    def __init__(self, queue: Queue, gate: Gate) -> None:
        self.queue, self.gate = queue, gate
        self.blocker: Request | None = None
        self.wake_at: Instant | None = None

    def next_rows(self, candidates: Candidates) -> Iterator[int]:
        """Yield the next row to examine, each chosen after the row before it was examined."""
        while not self.closed and (row := candidates.startable()) is not None:
            yield row

    def all_rows(self, candidates: Candidates, most: int) -> Iterator[int]:
        """Yield all rows in order, to be offered to exits; ``most``: number of rows that are needed."""
        return candidates.in_turn(most)

    def any_startable(self, candidates: Candidates) -> bool:
        """Return True if the gate lets some row start now that was not examined yet."""
        return candidates.any_startable()

    def not_limited(self, candidates: Candidates) -> int | None:
        """Return the first row, not examined yet, that no limit holds; None: limits hold all of them."""
        return candidates.best(self.gate.mask(self.queue.name, candidates.columns, Which.LIMITS), anew=False)

    @property
    def closed(self) -> bool:
        """True while a run limit holds the whole queue."""
        return self.gate.closed(self.queue.name) is not None

    def blocked(self, candidates: Candidates, candidate: Request, reason: Reason) -> None:
        """Handle a candidate that did not start: a reservation that it has is kept."""
        if self.gate.is_reserved(candidate):
            self.gate.reserve(candidate)

    def in_front(self, candidates: Candidates) -> int | None:
        """Return the first row for which a start may be reserved; None: no row (here always)."""
        return None

    def past_blocker(self, candidates: Candidates) -> Iterator[int]:
        """Yield the rows that may start past the blocker; here there are none."""
        yield from ()

    def again(self, candidates: Candidates) -> Iterator[int]:
        """Yield rows to examine once more after another row was examined; here there are none."""
        yield from ()

    def reopen(self, eligible: list[Request]) -> Sequence[Request] | None:
        """Return the candidates to examine again after changes in the pass, out of ``eligible`` (those that
        were examined and could start by now). None: the queue stays closed."""
        return eligible

    def reserves_more(self) -> bool:
        """Return True if one more candidate that does not fit would have a start reserved."""
        return False

    def may_reserve(self, candidates: Candidates) -> bool:
        """Return True if a start would be reserved for a remaining candidate that does not fit."""
        return self.reserves_more() and self.in_front(candidates) is not None

    # ------------------------------------------------------------ the gate's answers

    def variants(self, candidate: Request) -> Sequence[Request]:
        """Return the variants in which a candidate may start, such as its sizes, the best first."""
        return variants_of(self.gate.site, candidate)

    def refuses(self, ask: Request, forced: bool) -> Reason | None:
        """Return why a variant of a candidate may not start now; None: it may."""
        return self.gate.refuses(ask, forced)

    def place(self, ask: Request) -> tuple[int, ...]:
        """Return the PEs for a variant of a candidate that starts."""
        return self.gate.room.pick(ask)

    # ------------------------------------------------------------ what became of it

    def started(self, choice: Choice) -> None:
        """Handle the start of a candidate; here there is nothing to do."""

    def resume(self, candidate: Request, pes: tuple[int, ...]) -> None:
        """Propose that a suspended candidate goes on; here there is none."""

    def finish(self) -> None:
        """Handle the end of the pass, when no row is left to examine; here there is nothing to do."""
