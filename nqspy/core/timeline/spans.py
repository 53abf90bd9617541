"""Spans of time: amounts that are held, and reserved, as plain data.

A reservation without a time waits for something that has no known end. Its claims are not spread over time:
whenever that ends, they must be free. *Headroom* is an amount of its own in the profile: what these claims
would leave if everything without a known end had ended. Each request that passes such a reservation, or has a
time reserved behind it, holds headroom for as long as it runs. So all of these together leave enough. A
reservation that is older waits for none of them, and of several without a time the first waits for none.
"""

from bisect import bisect_left, insort
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from nqspy.core.timeline.profile import FOREVER, Amount, Claims, Profile, Span
from nqspy.model.ids import Instant, Seq
from nqspy.model.site import Site

Turn = tuple[int, Seq]
"""Order in which reservations were made (`Reservation.turn`), with the request."""


class Holding(NamedTuple):
    """Claims of one request from ``begin`` until ``end``, and ``lasting`` ones for ever after; ``begin`` is
    `FOREVER` for a reservation without a time. ``turn``: place of a reservation in the order of making."""

    begin: int
    end: int
    claims: Claims
    lasting: Claims
    turn: int = 0

    def spans(self) -> tuple[Span, ...]:
        """Return the claims as one or two spans of time, one after the other."""
        first = self.begin, self.end, self.claims
        return (first, (self.end, FOREVER, self.lasting)) if self.lasting else (first,)


@dataclass(slots=True)
class Spans:
    """Amounts held and reserved over time. ``holdings``: of each request with a reservation; ``running``:
    expected ends of requests that run; ``idle``: unheld PEs of each domain; ``claimed``: known claims."""

    profile: Profile
    holdings: dict[Seq, Holding] = field(default_factory=dict)
    running: list[tuple[int, Seq]] = field(default_factory=list)
    idle: dict[str, int] = field(default_factory=dict)
    claimed: dict[Seq, Claims] = field(default_factory=dict)
    _begins: list[tuple[int, Seq]] = field(default_factory=list)
    _untimed: list[Turn] = field(default_factory=list)

    def copy(self, now: Instant) -> "Spans":
        """Return a copy for a later pass; it shares the expected ends of running requests."""
        parts = self.holdings.copy(), self.running, self.idle.copy(), self.claimed.copy()
        return Spans(self.profile.copy(now), *parts, self._begins.copy(), self._untimed.copy())

    def fill(self, used: list[Span], holdings: dict[Seq, Holding]) -> None:
        """Hold what is taken, and what is reserved with a time, in empty spans."""
        self.profile.fill([*used, *(span for held in holdings.values() for span in held.spans())])
        self.holdings.update(holdings)
        self._begins = sorted((held.begin, seq) for seq, held in holdings.items())

    def add(self, seq: Seq, held: Holding) -> None:
        """Hold these claims for a request that holds none yet. Claims without a time hold headroom."""
        self.holdings[seq] = held
        insort(self._begins, (held.begin, seq))
        if held.begin < FOREVER:
            for span in held.spans():
                self.profile.hold(*span)
        else:
            insort(self._untimed, (held.turn, seq))
            self.profile.hold(self.profile.now, FOREVER, self.headroom(held.claims))

    def lift(self, seq: Seq) -> Holding | None:
        """Release what is held for a request's reservation, and return it; None: nothing is held."""
        held = self.holdings.pop(seq, None)
        if held is None:
            return None
        del self._begins[bisect_left(self._begins, (held.begin, seq))]
        if held.begin < FOREVER:
            for span in held.spans():
                self.profile.release(*span)
        else:
            del self._untimed[bisect_left(self._untimed, (held.turn, seq))]
            self.profile.release(self.profile.now, FOREVER, self.headroom(held.claims))
        return held

    def first(self, but: Seq, amounts: Collection[Amount]) -> tuple[int, Seq] | None:
        """Return begin and request of the earliest reservation of another request than ``but``, if possible
        of one with some of these amounts; None: no other has a reservation."""
        others = [begin for begin in self._begins if begin[1] != but]
        same = (each for each in others if not self.holdings[each[1]].claims.keys().isdisjoint(amounts))
        return next(same, others[0] if others else None)

    @property
    def has_untimed(self) -> bool:
        """True if something is held for a reservation without a time."""
        return bool(self._untimed)

    def is_untimed_before(self, turn: Turn | None) -> bool:
        """True if a reservation without a time was made before this turn (None: before a new one)."""
        return bool(self._untimed) and (turn is None or self._untimed[0] < turn)

    def headroom(self, claims: Claims) -> Claims:
        """Return claims on headroom, as much as these claims hold of each amount, and let the profile count
        these headrooms."""
        claimed = {amount: count for amount, count in claims.items() if count}
        for amount in claimed:
            self.profile.provide(headroom_of(amount), self.profile.most(amount))
        return {headroom_of(amount): count for amount, count in claimed.items()}


def headroom_of(amount: Amount) -> Amount:
    """Return the amount under which a profile counts the headroom of another amount: what reservations
    without a time would leave of it."""
    return "headroom", amount


# ---------------------------------------------------------------- from pass to pass


@dataclass(slots=True)
class _Note:
    """Spans stored at ``made`` (`remember`). They are valid before ``until``, with the same stops to come."""

    spans: Spans
    made: Instant
    until: int
    shifts: tuple[object, object]


def recall(site: Site, now: Instant) -> Spans | None:
    """Return a copy of the spans of an earlier pass (`Site.memos`), if they are still valid: only submissions
    happened since, and nothing that they hold has begun or ended. None: they are not."""
    note: _Note | None = site.memos.get(_NAME)
    if note is None or not note.made <= now < note.until or note.shifts != _shifts(site):
        return None
    return note.spans.copy(now)


def remember(site: Site, now: Instant, spans: Spans, until: int) -> None:
    """Store a copy of spans for `recall` before ``until`` or the next stop by a shift. If a request is
    suspended, store nothing, because its end moves."""
    if not site.paused:
        until = min([until, *(stop.at for stop in site.upcoming_stops.values())])
        site.memos[_NAME] = _Note(spans.copy(now), now, max(until, now + 1), _shifts(site))


def _shifts(site: Site) -> tuple[object, object]:
    return dict(site.upcoming_stops), dict(site.closings)


_NAME = "timeline"
