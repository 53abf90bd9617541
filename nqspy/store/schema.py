"""The tables of a database as peewee models, and how to connect to it."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import peewee

APPLICATION_ID = 0x4E515350
"""SQLite's application_id of our databases (``NQSP``)."""


class EventRow(peewee.Model):
    """Table ``events``: the history. ``n``: number, ``at``: instant, ``version``: of the kind's fields,
    ``body``: JSON of the event's fields (`model.events`)."""

    n = peewee.IntegerField(primary_key=True)
    at = peewee.IntegerField(index=True)
    kind = peewee.TextField()
    version = peewee.IntegerField()
    body = peewee.TextField()

    class Meta:
        table_name = "events"


class RequestRow(peewee.Model):
    """Table ``requests``: live and ended ones. ``spec``: JSON of what was asked for, ``live``: of its state,
    both without defaults. ``ended`` (instant), ``ending`` (JSON: kind, at, event): null until the end."""

    seq = peewee.IntegerField(primary_key=True)
    state = peewee.TextField()
    queue = peewee.TextField()
    owner = peewee.TextField()
    grp = peewee.TextField()
    name = peewee.TextField()
    submitted = peewee.IntegerField()
    ended = peewee.IntegerField(null=True)
    spec = peewee.TextField()
    live = peewee.TextField()
    ending = peewee.TextField(null=True)

    class Meta:
        table_name = "requests"


class SettingsRow(peewee.Model):
    """Table ``settings``: one row for each object; ``position`` has the order in which objects were made."""

    position = peewee.AutoField()
    path = peewee.TextField(unique=True)
    value = peewee.TextField()

    class Meta:
        table_name = "settings"


class BlobRow(peewee.Model):
    """Table ``blobs``: scripts, environments and exit files by content hash; ``codec``: empty or ``zlib``."""

    digest = peewee.TextField(primary_key=True)
    body = peewee.BlobField()
    codec = peewee.TextField()

    class Meta:
        table_name = "blobs"


class ArchiveRow(peewee.Model):
    """Table ``archives``: files in the folder ``history`` with rows that were here, or still are until
    ``cleared``. ``kind``: events, requests or blobs; ``first`` to ``last``: their numbers, ``since`` to
    ``until``: their instants (of requests: of the ends), both inclusive; ``rows``: number; ``digest``:
    SHA-256 of the lines."""

    name = peewee.TextField(primary_key=True)
    kind = peewee.TextField()
    first = peewee.IntegerField()
    last = peewee.IntegerField()
    since = peewee.IntegerField()
    until = peewee.IntegerField()
    rows = peewee.IntegerField()
    digest = peewee.TextField()
    cleared = peewee.IntegerField()

    class Meta:
        table_name = "archives"


MODELS = (EventRow, RequestRow, SettingsRow, BlobRow, ArchiveRow)
_MORE = (
    # One index finds the few requests that have not ended (start-up), the other answers questions about
    # ended ones without reading their rows.
    "CREATE INDEX requests_live ON requests (ended) WHERE ended IS NULL",
    "CREATE INDEX requests_ended ON requests (ended, seq, owner, queue) WHERE ended IS NOT NULL",
    # Use by account; ``owed``: JSON list of what it is owed (`model.accounts.Entry`).
    """CREATE TABLE accounts (position INTEGER NOT NULL PRIMARY KEY, key TEXT NOT NULL UNIQUE,
        value REAL NOT NULL, at INTEGER NOT NULL, recent TEXT NOT NULL, owed TEXT NOT NULL)""",
    # One row: the rest of the site (`rows.SiteRow`).
    """CREATE TABLE state (id INTEGER NOT NULL PRIMARY KEY, n INTEGER NOT NULL, at INTEGER NOT NULL,
        next_seq INTEGER NOT NULL, rest TEXT NOT NULL)""",
    # Submissions by the key that their owner gave them.
    """CREATE TABLE keys (owner TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL,
        seqs TEXT NOT NULL, PRIMARY KEY (owner, key)) WITHOUT ROWID""",
    # Bytes stored for a user; ``ran``: for a request that has been started.
    """CREATE TABLE kept (owner TEXT NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL,
        ran INTEGER NOT NULL, PRIMARY KEY (owner, digest)) WITHOUT ROWID""",
    "CREATE INDEX kept_digest ON kept (digest)",
    # How long requests ran, by owner, name and size (`model.lifetimes`).
    """CREATE TABLE lifetimes (owner TEXT NOT NULL, name TEXT NOT NULL, pes INTEGER NOT NULL,
        runs TEXT NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (owner, name, pes)) WITHOUT ROWID""",
)

VERSION = 7
"""Version of the format: SQLite's ``user_version``."""


def make_tables(db: peewee.SqliteDatabase) -> None:
    """Make all tables of a new database. Raises peewee.PeeweeException, sqlite3.Error."""
    with db.bind_ctx(MODELS):
        db.create_tables(MODELS, safe=False)
    for statement in _MORE:
        connection(db).execute(statement)
    connection(db).execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection(db).execute(f"PRAGMA user_version = {VERSION}")


def version(connection: sqlite3.Connection) -> int:
    """Return the version of a database's format."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


PRAGMAS: tuple[tuple[str, Any], ...] = (
    ("journal_mode", "wal"),
    ("synchronous", "full"),
    ("wal_autocheckpoint", 1000),
    ("journal_size_limit", 64 << 20),
    ("cache_size", -16384),
    ("temp_store", "memory"),
    ("secure_delete", "fast"),  # otherwise deleted data is written to the log once more, as zeros
)
"""WAL with FULL: a commit is on the disk when it returns, also after a power cut. Sizes: pages of 4 KiB,
bytes, KiB. No mmap: a disk error would be a signal instead of an exception."""

LOCK_WAIT = 2.0
"""Seconds a commit waits for another program's lock."""
LOCKED_WAIT = 0.05
"""Seconds a commit waits for the lock after a commit that waited in vain."""


def database(path: Path, pragmas: tuple[tuple[str, Any], ...] = PRAGMAS) -> peewee.SqliteDatabase:
    """Return a peewee database over ``path`` for the thread that opens it."""
    return peewee.SqliteDatabase(str(path), pragmas=pragmas, timeout=LOCK_WAIT, thread_safe=False)


def readonly(path: Path) -> peewee.SqliteDatabase:
    """Return a read-only peewee database that changes no file, usable from any thread (one at a time)."""
    return peewee.SqliteDatabase(
        f"file:{_quoted(path)}?mode=ro", uri=True, pragmas=(("query_only", 1), ("cache_size", -4096)),
        timeout=LOCK_WAIT, thread_safe=False, check_same_thread=False,
    )  # fmt: skip


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a read-only connection that changes no file for a block, and close it at its end."""
    db = readonly(path)
    try:
        yield connection(db)
    finally:
        db.close()


def snapshot(path: Path) -> sqlite3.Connection:
    """Return a read-only connection to a file that no process writes; no file is made next to it."""
    return sqlite3.connect(f"file:{_quoted(path)}?mode=ro&immutable=1", uri=True, check_same_thread=False)


def _quoted(path: Path) -> str:
    """Return a path with the characters quoted that have a meaning in a URI."""
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def connection(db: peewee.SqliteDatabase) -> sqlite3.Connection:
    """Return the SQLite connection behind a peewee database; open it if needed."""
    return cast(sqlite3.Connection, cast(Any, db).connection())
