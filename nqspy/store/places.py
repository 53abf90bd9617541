"""Paths of the files next to a database, and durable renames of files."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path


def backups(path: Path) -> Path:
    """Return the folder of the backups of the database at ``path``."""
    return path.parent / "backups"


def history(path: Path) -> Path:
    """Return the folder of the files into which old rows of the database at ``path`` are rotated."""
    return path.parent / "history"


def mark(path: Path) -> Path:
    """Return the path of the mark file: it exists while the database is open, and after a crash."""
    return path.with_name(path.name + "-open")


def restoring(path: Path) -> Path:
    """Return the path at which a restore puts its copy before it renames it to the database. A file found
    there at a start is of a restore that was not finished."""
    return path.with_name(path.name + ".restoring")


def log(path: Path) -> Path:
    """Return the path of SQLite's write-ahead log of the database at ``path``."""
    return path.with_name(path.name + "-wal")


def log_size(path: Path) -> int:
    """Return the bytes of the write-ahead log of a database: 0 if it was closed properly."""
    try:
        return log(path).stat().st_size
    except FileNotFoundError:
        return 0


def put_in_place(new: Path, path: Path) -> None:
    """Rename ``new`` to ``path`` durably: a power cut leaves one of both, complete. Raises OSError."""
    sync(new)
    os.replace(new, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Sync a file, or the names in a folder, to the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make a folder that other users cannot read. Raises OSError."""
    if not folder.is_dir():
        folder.mkdir(mode=0o700)
        give(folder, folder.parent)
        sync(folder.parent)


def give(path: Path, home: Path) -> None:
    """Give a file to the home's owner, if root made it in another user's home. Raises OSError."""
    owner = home.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


@contextmanager
def as_owner(home: Path) -> Iterator[None]:
    """Run the block with the rights of the home's owner, if this is root in another user's home: that user
    may exchange names in it at any moment. Not for processes with several threads. Raises OSError."""
    owner, groups = home.stat(), os.getgroups()
    if os.geteuid() != 0 or owner.st_uid == 0:
        yield
        return
    datetime.strptime("1", "%d")  # loads a module that this user perhaps may not read
    former = os.getegid()
    os.setgroups([])
    os.setegid(owner.st_gid)
    os.seteuid(owner.st_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(former)
        os.setgroups(groups)


class Outside:
    """A new file in a folder where another user may exchange names at any moment. The folder is opened once,
    no link is followed, and the file gets its name when it is complete."""

    def __init__(self, path: Path) -> None:
        """Make a draft of the file in its folder. Raises OSError, also FileExistsError."""
        self._path = path
        self._draft = f".{path.name}.{os.urandom(8).hex()}"
        self._folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if self._there(path.name) is not None:
                raise FileExistsError(errno.EEXIST, "it exists already; choose another name")
            made = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = os.open(self._draft, made, 0o600, dir_fd=self._folder)
        except BaseException:
            os.close(self._folder)
            raise

    def _there(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def fill(self, source: int) -> int:
        """Copy the open file ``source`` into the draft, sync it, name it; return its size. Raises OSError."""
        size = 0
        while count := os.sendfile(self._file, source, size, 1 << 24):
            size += count
        os.fsync(self._file)
        here = {"src_dir_fd": self._folder, "dst_dir_fd": self._folder}
        with suppress(FileNotFoundError):  # another process removed the draft
            try:
                os.link(self._draft, self._path.name, **here, follow_symlinks=False)
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
                    raise
                os.rename(self._draft, self._path.name, **here)  # a file system without hard links
        found = self._there(self._path.name)
        if found is None or not os.path.samestat(found, os.fstat(self._file)):
            raise OSError("it was replaced by another file while it was written")
        os.fsync(self._folder)
        return size

    def close(self) -> None:
        """Remove a draft that did not get its name, and close the folder."""
        try:
            found = self._there(self._draft)
            if found is not None and os.path.samestat(found, os.fstat(self._file)):
                os.unlink(self._draft, dir_fd=self._folder)
        finally:
            os.close(self._file)
            os.close(self._folder)
