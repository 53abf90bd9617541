"""Who waits in a queue: its pairs of owner and group, in the order of their numbers, and by group."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct


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
    """Of pairs with these numbers and names (``GROUP:OWNER``)."""
    keys = [(owner, group) for group, _, owner in (name.partition(":") for name in names)]
    rows: dict[str, dict[str, int]] = {}
    for row, (owner, group) in enumerate(keys):
        rows.setdefault(group, {})[owner] = row
    groups = sorted(rows)
    places = {group: place for place, group in enumerate(groups)}
    place = np.array([places[group] for _, group in keys], dtype=np.int64)
    return Pairs(numbers, keys, groups, place, [rows[group] for group in groups])
