"""Space kept in reserve on the disk of the home: given up, bit by bit, for what makes room when the disk is
full, and taken again afterwards."""

import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from nqspy.store.errors import cause

SIZE = 16 << 20
"""Bytes at most, and no more than a twentieth of the disk: more than the database's log holds as a rule, so
that all of it can be brought where it belongs, and the log begun anew."""
LEAST = 512 << 10
PIECE = 256 << 10
"""Bytes given up at a time."""
MARGIN = 1 << 20
"""With less free space than this a commit that failed for lack of room will fail again."""
AGAIN = 2.0
"""Real seconds for which that is believed."""
_FULL = ("SQLITE_FULL", "SQLITE_IOERR_SHM", "SQLITE_CANTOPEN")


class Reserve:
    """A file that is only there to take room. Where it cannot be made there is no reserve, and nothing else
    changes. ``clock``: seconds that only go forward."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._path, self._clock = path, clock
        self._failed = self._tried = -AGAIN

    @property
    def size(self) -> int:
        """Bytes that it shall have."""
        return max(LEAST, min(SIZE, capacity(self._path.parent) // 20))

    @property
    def held(self) -> int:
        """Bytes that it has."""
        try:
            return os.stat(self._path, follow_symlinks=False).st_size
        except OSError:
            return 0

    def open_up(self) -> None:
        """Gives up all of it where the disk is full: a daemon is about to start."""
        try:
            if free(self._path.parent) < self.size:
                os.truncate(self._path, 0)
        except OSError:
            return

    def needed(self) -> bool:
        """Whether there is less free than it has: what failed for lack of room did not fail by chance."""
        try:
            return free(self._path.parent) < self.size
        except OSError:
            return False

    def lend(self, every: bool = False) -> bool:
        """Gives up a piece of it, or all; False when there is nothing left."""
        held = self.held
        if held:
            os.truncate(self._path, 0 if every else max(0, held - PIECE))
        return bool(held)

    def fill(self, most: int | None = None) -> None:
        """Takes as much as there is room for, up to its size or ``most``. A file system that cannot set room
        aside gives none."""
        size = self.size if most is None else max(0, min(most, free(self._path.parent) - 4 * PIECE))
        self._tried = self._clock()
        try:
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        try:
            held, piece = os.fstat(fd).st_size, size
            while held < size and piece >= 1 << 14:
                try:
                    os.posix_fallocate(fd, held, min(piece, size - held))
                    held = os.fstat(fd).st_size
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        return
                    piece //= 2
        finally:
            os.close(fd)

    def failed(self) -> None:
        """A commit failed for lack of room."""
        self._failed = self._clock()

    def low(self) -> bool:
        """Whether there is no room for more than what makes room: the disk is full, or the reserve is used
        up."""
        now, size, held = self._clock(), self.size, self.held
        if held < size and now - self._tried >= AGAIN:
            self.fill()
            held = self.held
        if held < size // 2:
            return free(self._path.parent) < size
        return now - self._failed < AGAIN and free(self._path.parent) < MARGIN


def capacity(folder: Path) -> int:
    """Bytes of a folder's file system. Raises OSError."""
    disk = os.statvfs(folder)
    return disk.f_blocks * disk.f_frsize


def free(folder: Path) -> int:
    """Bytes that are free on it for this process. Raises OSError."""
    disk = os.statvfs(folder)
    return (disk.f_bfree if os.geteuid() == 0 else disk.f_bavail) * disk.f_frsize


def is_full(error: Exception) -> bool:
    """Whether something failed for lack of room."""
    error = cause(error)
    if isinstance(error, sqlite3.Error):
        return str(getattr(error, "sqlite_errorname", "")).startswith(_FULL)
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
