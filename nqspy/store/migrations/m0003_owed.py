"""Format 3: what groups and users are owed, beside what they used."""

import sqlite3

COLUMN = "ALTER TABLE accounts ADD COLUMN owed TEXT NOT NULL DEFAULT ''"


def up(connection: sqlite3.Connection) -> None:
    """Adds the column; who was owed something before is not known."""
    connection.execute(COLUMN)
