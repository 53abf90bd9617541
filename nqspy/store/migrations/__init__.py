"""Formats of the database: module ``mNNNN_*`` brings format NNNN-1 to NNNN. They are only added, never
changed.

The format is SQLite's ``user_version``; 0 is an empty database.
"""

import sqlite3
from collections.abc import Callable, Sequence

from nqspy.store.migrations import (
    m0001_tables,
    m0002_archives,
    m0003_owed,
    m0004_kept,
    m0005_attempt,
    m0006_lifetimes,
    m0007_guesses,
)

Step = Callable[[sqlite3.Connection], None]

STEPS: tuple[Step, ...] = (
    m0001_tables.up, m0002_archives.up, m0003_owed.up, m0004_kept.up, m0005_attempt.up, m0006_lifetimes.up,
    m0007_guesses.up,
)  # fmt: skip
"""In their order: the first makes format 1."""

VERSION = len(STEPS)
"""The format this nqspy writes."""


def version(connection: sqlite3.Connection) -> int:
    """Format of a database."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def upgrade(connection: sqlite3.Connection, steps: Sequence[Step] = STEPS) -> None:
    """Brings an older database to the format of ``steps``: all steps in one transaction, or none.

    Raises whatever a step raises (sqlite3.Error), after taking everything back.
    """
    if version(connection) >= len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[version(connection) :]:
            step(connection)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise
