"""Opens paths that a user has named, as that user, and never by somebody else's link.

A path is walked folder by folder with descriptors, so that nothing can be exchanged on the way; symbolic
links count only if they are the user's own, those to folders also if they are root's. In a folder where
others may make names, what is there already must be the user's own as well and have no second name: somebody
may have put it there for him.
"""

from __future__ import annotations

import errno
import os
import stat

_MOST_LINKS = 40
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW


class Place:
    """A name in an open folder: ``folder`` is its descriptor, to be closed by `close`."""

    def __init__(self, path: str) -> None:
        """Walks to the last name of a path, which need not be there. Raises OSError."""
        self.folder = os.open("/" if path.startswith("/") else ".", _FOLDER)
        self.name = "."
        self._links = 0
        try:
            self._walk(_names(path))
        except BaseException:
            os.close(self.folder)
            raise

    def close(self) -> None:
        """Lets the folder go."""
        os.close(self.folder)

    def open(self, flags: int) -> int:
        """Opens what is there, or makes it, for writing; it is emptied with O_TRUNC once it is known to be
        what it should. Raises OSError."""
        # Not blocking, so that a fifo without a reader is an error and not a shepherd that hangs.
        asked = (flags & ~os.O_TRUNC) | os.O_WRONLY | os.O_CREAT | os.O_NOCTTY | os.O_NONBLOCK
        fd = os.open(self.name, asked | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=self.folder)
        try:
            self._trust(os.fstat(fd))
            if flags & os.O_TRUNC and stat.S_ISREG(os.fstat(fd).st_mode):
                os.ftruncate(fd, 0)
        except BaseException:
            os.close(fd)
            raise
        os.set_blocking(fd, True)
        return fd

    def kind(self) -> int | None:
        """The mode of what has that name, None when there is nothing."""
        try:
            return os.lstat(self.name, dir_fd=self.folder).st_mode
        except OSError:
            return None

    def _walk(self, names: list[str]) -> None:
        while names:
            name = names.pop(0)
            link = self._own_link(name, last=not names)
            if link is not None:
                if link.startswith("/"):
                    self._go("/")
                names = _names(link) + names
            elif names:
                self._go(name)
            else:
                self.name = name

    def _own_link(self, name: str, *, last: bool) -> str | None:
        """Where a link leads, None when the name is no link. Raises PermissionError for another's."""
        try:
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder)
        except FileNotFoundError:
            return None
        try:
            seen = os.fstat(fd)
            if not stat.S_ISLNK(seen.st_mode):
                return None
            self._links += 1
            if self._links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if seen.st_uid != os.geteuid() and (last or seen.st_uid != 0):
                raise PermissionError(errno.EPERM, f"{name} is somebody else's symbolic link")
            return os.readlink("", dir_fd=fd)
        finally:
            os.close(fd)

    def _go(self, name: str) -> None:
        fd = os.open(name, _FOLDER, dir_fd=self.folder)
        os.close(self.folder)
        self.folder = fd

    def _trust(self, seen: os.stat_result) -> None:
        """Raises PermissionError for what others may have put there."""
        if not self._open_to_others() or (seen.st_uid == 0 and stat.S_ISCHR(seen.st_mode)):
            return
        if seen.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, f"{self.name} is somebody else's")
        if seen.st_nlink > 1:
            raise PermissionError(errno.EPERM, f"{self.name} has another name (a hard link)")

    def _open_to_others(self) -> bool:
        folder = os.fstat(self.folder)
        return folder.st_uid not in (0, os.geteuid()) or bool(folder.st_mode & 0o022)


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]
