"""Space kept in reserve on the disk of the home: given up, bit by bit, for what makes room when the disk is
full, and taken again afterwards. Another program may take every bit that is given up before the database
does: so most of what makes room is written where the database's log has its room already."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from nqspy.store.errors import StoreError, cause, code

T = TypeVar("T")

SIZE = 16 << 20
"""Bytes at most, and no more than a twentieth of the disk: more than the database's log holds as a rule, so
that all of it can be brought where it belongs, and the log begun anew."""
LEAST = 512 << 10
PIECE = 64 << 10
"""Bytes given up at first; later pieces for the same thing are larger and larger."""
TRIES = 4
"""Pieces of one size when the daemon starts."""
LOG = 4 << 20
"""Bytes that the database's log has set aside at most, and no more than half of the reserve: as many as it
has written when it is brought where it belongs."""
CHECK = 0.05
"""Real seconds for which a look at a disk with room counts."""
MARGIN = 1 << 20
"""With less free space than this a commit that failed for lack of room will fail again."""
AGAIN = 2.0
"""Real seconds for which that is believed."""
_FULL = ("SQLITE_FULL", "SQLITE_IOERR_SHM", "SQLITE_CANTOPEN")


class Reserve:
    """A file that only takes room; where it cannot be made there is none. ``clock``: monotonic seconds."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._path, self._folder, self._clock = path, str(path.parent), clock
        self._failed = self._tried = -AGAIN
        self._fine: float | None = None

    @property
    def size(self) -> int:
        """Bytes that it shall have."""
        return _size_on(os.statvfs(self._folder))

    @property
    def held(self) -> int:
        """Bytes that it has."""
        try:
            return os.stat(self._path, follow_symlinks=False).st_size
        except OSError:
            return 0

    def open_up(self) -> None:
        """Gives up a piece of it where the disk is full: a daemon is about to start."""
        try:
            if free(self._path.parent) < PIECE:
                self.lend(2 * PIECE)
        except OSError:
            return

    def let(self, step: Callable[[], T]) -> T:
        """Does ``step``, giving up more and more of the reserve while there is no room: small pieces first,
        as others may be quicker. Raises what ``step`` raises; StoreError when all was given up in vain."""
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
        """True if something failed for lack of room; SQLite calls that an I/O error at times."""
        return is_full(error) or (code(cause(error)).startswith("SQLITE_IOERR") and self.needed())

    def needed(self) -> bool:
        """True if there is less free than it has: what failed for lack of room did not fail by chance."""
        try:
            return free(self._path.parent) < self.size
        except OSError:
            return False

    def lend(self, piece: int = PIECE) -> bool:
        """Gives up so much of it; False when there is nothing left."""
        held = self.held
        if held:
            os.truncate(self._path, max(0, held - piece))
        return bool(held)

    def fill(self) -> None:
        """Take as much room as there is, up to its size; none where a file system sets no room aside."""
        self._tried = self._clock()
        self._allocate(self._path, self.size)

    def lengthen(self, log: Path) -> None:
        """Give the log the room that it will need: what lies behind its end counts for nothing."""
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
        """A commit failed for lack of room."""
        self._failed = self._clock()
        self._fine = None

    def low(self) -> bool:
        """True if there is no room for more than what makes room: the disk is full, or the reserve is used
        up. While there is room it is looked at once in a while, not for each submission."""
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
    """Bytes of a folder's file system. Raises OSError."""
    disk = os.statvfs(folder)
    return disk.f_blocks * disk.f_frsize


def free(folder: Path) -> int:
    """Bytes that are free on it for this process. Raises OSError."""
    return _free_of(os.statvfs(folder))


def _free_of(disk: os.statvfs_result) -> int:
    return (disk.f_bfree if os.geteuid() == 0 else disk.f_bavail) * disk.f_frsize


def _size_on(disk: os.statvfs_result) -> int:
    return max(LEAST, min(SIZE, disk.f_blocks * disk.f_frsize // 20))


def is_full(error: BaseException) -> bool:
    """True if something failed for lack of room."""
    found = cause(error)
    if isinstance(found, OSError):
        return found.errno in (errno.ENOSPC, errno.EDQUOT)
    return code(found).startswith(_FULL)
