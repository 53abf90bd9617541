"""Greatest and least values of columns, known without a look at all rows: a pass asks for them each time, and
between two passes a few rows come and go."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = Mapping[str, npt.NDArray[Any]]


class Extremes:
    """The greatest value (``least``: the least) of each column that was asked for (``known``). How many rows
    have it is counted, so that all are looked at again only when the last of these has gone."""

    __slots__ = ("_least", "known")

    def __init__(self, least: bool = False) -> None:
        self._least = least
        self.known: dict[str, tuple[float, int]] = {}

    def of(self, name: str, values: npt.NDArray[Any]) -> float:
        """Of a column with these values, at least one."""
        found = self.known.get(name)
        if found is None:
            value = (values.min() if self._least else values.max()).item()
            found = self.known[name] = (value, int(np.count_nonzero(values == value)))
        return found[0]

    def come(self, arrays: Arrays, row: int) -> None:
        """A row was added, or written again after it had `gone`."""
        for name, (value, count) in self.known.items():
            new = arrays[name].item(row)
            if new == value:
                self.known[name] = (value, count + 1)
            elif (new < value) is self._least:
                self.known[name] = (new, 1)

    def gone(self, arrays: Arrays, row: int) -> None:
        """A row goes away; to be called while it is still there."""
        last = []
        for name, (value, count) in self.known.items():
            if arrays[name].item(row) == value:
                self.known[name] = (value, count - 1)
                if count <= 1:
                    last.append(name)
        for name in last:
            del self.known[name]

    def forget(self) -> None:
        """Many rows have changed."""
        self.known.clear()
