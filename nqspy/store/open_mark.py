"""A file that exists while a journal has the database open, with the numbers that its commits have reached.
After a crash it shows what a damaged log has lost, so that no number is used twice."""

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

from nqspy.model.ids import Seq
from nqspy.model.keys import PLAIN
from nqspy.store import places, schema

_MOST = (1 << 63) - 1
"""The largest number in a database."""


class CommitsReached(NamedTuple):
    """The number of the last event that was committed, and the next request's number."""

    n: int
    next_seq: Seq


class OpenMark:
    """Mark file of an open database, written durably before the first commit. If it exists at a start, the
    last end was not clean; ``before`` then has the numbers in it, else None. It is updated after each commit
    without a sync, so it is never ahead of the database."""

    def __init__(self, path: Path) -> None:
        """Make the mark file durably. Raises OSError."""
        self.before = reached(path)
        self._path = places.mark(path)
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        places.sync(path.parent)

    def note(self, n: int, next_seq: Seq) -> None:
        """Write the numbers that commits have reached; a full disk leaves the former ones."""
        with contextlib.suppress(OSError):
            os.pwrite(self._file, b"%020d %020d\n" % (n, next_seq), 0)

    def clear(self) -> None:
        """Remove the mark file: the database was closed properly."""
        os.close(self._file)
        self._path.unlink(missing_ok=True)


def reached(path: Path) -> CommitsReached | None:
    """Return the numbers that commits had reached when the database at ``path`` was left open; None without a
    mark, or with impossible numbers in it."""
    try:
        n, next_seq = map(int, places.mark(path).read_bytes().split())
    except (OSError, ValueError):
        return None
    sound = 0 <= n <= _MOST and 0 <= next_seq <= PLAIN
    return CommitsReached(n, next_seq) if sound else None


def missing(path: Path) -> int:
    """Return how many committed events the last crash lost; 0 after a clean end. Raises sqlite3.Error."""
    before = reached(path)  # read first: a daemon may go on committing
    if before is None:
        return 0
    with schema.reading(path) as connection:
        row = connection.execute("SELECT n FROM state").fetchone()
    return max(0, before.n - (row[0] if row is not None else 0))


def loss_text(count: int) -> str:
    """Return a sentence for operators: ``count`` committed events are lost."""
    events = "1 committed event is" if count == 1 else f"{count:,} committed events are"
    return f"{events} lost since the last crash: nqs.db-wal was damaged or removed"
