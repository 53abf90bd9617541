"""Errors of a database that cannot be used: one line each, with the file and what to do."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nqspy.model.errors import NqspyError
from nqspy.store import copies, places


class StoreError(NqspyError):
    """The database, a backup or a file of the history cannot be opened, read or written."""


@contextmanager
def as_store_error(what: str, *kinds: type[Exception]) -> Iterator[None]:
    """Raise errors of these kinds in the block as a StoreError: ``what`` (a clause) and the reason."""
    try:
        yield
    except kinds as error:
        raise StoreError(f"{what}: {plain(error)}") from error


class DamagedStore(StoreError):
    """The database file is damaged or missing. Nothing was changed."""

    def __init__(self, path: Path, detail: str) -> None:
        super().__init__(f"{path} is damaged ({one_line(detail)}); it was left as it is. {advice(path)}")


def advice(path: Path) -> str:
    """Return a sentence on what to do if the database at ``path`` is unusable: restore a backup."""
    good = copies.newest_good(path)
    if good is not None:
        return f"Restore the newest good backup: nqspy restore {good} --home {path.parent}"
    return (
        f"There is no good backup in {places.backups(path)}; with a copy of your own:"
        f" nqspy restore FILE --home {path.parent}"
    )


class OtherFormat(StoreError):
    """The database was written by a newer version of nqspy, or by one that is too old."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        newer = "start it with the newer nqspy that wrote it, or restore an older backup"
        older = "start it once with nqspy of commit e13b55b9, which converts formats 1 to 6 to 7"
        super().__init__(
            f"{path} has format {found}, this nqspy knows format {known}: {newer if found > known else older}"
        )


def one_line(text: str) -> str:
    """Return the text with spaces in place of its line breaks."""
    return " ".join(text.split())


_PLAIN = {
    "SQLITE_FULL": "the disk is full; make room and try again",
    "SQLITE_BUSY": "another program keeps the database locked",
    "SQLITE_READONLY": "nqsd has no permission to write the database",
    "SQLITE_CORRUPT": "the database is damaged; restart nqsd: it says how to restore it",
    "SQLITE_NOTADB": "the file is not a database any more; restart nqsd: it says how to restore it",
    "SQLITE_IOERR": "the disk reports an I/O error",
}


def plain(error: Exception) -> str:
    """Return the reason of an error for people: a full disk, a lock, an I/O error; else the error's text."""
    found = cause(error)
    if isinstance(found, OSError) and found.strerror:
        return found.strerror
    for name, text in _PLAIN.items():
        if code(found).startswith(name):
            return f"{text} ({one_line(str(found))})"
    return one_line(str(found)) or type(found).__name__


def is_damage(error: Exception) -> bool:
    """True if SQLite reports that the file itself is damaged (not that it is locked, full or missing)."""
    return code(cause(error)).startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def is_locked(error: Exception) -> bool:
    """True if the error is that another program keeps the database locked."""
    return code(cause(error)).startswith("SQLITE_BUSY")


def cause(error: BaseException) -> BaseException:
    """Return the error of SQLite or the system at the root of a chain of exceptions, else ``error``."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, sqlite3.Error | OSError):
        found = found.__cause__ or found.__context__
    return found or error


def code(error: BaseException | None) -> str:
    """Return SQLite's name for its own error, like ``SQLITE_FULL``; empty for other errors."""
    return str(getattr(error, "sqlite_errorname", ""))
