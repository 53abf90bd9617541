"""Format 2: which files of the folder ``history`` hold rows that were here."""

import sqlite3

TABLE = """CREATE TABLE archives (name TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, first INTEGER NOT NULL,
    last INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL, rows INTEGER NOT NULL,
    digest TEXT NOT NULL, cleared INTEGER NOT NULL)"""


def up(connection: sqlite3.Connection) -> None:
    """Adds the table of the files."""
    connection.execute(TABLE)
