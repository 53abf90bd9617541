"""Formats of the database: step N of `STEPS` brings format N-1 to N. Steps are only added, never changed.

The format is SQLite's ``user_version``; 0 is an empty database.
"""

import sqlite3
from collections.abc import Sequence
from itertools import chain

from nqspy.store import former

Step = tuple[str, ...]
"""Statements; ``nested(live)`` in them is `former.live`."""

STEPS: tuple[Step, ...] = (
    # Format 1: the tables. Two partial indexes: one finds the few requests that have not ended among all that
    # have (start-up), one answers every question about ended ones without reading their rows.
    (
        """CREATE TABLE events (n INTEGER NOT NULL PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL,
            version INTEGER NOT NULL, body TEXT NOT NULL)""",
        "CREATE INDEX eventrow_at ON events (at)",
        """CREATE TABLE requests (seq INTEGER NOT NULL PRIMARY KEY, state TEXT NOT NULL, queue TEXT NOT NULL,
            owner TEXT NOT NULL, grp TEXT NOT NULL, name TEXT NOT NULL, submitted INTEGER NOT NULL,
            ended INTEGER, spec TEXT NOT NULL, live TEXT NOT NULL, ending TEXT)""",
        "CREATE INDEX requests_live ON requests (ended) WHERE ended IS NULL",
        "CREATE INDEX requests_ended ON requests (ended, seq, owner, queue) WHERE ended IS NOT NULL",
        """CREATE TABLE settings (position INTEGER NOT NULL PRIMARY KEY, path TEXT NOT NULL UNIQUE,
            value TEXT NOT NULL)""",
        """CREATE TABLE accounts (position INTEGER NOT NULL PRIMARY KEY, key TEXT NOT NULL UNIQUE,
            value REAL NOT NULL, at INTEGER NOT NULL, recent TEXT NOT NULL)""",
        """CREATE TABLE state (id INTEGER NOT NULL PRIMARY KEY, n INTEGER NOT NULL, at INTEGER NOT NULL,
            next_seq INTEGER NOT NULL, rest TEXT NOT NULL)""",
        """CREATE TABLE keys (owner TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL,
            seqs TEXT NOT NULL, PRIMARY KEY (owner, key)) WITHOUT ROWID""",
        "CREATE TABLE blobs (digest TEXT NOT NULL PRIMARY KEY, body BLOB NOT NULL, codec TEXT NOT NULL)",
    ),
    # Format 2: which files of the folder ``history`` hold rows that were here.
    (
        """CREATE TABLE archives (name TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, first INTEGER NOT NULL,
            last INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL, rows INTEGER NOT NULL,
            digest TEXT NOT NULL, cleared INTEGER NOT NULL)""",
    ),
    # Format 3: what groups and users are owed, beside what they used; of before it is not known.
    ("ALTER TABLE accounts ADD COLUMN owed TEXT NOT NULL DEFAULT ''",),
    # Format 4: what each user keeps of scripts and environments, and which of it is of requests that ran.
    (
        """CREATE TABLE kept (owner TEXT NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL,
            ran INTEGER NOT NULL, PRIMARY KEY (owner, digest)) WITHOUT ROWID""",
        "CREATE INDEX kept_digest ON kept (digest)",
        """INSERT INTO kept (owner, digest, size, ran) SELECT owner, digest, length(body),
        max(ended IS NOT NULL OR coalesce(json_extract(live, '$.attempt'), 0) > 0)
        FROM (SELECT owner, json_extract(spec, '$.script') AS digest, ended, live FROM requests
            UNION ALL SELECT owner, json_extract(spec, '$.environment'), ended, live FROM requests)
        JOIN blobs USING (digest) GROUP BY owner, digest""",
    ),
    # Format 5: what belongs to an attempt stands in an object of its own.
    ("""UPDATE requests SET live = nested(live) WHERE instr(live, '"attempt":')""",),
    # Format 6: how long requests ran, by owner, name and size (`model.lifetimes`). The table begins empty:
    # limits of queues in the past are not looked for.
    (
        """CREATE TABLE lifetimes (owner TEXT NOT NULL, name TEXT NOT NULL, pes INTEGER NOT NULL,
            runs TEXT NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (owner, name, pes)) WITHOUT ROWID""",
    ),
    # Format 7: a lifetime may say how its owner's best guess came true. No table changes; an earlier nqspy
    # could not read such a lifetime.
    (),
)

VERSION = len(STEPS)
"""The format this nqspy writes."""


def version(connection: sqlite3.Connection) -> int:
    """Format of a database."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def upgrade(connection: sqlite3.Connection, steps: Sequence[Step] = STEPS) -> None:
    """Brings an older database to the format of ``steps``: all steps in one transaction, or none.

    Raises sqlite3.Error, after taking everything back.
    """
    if version(connection) >= len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.create_function("nested", 1, former.live, deterministic=True)
        for statement in chain(*steps[version(connection) :]):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise
