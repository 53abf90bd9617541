"""How queries are run: rows as tuples, trouble as one line for people."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peewee

from nqspy.store.errors import StoreError, plain
from nqspy.store.rows import Row

SLICE = 500
"""Rows read at a time. Between slices no read transaction is open: a slow reader never keeps the write-ahead
log from being emptied."""

Fetch = Callable[[Any], list[Row]]


def fetch_from(db: peewee.SqliteDatabase, path: Path) -> Fetch:
    """What runs a peewee query on ``db`` and gives its rows as tuples; it raises StoreError."""

    def fetch(query: Any) -> list[Row]:
        try:
            return list(query.tuples().execute(db))
        except (sqlite3.Error, peewee.PeeweeException) as error:
            raise StoreError(f"{path} cannot be read: {plain(error)}") from error

    return fetch
