"""Reservations of a site as a pass begins, and the changes that the pass makes in them."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from functools import cached_property

from nqspy.core.timeline.profile import FOREVER
from nqspy.core.timeline.timeline import time_of, turn_of
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import MOMENT, Request, Reservation
from nqspy.model.site import Site

_FOUND = "reservations"


class AsFound:
    """Reservations of a site as a pass finds them, valid while only submissions happen (`Site.memos`).

    ``by_queue``: requests with a reservation; ``rows``: their rows in the columns of each queue. ``timed``:
    those with a reserved time, the earliest first; ``times``: these times. ``sound``: a pass found that all
    can be kept.
    """

    def __init__(self, site: Site) -> None:
        self.by_queue = defaultdict[str, list[Request]](list)
        self.rows = defaultdict[str, list[int]](list)
        self.timed: list[Request] = []
        self.sound = False
        for seq in site.reserved:
            request = site.requests[seq]
            self.by_queue[request.queue].append(request)
            if request.slot >= 0:
                self.rows[request.queue].append(request.slot)
            if time_of(request) < FOREVER:
                self.timed.append(request)
        self.timed.sort(key=time_of)
        self.times = list(map(time_of, self.timed))


class StandingReservations:
    """Reservations as a pass finds and changes them. ``changes``: reservations that the pass makes or changes
    (None: takes back), ``causes``: why. ``pending``: changes in no action yet; ``eased``: requests among
    these that had a reservation before. ``go_on``: the next pass is to examine all reservations again."""

    def __init__(self, site: Site, now: Instant) -> None:
        self._site, self._now = site, now
        self._begun: set[Seq] = set()
        self._last_turn: int | None = None
        self._more = Counter[str]()
        self._gave_up = self.go_on = False
        self.changes: dict[Seq, Reservation | None] = {}
        self.pending: dict[Seq, Reservation | None] = {}
        self.eased: set[Seq] = set()
        self.causes: dict[Seq, str] = {}

    def _change(self, request: Request, made: Reservation | None, cause: str = "") -> None:
        """Give a request this reservation. None: take its reservation back, for this cause."""
        former = self._is_reserved(request.seq)
        self._more[request.queue] += (made is not None) - former
        if former:
            self.eased.add(request.seq)
        self.changes[request.seq] = self.pending[request.seq] = made
        if cause:
            self.causes[request.seq] = cause

    def _begin(self, request: Request) -> None:
        """Use up the reservation of a request that starts, or of an array of which an index starts."""
        self._more[request.queue] -= self._is_reserved(request.seq)
        self.changes.pop(request.seq, None)
        self.pending.pop(request.seq, None)
        self.eased.discard(request.seq)
        self._begun.add(request.seq)

    def _next_turn(self) -> int:
        if self._last_turn is None:
            requests = self._site.requests
            self._last_turn = max((turn_of(requests[seq])[0] for seq in self._site.reserved), default=0)
        self._last_turn += 1
        return self._last_turn

    # ------------------------------------------------------------ as the pass begins

    @cached_property
    def _as_found(self) -> AsFound:
        """Reservations as the pass begins, kept from an earlier pass if only submissions happened since."""
        memos = self._site.memos
        if _FOUND not in memos:
            memos[_FOUND] = AsFound(self._site)
        found: AsFound = memos[_FOUND]
        return found

    def rows(self, queue: str) -> list[int]:
        """Return the rows of a queue's columns that have a reservation as the pass begins."""
        return self._as_found.rows.get(queue, [])

    def unused_rows(self, queue: str) -> list[int]:
        """Return the rows of a queue with a reservation from before the pass that is not used yet."""
        if not self._begun:
            return self.rows(queue)
        requests, begun = self._as_found.by_queue.get(queue, ()), self._begun
        return [each.slot for each in requests if each.slot >= 0 and each.seq not in begun]

    @cached_property
    def _all_due(self) -> list[Request]:
        """Requests with a reserved time that has come as the pass begins, the earliest first."""
        found = self._as_found
        return found.timed[: bisect_right(found.times, self._now)]

    def due(self, queue: str) -> list[Request]:
        """Return the requests of a queue with a reserved time that has come, not started by this pass."""
        return [r for r in self._all_due if r.queue == queue and r.slot >= 0 and r.seq not in self._begun]

    def is_due(self, request: Request) -> bool:
        """True if the time reserved for a request before the pass has come, and is not used yet."""
        return time_of(request) <= self._now and request.seq not in self._begun

    # ------------------------------------------------------------ as it is by now

    def has_begun(self, request: Request) -> bool:
        """True if this pass starts the request, or an index of it."""
        return request.seq in self._begun

    def reservation_of(self, request: Request) -> Reservation | None:
        """Return the reservation of a request after the changes of this pass; None: it has no reservation."""
        former = None if request.seq in self._begun else request.reservation
        return self.changes.get(request.seq, former)

    def _is_reserved(self, seq: Seq) -> bool:
        if seq in self.changes:
            return self.changes[seq] is not None
        return seq in self._site.reserved and seq not in self._begun

    def _any_reserved(self) -> bool:
        """True if any request has a reservation, with the changes of this pass."""
        return len(self._site.reserved) + self._more.total() > 0

    def count(self, queue: str) -> int:
        """Return how many requests of a queue have a reservation, with the changes of this pass."""
        return len(self._as_found.by_queue.get(queue, ())) + self._more[queue]

    def for_now(self, queue: str) -> list[int]:
        """Return the waiting rows of a queue for which this pass reserved a start at its own instant."""
        made = (seq for seq, each in self.changes.items() if each is not None and each.at == self._now)
        requests = (self._site.requests[seq] for seq in made)
        return [request.slot for request in requests if request.queue == queue and request.slot >= 0]

    def next_at(self) -> Instant | None:
        """Return when the next reserved time comes, or a due start becomes late; None: no time is known. A
        start known to be late wakes no pass. If the pass took back a reservation, or another queue gave one
        up after this pass examined a queue, the next pass comes at once."""
        if self.go_on or self._gave_up:
            return Instant(self._now + 1)
        now, found = self._now, self._as_found
        coming = [each for each in self.changes.values() if each is not None]
        for request in found.timed[bisect_left(found.times, now - MOMENT) :]:
            reservation = request.reservation
            if reservation is not None and request.seq not in self._begun and request.seq not in self.changes:
                coming.append(reservation)
                if time_of(request) > now and not reservation.late:
                    break
        times = (each.at for each in coming if each.at is not None and not each.late)
        wakes = (at if at > now else Instant(at + MOMENT + 1) for at in times)
        return min((at for at in wakes if at > now), default=None)
