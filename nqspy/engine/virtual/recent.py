"""The last of what was told: a list that forgets its oldest."""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

KEPT = 1_000
"""So many are kept at least, and twice as many at most."""


class Recent(list[T]):
    """A list whose oldest members go as others are appended: a simulation of years must not keep what it was
    told in its first week."""

    def append(self, item: T) -> None:
        """One more."""
        super().append(item)
        self._forget()

    def extend(self, items: Iterable[T]) -> None:
        """Some more."""
        super().extend(items)
        self._forget()

    def _forget(self) -> None:
        if len(self) > 2 * KEPT:
            del self[:-KEPT]
