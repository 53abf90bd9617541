"""Reading beside the writer: ended requests and the history, from any thread, without stopping commits."""

import sqlite3
import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nqspy.model import configure, registry
from nqspy.model.events import Recorded
from nqspy.model.ids import Instant, Seq
from nqspy.model.site import Site
from nqspy.ports import EndedRow
from nqspy.store import archive, copies, places, rows, schema
from nqspy.store.archive import Archive
from nqspy.store.errors import StoreError, plain
from nqspy.store.fetching import SLICE, fetch_from
from nqspy.store.history import EventHistory
from nqspy.store.loading import load_site
from nqspy.store.schema import EventRow, SettingsRow

__all__ = ["SLICE", "Reader"]

KNOWN = 200
"""Ended requests that a reader remembers."""


class Reader:
    """A read-only connection of its own, for threads other than the engine's; several may share one."""

    def __init__(self, path: Path) -> None:
        """Opens the database that a journal has opened before. Raises StoreError."""
        self.path = path
        self._lock = threading.Lock()
        self._db = schema.readonly(path)
        self._plain = fetch_from(self._db, path)
        self._known: dict[Seq, EndedRow] = {}
        self._history = EventHistory(self._fetch, path)
        self._fetch(EventRow.select(EventRow.n).limit(1))

    def _fetch(self, query: Any) -> list[rows.Row]:
        with self._lock:
            return self._plain(query)

    def ended(
        self,
        *,
        seqs: Sequence[Seq] | None = None,
        queue: str | None = None,
        owner: str | None = None,
        since: Instant | None = None,
    ) -> Iterator[EndedRow]:
        """Ended requests that satisfy all that is given: in the order of ``seqs``, else as they ended. Those
        that were rotated into files are among them."""
        if seqs is not None and len(seqs) == 1 and (queue, owner, since) == (None, None, None):
            found = self._one_ended(seqs[0])
            return iter(() if found is None else (found,))
        return self._history.ended(seqs=seqs, queue=queue, owner=owner, since=since)

    def newest(self, owner: str | None = None, since: Instant | None = None) -> Iterator[EndedRow]:
        """Return ended requests, the one that ended last first. ``since``: ended then or later."""
        return self._history.newest(owner, since)

    def _one_ended(self, seq: Seq) -> EndedRow | None:
        """An ended request, None where there is none of that number. What has ended stays as it is: the last
        ones asked for are remembered."""
        found = self._known.pop(seq, None)  # it is the last one known then
        if found is None:
            found = next(iter(self._history.ended(seqs=(seq,))), None)
        if found is not None:
            self._known[seq] = found
            while len(self._known) > KNOWN:
                self._known.pop(next(iter(self._known)), None)
        return found

    def events(
        self, after: int = 0, since: Instant | None = None, limit: int | None = None
    ) -> Iterator[Recorded]:
        """Events numbered above ``after``, of instant ``since`` or later, at most ``limit``, in order; those
        that were rotated into files are among them."""
        return self._history.events(after, since, limit)

    def kinds(self, kinds: Sequence[str], after: int = 0, upto: int | None = None) -> Iterator[Recorded]:
        """Events of these kinds, numbered above ``after`` and up to ``upto``, in order; in files too."""
        return self._history.kinds(kinds, after, upto)

    def oldest(self, since: Instant) -> Instant | None:
        """When the oldest of the requests was submitted that had not ended before ``since``; None: there are
        none."""
        return self._history.oldest(since)

    def blob(self, digest: str) -> bytes:
        """A script or environment. Raises KeyError."""
        return self._history.blob(digest)

    def blobs(self, digests: Collection[str]) -> dict[str, bytes]:
        """Those scripts and environments that are in the database, not those in files."""
        return self._history.blobs(digests)

    def settings(self, path: str) -> Any:
        """One object of the settings there is one of, by its path (``backup``), as it was last committed."""
        found = self._fetch(SettingsRow.select(SettingsRow.value).where(SettingsRow.path == path))
        values = rows.decoded(found[0][0]) if found else {}
        kind = registry.object_of(path)
        return kind.one(configure.load({path: values})) if kind is not None else None

    def site(self) -> Site:
        """A copy of the site as of the last commit, nobody else's. Raises StoreError."""
        with self._lock:
            try:
                return load_site(schema.connection(self._db))
            except (sqlite3.Error, msgspec.MsgspecError, KeyError, ValueError) as error:
                raise StoreError(f"{self.path} cannot be read: {plain(error)}") from error

    def problems(self) -> list[str]:
        """What SQLite's ``integrity_check`` finds wrong; nothing when the file is sound."""
        with self._lock:
            found = schema.connection(self._db).execute("PRAGMA integrity_check(5)").fetchall()
        return [str(row[0]) for row in found if row[0] != "ok"]

    def archives(self) -> list[Archive]:
        """The files that hold what was rotated out of the database."""
        return [one for kind in ("events", "requests", "blobs") for one in self._history.archives(kind)]

    def damaged_archives(self) -> list[str]:
        """What is wrong with those files, each read whole."""
        folder = places.history(self.path)
        found = (archive.check(folder / one.name, one) for one in self.archives())
        return [text for text in found if text is not None]

    def backup(self, path: Path) -> int:
        """Copies the database as it is now to ``path``, which must not be there, checked; commits go on
        meanwhile. Its size. Raises StoreError."""
        try:
            return copies.hand_out(self.path, path)
        except copies.SPOILT as error:
            raise StoreError(f"{path} could not be written: {plain(error)}") from error

    def close(self) -> None:
        """Closes the connection."""
        with self._lock:
            self._db.close()

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
