"""Format 1: the tables."""

import sqlite3

TABLES = (
    """CREATE TABLE events (n INTEGER NOT NULL PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL,
        version INTEGER NOT NULL, body TEXT NOT NULL)""",
    "CREATE INDEX eventrow_at ON events (at)",
    """CREATE TABLE requests (seq INTEGER NOT NULL PRIMARY KEY, state TEXT NOT NULL, queue TEXT NOT NULL,
        owner TEXT NOT NULL, grp TEXT NOT NULL, name TEXT NOT NULL, submitted INTEGER NOT NULL, ended INTEGER,
        spec TEXT NOT NULL, live TEXT NOT NULL, ending TEXT)""",
    "CREATE INDEX requests_live ON requests (ended) WHERE ended IS NULL",
    "CREATE INDEX requests_ended ON requests (ended, seq, owner, queue) WHERE ended IS NOT NULL",
    """CREATE TABLE settings (position INTEGER NOT NULL PRIMARY KEY, path TEXT NOT NULL UNIQUE,
        value TEXT NOT NULL)""",
    """CREATE TABLE accounts (position INTEGER NOT NULL PRIMARY KEY, key TEXT NOT NULL UNIQUE,
        value REAL NOT NULL, at INTEGER NOT NULL, recent TEXT NOT NULL)""",
    """CREATE TABLE state (id INTEGER NOT NULL PRIMARY KEY, n INTEGER NOT NULL, at INTEGER NOT NULL,
        next_seq INTEGER NOT NULL, rest TEXT NOT NULL)""",
    """CREATE TABLE keys (owner TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, seqs TEXT NOT NULL,
        PRIMARY KEY (owner, key)) WITHOUT ROWID""",
    "CREATE TABLE blobs (digest TEXT NOT NULL PRIMARY KEY, body BLOB NOT NULL, codec TEXT NOT NULL)",
)


def up(connection: sqlite3.Connection) -> None:
    """Makes the tables in an empty database."""
    for statement in TABLES:
        connection.execute(statement)
