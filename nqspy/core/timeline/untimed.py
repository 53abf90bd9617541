"""What is kept for those who were promised a start, but no time: they wait for what has no known end.

It is not laid out over time: whenever that ends, they shall find what they need. What would be left beside
it, were all ended that have no known end, is *spare*: amounts of their own in the profile. Whoever starts
past them, or is promised a time behind them, holds it for as long as he runs, so that all of these together
hold no more than is spare. Who was promised a start before them waits for none of them, and of themselves the
first waits for none. Were all to wait for each other, nothing would ever start.
"""

import heapq

from nqspy.core.timeline.profile import FOREVER, Amount, Claims, Profile
from nqspy.model.ids import Seq

Turn = tuple[int, Seq]
"""Whose promise was made when (`Reservation.turn`)."""


class Untimed:
    """Those promises, in the order in which they were made; `count` of them."""

    def __init__(self) -> None:
        self._claims: dict[Seq, Claims] = {}
        self._line: list[Turn] = []
        self._in_line: set[Seq] = set()

    def copy(self) -> "Untimed":
        """The same, to be changed by whoever asks."""
        made = Untimed()
        made._claims, made._line, made._in_line = self._claims.copy(), self._line.copy(), self._in_line.copy()
        return made

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._claims)

    def add(self, profile: Profile, turn: Turn, claims: Claims) -> None:
        """So much is kept for one from now on."""
        seq = turn[1]
        self._claims[seq] = claims
        if seq not in self._in_line:
            heapq.heappush(self._line, turn)
            self._in_line.add(seq)
        profile.hold(profile.now, _ALWAYS, spare(profile, claims))

    def remove(self, profile: Profile, seq: Seq) -> None:
        """Nothing is kept for it any more."""
        profile.release(profile.now, _ALWAYS, spare(profile, self._claims.pop(seq)))

    def is_before(self, turn: Turn | None) -> bool:
        """Whether one of them was promised its start before one of that turn; None: who has no promise."""
        while self._line and self._line[0][1] not in self._claims:
            self._in_line.remove(heapq.heappop(self._line)[1])
        return bool(self._line) and (turn is None or self._line[0] < turn)


_ALWAYS = FOREVER + 1


def spare(profile: Profile, claims: Claims) -> Claims:
    """Return as much of the spare part of these amounts. A request of a command domain claims no PEs, and the
    profile may have none of that domain."""
    claimed = {amount: count for amount, count in claims.items() if count}
    for amount in claimed:
        profile.provide(spare_of(amount), profile.most(amount))
    return {spare_of(amount): count for amount, count in claimed.items()}


def spare_of(amount: Amount) -> Amount:
    """What of an amount is spare."""
    return "spare", amount
