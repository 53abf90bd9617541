"""What a folder's files say, read again only when one of them is another: `status` asks each time."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")
_SETTLED = 2_000_000_000
"""Nanoseconds after which a file that was changed once more bears another time for certain."""


class Glance(Generic[T]):
    """The last reading of one folder, and what its files were like then."""

    def __init__(self) -> None:
        self._marks: object = None
        self._said: T | None = None

    def look(self, folder: Path, read: Callable[[], T]) -> T:
        """What ``read`` says, or said when all files were as they are. Raises what ``read`` raises."""
        marks, newest = _marks(folder)
        if self._said is None or marks != self._marks:
            self._said = None
            said = read()
            if time.time_ns() - newest < _SETTLED:
                return said
            self._said, self._marks = said, marks
        return self._said


def _marks(folder: Path) -> tuple[object, int]:
    """What tells whether a folder or a file in it was changed (rights and owner too); the latest change."""
    try:
        found = [(".", os.stat(folder))]
        with os.scandir(folder) as entries:
            found += [(entry.name, entry.stat()) for entry in entries]
    except OSError:
        return object(), time.time_ns()
    marks = sorted((name, seen.st_dev, seen.st_ino, seen.st_size, seen.st_ctime_ns) for name, seen in found)
    return marks, max(seen.st_ctime_ns for _, seen in found)
