"""Opening a database: a missing one is made, a damaged one or one of another format is refused."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import peewee

from nqspy.store import places, schema
from nqspy.store.errors import DamagedStore, OtherFormat, StoreError, advice, as_store_error, cause, is_damage

CHECKED_ALWAYS = 256 << 20
"""Bytes up to which a database that was closed properly is checked by ``quick_check`` (0.2 s). After an
unclean end a database of any size is checked by ``integrity_check``."""
GIVEN_BACK = 256 << 20
"""Bytes of unused pages: if a start finds more, and they are over half of the file, it shrinks the file."""


def open_database(path: Path) -> peewee.SqliteDatabase:
    """Return the database at ``path``, ready for writing; make it if there is none. Raises DamagedStore (the
    files stay as they are), OtherFormat, StoreError."""
    with as_store_error(f"{path} cannot be opened", OSError, sqlite3.Error, peewee.PeeweeException):
        if places.restoring(path).exists():
            raise StoreError(f"{path}: a restore was started and not finished. {advice(path)}")
        if not path.exists():
            _create(path)
        _check(path)
        return _connect(path)


def _create(path: Path) -> None:
    """Make a new database under another name, then rename it: a half-made file would look damaged."""
    if places.log_size(path) > 0:
        raise DamagedStore(path, f"it is missing, but its part {path.name}-wal exists")
    old = [each for each in (places.mark(path), places.backups(path), places.history(path)) if each.exists()]
    if old:
        raise DamagedStore(path, f"it is missing, but {old[0].name} exists: this home is not new")
    new = path.with_name(path.name + ".new")
    for leftover in (new, Path(f"{new}-wal"), Path(f"{new}-shm")):
        leftover.unlink(missing_ok=True)
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    with closing(schema.database(new)) as db:
        schema.make_tables(db)
    places.put_in_place(new, path)


def _check(path: Path) -> None:
    """Check the file through a read-only connection, so that a damaged one stays as it is. Raises
    DamagedStore, OtherFormat."""
    if path.stat().st_size == 0:
        raise DamagedStore(path, "it is empty")
    if not os.access(path, os.W_OK):
        # SQLite would open it all the same, and the first commit would fail.
        raise StoreError(f"{path} is write-protected; its owner can allow writing: chmod u+w {path}")
    unclean = places.mark(path).exists() or places.log_size(path) > 0
    try:
        with schema.reading(path) as connection:
            if connection.execute("PRAGMA application_id").fetchone()[0] != schema.APPLICATION_ID:
                raise DamagedStore(path, "it is not a database of nqspy")
            if (found := schema.version(connection)) != schema.VERSION:
                raise OtherFormat(path, found, schema.VERSION)
            if unclean or path.stat().st_size <= CHECKED_ALWAYS:
                _check_pages(path, connection, "integrity_check" if unclean else "quick_check")
    except (sqlite3.DatabaseError, peewee.DatabaseError) as error:
        if is_damage(error):
            raise DamagedStore(path, str(cause(error))) from error
        raise


def _check_pages(path: Path, connection: sqlite3.Connection, how: str) -> None:
    found = [str(row[0]) for row in connection.execute(f"PRAGMA {how}(1)")]
    if found != ["ok"]:
        raise DamagedStore(path, found[0] if found else f"no answer to {how}")


def _connect(path: Path) -> peewee.SqliteDatabase:
    db = schema.database(path)
    try:
        path.chmod(0o600)
        connection = schema.connection(db)
        free, pages, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("freelist_count", "page_count", "page_size")
        )
        # Unused pages are used again by later rows. Only after a first large rotation most of the file is
        # unused: then it is written anew, once. (``auto_vacuum`` would cost each commit a tenth more.)
        if free * size >= GIVEN_BACK and 2 * free > pages:
            connection.execute("VACUUM")
    except BaseException:
        db.close()
        raise
    return db
