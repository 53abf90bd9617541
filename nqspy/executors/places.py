"""Opens paths that a user has named, as that user, never by another user's link: folder by folder with
descriptors. Symbolic links count only if they are the user's own, those to folders also if they are root's.
Where others may make names, existing files are not written."""

import errno
import os
import stat

from nqspy.executors.proc import Descriptor

_MOST_LINKS = 40
_ASKED = os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags of every open; a fifo without a reader makes it fail, and does not block the shepherd."""
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW


class SpoolPlace:
    """Place of an output that a user named: ``name`` in an open ``folder`` (descriptor, see `close`)."""

    def __init__(self, path: str) -> None:
        """Open folder by folder up to the last name of a path, which need not exist. Raises OSError."""
        self.folder = os.open("/" if path.startswith("/") else ".", _FOLDER)
        self.name = "."
        self._links = 0
        try:
            names = _names(path)
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
        except BaseException:
            os.close(self.folder)
            raise

    def close(self) -> None:
        """Close the descriptor of the open folder."""
        os.close(self.folder)

    def open(self, flags: int) -> int:
        """Open or make the file for writing; O_TRUNC in ``flags`` empties it. Raises OSError."""
        folder = os.fstat(self.folder)
        if folder.st_uid in (0, os.geteuid()) and not folder.st_mode & 0o022:
            fd = os.open(self.name, _ASKED | os.O_CREAT | flags, 0o666, dir_fd=self.folder)
        else:
            fd = self._open_new(flags)
        os.set_blocking(fd, True)
        return fd

    def _open_new(self, flags: int) -> int:
        """Open a name in a folder where others may make names: only root's devices are written; a file of the
        user's own is replaced, as its name may be a second one of an important file."""
        foreign = PermissionError(errno.EPERM, f"{self.name} belongs to another user")
        try:
            found = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            found = None
        if found is not None and _is_roots_device(found):
            fd = os.open(self.name, _ASKED, dir_fd=self.folder)
            if _is_roots_device(os.fstat(fd)):
                return fd
            os.close(fd)
            raise foreign
        if not flags & os.O_TRUNC:
            raise PermissionError(errno.EPERM, f"other users may create files in the folder of {self.name}")
        if found is not None:
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                raise foreign
            os.unlink(self.name, dir_fd=self.folder)
        return os.open(self.name, _ASKED | os.O_CREAT | os.O_EXCL | flags, 0o666, dir_fd=self.folder)

    def kind(self) -> int | None:
        """Return the mode of the file with that name; None if there is none."""
        try:
            return os.lstat(self.name, dir_fd=self.folder).st_mode
        except OSError:
            return None

    def _own_link(self, name: str, *, last: bool) -> str | None:
        """Return a link's target; None if it is no link. Raises PermissionError for another user's link."""
        try:
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder)
        except FileNotFoundError:
            return None
        with Descriptor(fd):
            found = os.fstat(fd)
            if not stat.S_ISLNK(found.st_mode):
                return None
            self._links += 1
            if self._links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if found.st_uid != os.geteuid() and (last or found.st_uid != 0):
                raise PermissionError(errno.EPERM, f"{name} is a symbolic link of another user")
            return os.readlink("", dir_fd=fd)

    def _go(self, name: str) -> None:
        fd = os.open(name, _FOLDER, dir_fd=self.folder)
        os.close(self.folder)
        self.folder = fd


def _is_roots_device(found: os.stat_result) -> bool:
    return stat.S_ISCHR(found.st_mode) and found.st_uid == 0


def _names(path: str) -> list[str]:
    """Return the names of a path in order; one that ends with a slash means a folder, never a file."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    return [*names, "."] if path.endswith(("/", "/.")) else names
