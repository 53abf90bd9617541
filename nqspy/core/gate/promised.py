"""Who has a promised start: as a pass begins, by queue and by time, gone through once and known for as long
as nothing but submissions happens (`Site.memos`); and by now, with what the pass has changed."""

from bisect import bisect_left, bisect_right
from collections import defaultdict

import numpy as np

from nqspy.core.cached import cached_property
from nqspy.core.timeline.layout import time_of, turn_of
from nqspy.core.timeline.lengths import MOMENT
from nqspy.core.timeline.profile import FOREVER
from nqspy.model.columns import Ints
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Request
from nqspy.model.reservation import Reservation
from nqspy.model.site import Site


class QueuePromises:
    """Those of one queue. ``rows``: theirs, in the queue's columns; ``widest``: PEs that one asks for at
    most."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.widest = 0

    def add(self, request: Request) -> None:
        """One more has a promise."""
        self.requests.append(request)
        self.widest = max(self.widest, request.spec.ask.pes)

    @cached_property
    def rows(self) -> list[int]:
        """Where they stand in the queue's columns."""
        return [request.slot for request in self.requests if request.slot >= 0]

    @cached_property
    def places(self) -> Ints:
        """The same as an array."""
        return np.array(self.rows, dtype=np.int64)


class EarlierPromises:
    """``of``: the promises by queue; ``last_turn``: the last that was given (`Reservation.turn`)."""

    def __init__(self, site: Site) -> None:
        requests = [site.requests[seq] for seq in site.reserved]
        self.of: defaultdict[str, QueuePromises] = defaultdict(QueuePromises)
        for request in requests:
            self.of[request.queue].add(request)
        self.last_turn = max((turn_of(request)[0] for request in requests), default=0)
        timed = sorted((at, n) for n, request in enumerate(requests) if (at := time_of(request)) < FOREVER)
        self._times = [at for at, _ in timed]
        self._by_time = [requests[n] for _, n in timed]

    def due(self, now: Instant) -> list[Request]:
        """Those whose promised time has come."""
        return self._by_time[: bisect_right(self._times, now)]

    def about(self, now: Instant) -> list[int]:
        """The times that came in the last moment, and the first that is to come."""
        return self._times[bisect_left(self._times, now - MOMENT) : bisect_right(self._times, now) + 1]


def promised_of(site: Site) -> EarlierPromises:
    """Those of a site as it is."""
    found: EarlierPromises | None = site.memos.get(_NAME)
    if found is None:
        found = site.memos[_NAME] = EarlierPromises(site)
    return found


_NAME = "promised"


class PassPromises:
    """``changes``: promises made or moved in this pass (None: taken back), ``causes``: why some are."""

    def __init__(self, site: Site, now: Instant) -> None:
        self._site, self._now = site, now
        self._begun: set[Seq] = set()
        self._more: defaultdict[str, int] = defaultdict(int)
        self._earlier: EarlierPromises | None = None
        self._turns = 0
        self.changes: dict[Seq, Reservation | None] = {}
        self.causes: dict[Seq, str] = {}

    @property
    def _known(self) -> EarlierPromises:
        """Those of earlier passes."""
        if self._earlier is None:
            self._earlier = promised_of(self._site)
        return self._earlier

    def _next_turn(self) -> int:
        self._turns += 1
        return self._known.last_turn + self._turns

    # ------------------------------------------------------------ changes

    def _change(self, request: Request, made: Reservation | None, cause: str = "") -> None:
        """That is promised to it now; None: nothing any more, for this cause."""
        self._more[request.queue] += (made is not None) - self._is_promised(request.seq)
        self.changes[request.seq] = made
        if cause:
            self.causes[request.seq] = cause

    def _begin(self, request: Request) -> None:
        """It starts (of an array an index of it)."""
        self._more[request.queue] -= self._is_promised(request.seq)
        self.changes.pop(request.seq, None)
        self._begun.add(request.seq)

    # ------------------------------------------------------------ what is promised by now

    @property
    def is_begun(self) -> bool:
        """Whether one who was promised a start has it in this pass."""
        return not self._site.reserved.keys().isdisjoint(self._begun)

    def has_begun(self, request: Request) -> bool:
        """Whether this pass starts it (of an array an index of it)."""
        return request.seq in self._begun

    def told(self, request: Request) -> Reservation | None:
        """What it is promised by now."""
        return None if request.seq in self._begun else self.changes.get(request.seq, request.reservation)

    def is_due(self, request: Request) -> bool:
        """Whether the time that it was promised before has come."""
        return request.reservation is not None and time_of(request) <= self._now

    def _is_promised(self, seq: Seq) -> bool:
        if seq in self.changes:
            return self.changes[seq] is not None
        return seq in self._site.reserved and seq not in self._begun

    def count(self, queue: str) -> int:
        """How many of a queue have a promise."""
        return len(self._known.of[queue].requests) + self._more[queue]

    def _promised(self) -> dict[Seq, Reservation]:
        """What is promised to whom."""
        requests, gone = self._site.requests, self._begun
        kept = {seq: requests[seq].reservation for seq in self._site.reserved if seq not in gone}
        return {seq: each for seq, each in (kept | self.changes).items() if each is not None}

    def next_at(self) -> Instant | None:
        """When the next promised start is due, or one that is due now is late."""
        if not (self.changes or self._begun):
            times = self._known.about(self._now) if self._site.reserved else []
        else:
            times = [each.at for each in self._promised().values() if each.at is not None and not each.late]
        dues = (at if at > self._now else at + MOMENT + 1 for at in times)
        return min((Instant(at) for at in dues if at > self._now), default=None)

    # ------------------------------------------------------------ of one queue

    def rows(self, queue: str) -> list[int]:
        """Rows of a queue's columns that have a promise from an earlier pass."""
        return self._known.of[queue].rows

    def due(self, queue: str) -> list[Request]:
        """Those of them whose promised time has come."""
        known = self._known.due(self._now) if self._site.reserved else ()
        return [each for each in known if each.queue == queue and each.slot >= 0]

    def for_now(self, queue: str) -> list[int]:
        """Rows of a queue to which this pass promised to start at once, and that it has not started."""
        made = (seq for seq, each in self.changes.items() if each is not None and each.at == self._now)
        requests = (self._site.requests[seq] for seq in made)
        return [request.slot for request in requests if request.queue == queue and request.slot >= 0]
