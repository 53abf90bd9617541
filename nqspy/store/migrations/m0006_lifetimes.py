"""Format 6: how long requests ran, by owner, name and size (`model.lifetimes`)."""

import sqlite3

TABLE = """CREATE TABLE lifetimes (owner TEXT NOT NULL, name TEXT NOT NULL, pes INTEGER NOT NULL,
    runs TEXT NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (owner, name, pes)) WITHOUT ROWID"""


def up(connection: sqlite3.Connection) -> None:
    """Adds the table. It begins empty: limits of queues in the past are not looked for."""
    connection.execute(TABLE)
