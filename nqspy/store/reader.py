"""A second reader of the database: ended requests and the history, from any thread, while commits go on."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from nqspy.model import configure, registry
from nqspy.model.ids import Instant, Seq
from nqspy.model.site import Site
from nqspy.ports import EndedRow
from nqspy.store import archive, copies, places, rows, schema
from nqspy.store.archive import Archive
from nqspy.store.errors import as_store_error
from nqspy.store.history import SLICE, EventHistory, fetch_from
from nqspy.store.schema import VERSION, EventRow, SettingsRow

__all__ = ["SLICE", "Reader"]

KNOWN = 200
"""Number of ended requests that a reader caches."""


class Reader(EventHistory):
    """Reads the history by its own read-only connection, in any thread; one query runs at a time."""

    def __init__(self, path: Path) -> None:
        """Open a database that a journal has opened before. Raises StoreError."""
        self.path = path
        self._lock = threading.Lock()
        self._db = schema.readonly(path)
        self._known: dict[Seq, EndedRow] = {}
        plain_fetch = fetch_from(self._db, path)

        def fetch(query: Any) -> list[rows.Row]:
            with self._lock:
                return plain_fetch(query)

        super().__init__(fetch, path)
        self._fetch(EventRow.select(EventRow.n).limit(1))

    def ended(
        self, seqs: Sequence[Seq] | None = None, *, queue: str | None = None, owner: str | None = None,
        since: Instant | None = None,
    ) -> Iterator[EndedRow]:  # fmt: skip
        """Yield ended requests as `EventHistory.ended` does; the last ones asked for alone are cached."""
        if seqs is None or len(seqs) != 1 or (queue, owner, since) != (None, None, None):
            return super().ended(seqs, queue=queue, owner=owner, since=since)
        # Ended requests do not change: the last ones are cached.
        found = self._known.pop(seqs[0], None) or next(super().ended(seqs), None)
        if found is None:
            return iter(())
        self._known[seqs[0]] = found
        while len(self._known) > KNOWN:
            self._known.pop(next(iter(self._known)), None)
        return iter((found,))

    def settings(self, path: str) -> Any:
        """Return the last committed settings of the one object at a path (``backup``); None: no such path."""
        found = self._fetch(SettingsRow.select(SettingsRow.value).where(SettingsRow.path == path))
        values = rows.decoded(found[0][0]) if found else {}
        kind = registry.object_of(path)
        return kind.one(configure.load({path: values})) if kind is not None else None

    def site(self) -> Site:
        """Return a copy of the site as of the last commit, which the caller may change. Raises StoreError."""
        unreadable = sqlite3.Error, msgspec.MsgspecError, KeyError, ValueError
        with self._lock, as_store_error(f"{self.path} cannot be read", *unreadable):
            return rows.load_site(schema.connection(self._db))

    def problems(self) -> list[str]:
        """Return the lines of SQLite's ``integrity_check``; an empty list if the file is sound."""
        with self._lock:
            found = schema.connection(self._db).execute("PRAGMA integrity_check(5)").fetchall()
        return [str(row[0]) for row in found if row[0] != "ok"]

    def archives(self) -> list[Archive]:
        """Return the files of the history, into which old rows were rotated."""
        return [one for kind in ("events", "requests", "blobs") for one in self.files_of(kind)]

    def damaged_archives(self) -> list[str]:
        """Read all files of the history; return a line for each that is missing or damaged."""
        folder = places.history(self.path)
        found = (archive.check(folder / one.name, one) for one in self.archives())
        return [text for text in found if text is not None]

    def backup(self, path: Path) -> int:
        """Copy the database to a new file, checked; return its bytes. Commits go on. Raises StoreError."""
        with as_store_error(f"{path} could not be written", *copies.SPOILT):
            return copies.hand_out(self.path, path)

    def close(self) -> None:
        """Close the connection to the database."""
        with self._lock:
            self._db.close()


def latest_before(reader: Reader, n: int) -> Site | None:
    """Return the site of the backup that ends with the latest event up to number ``n``; None if no backup
    fits. Backups with a last event that the journal does not have are left out."""
    best: Site | None = None
    for copy in reversed(copies.listed(reader.path)):
        site, unreadable = Site(), (*copies.SPOILT, msgspec.MsgspecError, KeyError)
        with suppress(*unreadable), schema.reading(copy.path) as connection:
            if schema.version(connection) == VERSION:
                site = rows.load_site(connection)
        known = next(reader.events(after=site.n - 1, limit=1), None) if 0 < site.n <= n else None
        if known is not None and known.at == site.at and (best is None or best.n < site.n):
            best = site
    return best
