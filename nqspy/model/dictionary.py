"""Names of a queue's waiting requests as numbers: its pairs of owner and group in the order of their numbers,
and by group."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from msgspec import Struct


class Numbers:
    """Numbers for names, from 0 upward: names become columns."""

    __slots__ = ("_by_name", "names")

    def __init__(self) -> None:
        self._by_name: dict[str, int] = {}
        self.names: list[str] = []

    def of(self, name: str) -> int:
        """The name's number; a new name gets the next one."""
        number = self._by_name.get(name)
        if number is None:
            number = self._by_name[name] = len(self.names)
            self.names.append(name)
        return number

    def known(self, name: str) -> int | None:
        """The name's number if it has one."""
        return self._by_name.get(name)

    def __len__(self) -> int:
        return len(self.names)

    def copy(self) -> "Numbers":
        """A copy of its own."""
        made = Numbers()
        made._by_name, made.names = dict(self._by_name), list(self.names)
        return made

    def become(self, names: list[str]) -> None:
        """Keep these names alone, numbered in this order."""
        self.names = names
        self._by_name = {name: number for number, name in enumerate(names)}


SPARE = 10_000
"""So many names are kept at least before those that nobody bears any more are forgotten."""


@dataclass(slots=True)
class Dictionary:
    """The numbers of owners, groups, request names, pairs ``GROUP:OWNER`` and needs (`needs_key`) of a site;
    ``limit``: so many of a kind call for `compact`."""

    owners: Numbers = field(default_factory=Numbers)
    groups: Numbers = field(default_factory=Numbers)
    names: Numbers = field(default_factory=Numbers)
    pairs: Numbers = field(default_factory=Numbers)
    needs: Numbers = field(default_factory=Numbers)
    limit: int = SPARE

    def is_full(self) -> bool:
        """True if it is time to forget names that no queued request bears."""
        return len(self.names) > self.limit or len(self.pairs) > self.limit

    def copy(self) -> "Dictionary":
        """A copy of its own."""
        owners, groups, names, pairs, needs = (numbers.copy() for _, numbers in self.by_column())
        return Dictionary(owners, groups, names, pairs, needs, self.limit)

    def by_column(self) -> tuple[tuple[str, Numbers], ...]:
        """The numbers by the column that holds them."""
        return (
            ("owner", self.owners), ("group", self.groups), ("name", self.names), ("pair", self.pairs),
            ("needs", self.needs),
        )  # fmt: skip


class Pairs(Struct, frozen=True):
    """``numbers`` of the pairs (`Dictionary.pairs`) and their ``keys`` (owner, group); ``groups`` by name,
    ``place``: which of these each pair is in, and ``rows``: where the owners of each group stand among the
    keys."""

    numbers: npt.NDArray[np.int64]
    keys: Sequence[tuple[str, str]]
    groups: Sequence[str]
    place: npt.NDArray[np.int64]
    rows: Sequence[dict[str, int]]


def pairs_of(numbers: npt.NDArray[np.int64], names: Iterable[str]) -> Pairs:
    """Return the pairs with these numbers and names (``GROUP:OWNER``)."""
    keys = [(owner, group) for group, _, owner in (name.partition(":") for name in names)]
    rows: dict[str, dict[str, int]] = {}
    for row, (owner, group) in enumerate(keys):
        rows.setdefault(group, {})[owner] = row
    groups = sorted(rows)
    places = {group: place for place, group in enumerate(groups)}
    place = np.array([places[group] for _, group in keys], dtype=np.int64)
    return Pairs(numbers, keys, groups, place, [rows[group] for group in groups])
