"""Opening a database: made if it is not there, refused if damaged or newer, brought up to date if older."""

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import peewee

from nqspy.store import schema
from nqspy.store.errors import DamagedStore, NewerStore, StoreError, cause, is_damage, plain
from nqspy.store.migrations import STEPS, Step, upgrade, version

CHECKED_ALWAYS = 256 << 20
"""Up to this size (bytes) the whole file is checked at every start (about 0.2 s); a greater one only when it
was not closed properly."""


def open_database(path: Path, steps: Sequence[Step] = STEPS) -> peewee.SqliteDatabase:
    """The database at ``path``, ready to be written.

    Raises DamagedStore (and leaves all files as they are), NewerStore, or StoreError.
    """
    try:
        if not path.exists():
            _create(path, steps)
        _check(path, len(steps))
        return _connect(path, steps)
    except (OSError, sqlite3.Error, peewee.PeeweeException) as error:
        raise StoreError(f"{path} cannot be opened: {plain(error)}") from error


def _create(path: Path, steps: Sequence[Step]) -> None:
    """Makes it under another name first: a file under the right name is never half made, and an empty one
    is damage (it must not start again at request 1)."""
    if _wal(path) > 0:
        raise DamagedStore(path, f"it is missing, and {path.name}-wal, a part of it, is there")
    new = path.with_name(path.name + ".new")
    for leftover in (new, Path(f"{new}-wal"), Path(f"{new}-shm")):
        leftover.unlink(missing_ok=True)
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    db = schema.database(new)
    try:
        connection = schema.connection(db)
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        upgrade(connection, steps)
    finally:
        db.close()
    put_in_place(new, path)


def put_in_place(new: Path, path: Path) -> None:
    """Renames ``new`` to ``path``, durably: after a power cut one of the two is there, whole."""
    _sync(new)
    os.replace(new, path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _check(path: Path, known: int) -> None:
    """Looks at the file through a connection that cannot write: a damaged one stays as it is."""
    if path.stat().st_size == 0:
        raise DamagedStore(path, "it is empty")
    thorough = path.stat().st_size <= CHECKED_ALWAYS or _wal(path) > 0
    db = schema.readonly(path)
    try:
        connection = schema.connection(db)
        _check_mark(path, connection, known)
        if thorough:
            _check_pages(path, connection)
    except (sqlite3.DatabaseError, peewee.DatabaseError) as error:
        if is_damage(error):
            raise DamagedStore(path, str(cause(error))) from error
        raise
    finally:
        db.close()


def _check_mark(path: Path, connection: sqlite3.Connection, known: int) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != schema.APPLICATION_ID:
        raise DamagedStore(path, "it is no database of nqspy")
    if version(connection) > known:
        raise NewerStore(path, version(connection), known)


def _check_pages(path: Path, connection: sqlite3.Connection) -> None:
    found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")]
    if found != ["ok"]:
        raise DamagedStore(path, found[0] if found else "no answer to quick_check")


def _wal(path: Path) -> int:
    """Bytes of the write-ahead log beside it: none when it was closed properly."""
    try:
        return Path(f"{path}-wal").stat().st_size
    except FileNotFoundError:
        return 0


def _connect(path: Path, steps: Sequence[Step]) -> peewee.SqliteDatabase:
    db = schema.database(path)
    try:
        connection = schema.connection(db)
        try:
            upgrade(connection, steps)
        except sqlite3.Error as error:
            old = version(connection)
            raise StoreError(
                f"{path} could not be brought from format {old} to {len(steps)}: {plain(error)};"
                " it was left as it is"
            ) from error
        path.chmod(0o600)
    except BaseException:
        db.close()
        raise
    return db
