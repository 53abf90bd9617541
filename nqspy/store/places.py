"""Where things lie beside a database, and how a file is put in its place for good."""

import os
from pathlib import Path


def backups(path: Path) -> Path:
    """The folder of the backups of the database at ``path``."""
    return path.parent / "backups"


def history(path: Path) -> Path:
    """The folder of the files that hold what was rotated out of it."""
    return path.parent / "history"


def mark(path: Path) -> Path:
    """Is there while a journal has the database open: found at a start, the last end was not clean."""
    return path.with_name(path.name + "-open")


def restoring(path: Path) -> Path:
    """The copy that a restore is about to put in place: found at a start, the restore did not finish."""
    return path.with_name(path.name + ".restoring")


def log(path: Path) -> Path:
    """SQLite's write-ahead log beside the database."""
    return path.with_name(path.name + "-wal")


def log_size(path: Path) -> int:
    """Bytes of the write-ahead log: none when the database was closed properly."""
    try:
        return log(path).stat().st_size
    except FileNotFoundError:
        return 0


def put_in_place(new: Path, path: Path) -> None:
    """Renames ``new`` to ``path``, durably: after a power cut one of the two is there, whole."""
    sync(new)
    os.replace(new, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Has a file, or the names in a folder, on the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Makes a folder that nobody else may look into. Raises OSError."""
    if not folder.is_dir():
        folder.mkdir(mode=0o700)
        give(folder, folder.parent)
        sync(folder.parent)


def give(path: Path, home: Path) -> None:
    """Makes a file the home's owner's, when root has made it in somebody's home. Raises OSError."""
    owner = home.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.chown(path, owner.st_uid, owner.st_gid)
