"""The file that is there while a journal has the database open, with how far its commits have come. It tells
what a log that was damaged after a crash has lost, so that no number is given out again."""

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
    """Set durably before the first commit: an end that does not take it away was not clean. It is written
    after each commit, without a sync, so it is never ahead of the database."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self.before = reached(path)
        self._path = places.mark(path)
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        places.sync(path.parent)

    def note(self, n: int, next_seq: Seq) -> None:
        """Notes how far commits have come; a full disk keeps what it has."""
        with contextlib.suppress(OSError):
            os.pwrite(self._file, b"%020d %020d\n" % (n, next_seq), 0)

    def clear(self) -> None:
        """Takes it away: the database is closed."""
        os.close(self._file)
        self._path.unlink(missing_ok=True)


def reached(path: Path) -> CommitsReached | None:
    """Return how far commits had come when the database at ``path`` was left open; None where the file does
    not say so, or its numbers are none that the database can hold."""
    try:
        n, next_seq = map(int, places.mark(path).read_bytes().split())
    except (OSError, ValueError):
        return None
    sound = 0 <= n <= _MOST and 0 <= next_seq <= PLAIN
    return CommitsReached(n, next_seq) if sound else None


def missing(path: Path) -> int:
    """Events that were committed and are not in the database at ``path`` any more. Raises sqlite3.Error."""
    before = reached(path)  # first: a daemon may go on committing
    if before is None:
        return 0
    with schema.reading(path) as connection:
        row = connection.execute("SELECT n FROM state").fetchone()
    return max(0, before.n - (row[0] if row is not None else 0))


def loss_text(count: int) -> str:
    """Return what to say of so many events that are missing."""
    events = "1 event that was" if count == 1 else f"{count:,} events that were"
    return f"{events} committed before the last crash are gone: nqs.db-wal was damaged or removed"
