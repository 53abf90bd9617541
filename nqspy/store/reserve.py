"""A reserve of disk room in the home. On a full disk it is given up piece by piece for commits that free room
(ends, deletions), and allocated again afterwards. Other programs may use what is given up before the database
does: so the database's log also has room allocated in advance."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from nqspy.store.errors import StoreError, cause, code

T = TypeVar("T")

SIZE = 16 << 20
"""Bytes of the reserve, but at most a twentieth of the file system and at least `LEAST`. This is more than
the database's log usually holds, so that the whole log can be merged into the database and begun anew."""
LEAST = 512 << 10
PIECE = 64 << 10
"""Bytes of the first piece that is given up; later pieces for the same work are larger."""
TRIES = 4
"""Number of pieces of one size that `let` gives up before it doubles the size."""
LOG = 4 << 20
"""Bytes allocated to the database's log in advance, but at most half of the reserve: as many as it has when
SQLite merges it into the database."""
CHECK = 0.05
"""Real seconds for which `low` takes a disk that had room as still having room, without a look at it."""
MARGIN = 1 << 20
"""Free bytes below which a commit that failed on a full disk will fail again."""
AGAIN = 2.0
"""Real seconds between two tries to fill the reserve; also the time for which a failed commit is recent."""
_FULL = ("SQLITE_FULL", "SQLITE_IOERR_SHM", "SQLITE_CANTOPEN")


class Reserve:
    """File at ``path`` that only takes up disk room, if it can be made. ``clock``: monotonic seconds."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._path, self._folder, self._clock = path, str(path.parent), clock
        self._failed = self._tried = -AGAIN
        self._fine: float | None = None

    @property
    def size(self) -> int:
        """Return the bytes that the reserve should have."""
        return _size_on(os.statvfs(self._folder))

    @property
    def held(self) -> int:
        """Return the bytes that the reserve takes on the disk now."""
        try:
            return os.stat(self._path, follow_symlinks=False).st_size
        except OSError:
            return 0

    def open_up(self) -> None:
        """Give up two pieces if the disk is full, so that a daemon can start."""
        try:
            if free(self._path.parent) < PIECE:
                self.lend(2 * PIECE)
        except OSError:
            return

    def let(self, step: Callable[[], T]) -> T:
        """Run ``step`` and return its result, giving up more and more of the reserve while it fails on a full
        disk. Raises any other exception of ``step``, and StoreError when the whole reserve was not enough."""
        tries = 0
        while True:
            try:
                return step()
            except Exception as error:
                if not self.lacks_room(error):
                    raise
                if not self.lend(PIECE << tries // TRIES):
                    full = f"the disk that holds {self._folder} is full; make room and try again"
                    raise StoreError(full) from error
                tries += 1

    def lacks_room(self, error: BaseException) -> bool:
        """True if an error came from a full disk; SQLite sometimes reports that as an I/O error."""
        return is_full(error) or (code(cause(error)).startswith("SQLITE_IOERR") and self.needed())

    def needed(self) -> bool:
        """True if the disk has less free room than the reserve's size (False if unknown): an I/O error of
        SQLite then means a full disk."""
        try:
            return free(self._path.parent) < self.size
        except OSError:
            return False

    def lend(self, piece: int = PIECE) -> bool:
        """Give up ``piece`` bytes of the reserve, or what remains; return False if it was empty already."""
        held = self.held
        if held:
            os.truncate(self._path, max(0, held - piece))
        return bool(held)

    def fill(self) -> None:
        """Allocate the reserve up to its size, as far as the disk has room."""
        self._tried = self._clock()
        self._allocate(self._path, self.size)

    def lengthen(self, log: Path) -> None:
        """Allocate room for the database's log behind its end, which SQLite ignores until it writes there."""
        if log.exists():
            self._allocate(log, min(LOG, self.size // 2))

    def _allocate(self, path: Path, size: int) -> None:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
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
        """Note that a commit failed on a full disk: for `AGAIN` seconds `low` asks for more free room."""
        self._failed = self._clock()
        self._fine = None

    def low(self) -> bool:
        """True if only commits that free room are accepted: the disk is full, or the reserve is used up.
        While there is room the disk is checked once in `CHECK` seconds, not at each call."""
        now = self._clock()
        if self._fine is None or not 0 <= now - self._fine < CHECK:
            held, disk = self.held, os.statvfs(self._folder)
            size = _size_on(disk)
            if held < size and now - self._tried >= AGAIN:
                self.fill()
                held, disk = self.held, os.statvfs(self._folder)
            room, failed = _free_of(disk), now - self._failed < AGAIN
            is_low = room < size if held < size // 2 else room < PIECE or (room < MARGIN and failed)
            self._fine = None if is_low else now
        return self._fine is None


def capacity(folder: Path) -> int:
    """Return the bytes of a folder's file system. Raises OSError."""
    disk = os.statvfs(folder)
    return disk.f_blocks * disk.f_frsize


def free(folder: Path) -> int:
    """Return the free bytes of a folder's file system for this process. Raises OSError."""
    return _free_of(os.statvfs(folder))


def _free_of(disk: os.statvfs_result) -> int:
    return (disk.f_bfree if os.geteuid() == 0 else disk.f_bavail) * disk.f_frsize


def _size_on(disk: os.statvfs_result) -> int:
    return max(LEAST, min(SIZE, disk.f_blocks * disk.f_frsize // 20))


def is_full(error: BaseException) -> bool:
    """True if an error means a full disk or an exceeded quota."""
    found = cause(error)
    if isinstance(found, OSError):
        return found.errno in (errno.ENOSPC, errno.EDQUOT)
    return code(found).startswith(_FULL)
