"""What is kept for those who were promised a start, but no time: they wait for what has no known end.

It is not laid out over time. Who was promised a time was promised it before them and waits for none of them;
of themselves the first waits for none. Were all to wait for each other, nothing would ever start.
"""

from nqspy.core.profile import FOREVER, Amount, Claims, Profile
from nqspy.model.ids import Seq


class Untimed:
    """Those promises, in the order in which they were made; `count` of them."""

    def __init__(self) -> None:
        self._claims: dict[Seq, Claims] = {}
        self._line: dict[Seq, None] = {}
        self._sums: dict[Amount, int] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._claims)

    def add(self, seq: Seq, claims: Claims) -> None:
        """So much is kept for one; who was taken out for a moment stands where it stood."""
        self._claims[seq] = claims
        self._line[seq] = None
        self._sum(claims, 1)

    def remove(self, seq: Seq) -> None:
        """Nothing is kept for it any more."""
        self._sum(self._claims.pop(seq), -1)

    def _sum(self, claims: Claims, sign: int) -> None:
        for amount, count in claims.items():
            self._sums[amount] = self._sums.get(amount, 0) + sign * count

    def is_first(self, seq: Seq) -> bool:
        """Whether it was promised its start before all others of them."""
        while self._line and (first := next(iter(self._line))) not in self._claims:
            del self._line[first]
        return bool(self._line) and next(iter(self._line)) == seq

    def left(self, profile: Profile, amount: Amount) -> int:
        """How much of an amount they never need; less than 0 where it does not suffice for all of them."""
        return profile.free(amount, FOREVER) - self._sums.get(amount, 0)

    def fits(self, profile: Profile, claims: Claims) -> bool:
        """Whether one that had these amounts for ever would leave what they need."""
        needed = ((a, n) for a, n in claims.items() if n and self._sums.get(a))
        return all(self.left(profile, amount) >= count for amount, count in needed)
