"""The tables that queries read, as peewee models, and how the database is connected.

`migrations` makes the tables; a test keeps both alike. Hot paths use SQL on the connection. Tables without a
model: ``accounts`` (use by account; ``owed``: JSON list of what it is owed, `model.accounts.Entry`),
``lifetimes`` (`model.lifetimes`), ``state`` (one row: the rest of the site, `rows.SiteRow`), ``keys``
(submissions by the key their owner gave them), ``kept`` (bytes that a user keeps; ``ran``: for a request that
has been started).
"""

import sqlite3
from pathlib import Path
from typing import Any, cast

import peewee

APPLICATION_ID = 0x4E515350
"""Marks the file as ours (``NQSP``), beside SQLite's own mark."""


class EventRow(peewee.Model):
    """The history. ``body``: JSON of the event's fields (`model.events`)."""

    n = peewee.IntegerField(primary_key=True)
    at = peewee.IntegerField()
    kind = peewee.TextField()
    version = peewee.IntegerField()
    body = peewee.TextField()

    class Meta:
        table_name = "events"


class RequestRow(peewee.Model):
    """All requests. ``spec`` and ``live``: JSON of what was asked and of where it stands, without defaults.

    ``ended`` (instant) and ``ending`` (JSON: kind, at and event) are null until it has ended.
    """

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
    """Settings by object; ``position`` keeps the order in which the objects were made."""

    position = peewee.AutoField()
    path = peewee.TextField(unique=True)
    value = peewee.TextField()

    class Meta:
        table_name = "settings"


class BlobRow(peewee.Model):
    """Scripts and environments by content hash; ``codec`` is empty or ``zlib``."""

    digest = peewee.TextField(primary_key=True)
    body = peewee.BlobField()
    codec = peewee.TextField()

    class Meta:
        table_name = "blobs"


class ArchiveRow(peewee.Model):
    """Files in the folder ``history`` that hold rows which were here, or still are until ``cleared``.

    ``kind`` events, requests or blobs; ``first`` to ``last``: their numbers, ``since`` to ``until``: their
    instants (of the end, for requests), both inclusive; ``rows``: how many; ``digest``: SHA-256 of the lines.
    """

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


PRAGMAS: tuple[tuple[str, Any], ...] = (
    ("journal_mode", "wal"),
    ("synchronous", "full"),
    ("wal_autocheckpoint", 1000),
    ("journal_size_limit", 64 << 20),
    ("cache_size", -16384),
    ("temp_store", "memory"),
    ("secure_delete", "fast"),  # else what is deleted is written once more, with zeros, into the log
)
"""WAL with FULL: a commit is on the disk when it returns, also after a power cut. Sizes: pages of 4 KiB,
bytes, KiB. No mmap: a disk error would be a signal instead of an exception."""

LOCK_WAIT = 2.0
"""Seconds a commit waits for another program's lock."""
LOCKED_WAIT = 0.05
"""The same after a commit that has waited in vain."""


def database(path: Path, pragmas: tuple[tuple[str, Any], ...] = PRAGMAS) -> peewee.SqliteDatabase:
    """A peewee database over ``path`` that belongs to the thread that opens it."""
    return peewee.SqliteDatabase(str(path), pragmas=pragmas, timeout=LOCK_WAIT, thread_safe=False)


def readonly(path: Path) -> peewee.SqliteDatabase:
    """A peewee database that can only read and changes no file, usable from any thread (one at a time)."""
    return peewee.SqliteDatabase(
        f"file:{_quoted(path)}?mode=ro",
        uri=True,
        pragmas=(("query_only", 1), ("cache_size", -4096)),
        timeout=LOCK_WAIT,
        thread_safe=False,
        check_same_thread=False,
    )


def snapshot(path: Path) -> sqlite3.Connection:
    """A connection to a file that is not being written, which leaves no file beside it."""
    return sqlite3.connect(f"file:{_quoted(path)}?mode=ro&immutable=1", uri=True, check_same_thread=False)


def _quoted(path: Path) -> str:
    """Characters that have a meaning in a URI: a path may contain them."""
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def connection(db: peewee.SqliteDatabase) -> sqlite3.Connection:
    """The SQLite connection behind a peewee database; opened when needed."""
    return cast(sqlite3.Connection, cast(Any, db).connection())
