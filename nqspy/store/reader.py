"""Reading beside the writer: ended requests and the history, from any thread, without stopping commits."""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import peewee

from nqspy.model.events import Recorded
from nqspy.model.ids import Instant, Seq
from nqspy.ports import EndedRow
from nqspy.store import rows, schema
from nqspy.store.errors import StoreError, plain
from nqspy.store.opening import put_in_place
from nqspy.store.schema import BlobRow, EventRow, RequestRow

SLICE = 500
"""Rows read at a time. Between slices no read transaction is open: a slow reader never keeps the write-ahead
log from being emptied."""

Fetch = Callable[[Any], list[rows.Row]]

_R = RequestRow
_ENDED = (_R.seq, _R.state, _R.queue, _R.submitted, _R.spec, _R.live, _R.ending)


def fetch_from(db: peewee.SqliteDatabase, path: Path) -> Fetch:
    """What runs a peewee query on ``db`` and gives its rows as tuples; it raises StoreError."""

    def fetch(query: Any) -> list[rows.Row]:
        try:
            return list(query.tuples().execute(db))
        except (sqlite3.Error, peewee.PeeweeException) as error:
            raise StoreError(f"{path} cannot be read: {plain(error)}") from error

    return fetch


def read_ended(
    fetch: Fetch,
    *,
    seqs: Sequence[Seq] | None = None,
    queue: str | None = None,
    owner: str | None = None,
    since: Instant | None = None,
) -> Iterator[EndedRow]:
    """Ended requests that satisfy all that is given: in the order of ``seqs``, else in the order in which
    they ended. ``since``: ended then or later."""
    query = _R.select(*_ENDED, _R.ended).where(_R.ended.is_null(False))
    if queue is not None:
        query = query.where(_R.queue == queue)
    if owner is not None:
        query = query.where(_R.owner == owner)
    if since is not None:
        query = query.where(_R.ended >= since)
    shared = rows.SharedSpecs()
    found = _by_time(fetch, query) if seqs is None else _by_seq(fetch, query, list(seqs))
    return (rows.ended_of(row[:-1], shared) for row in found)


def _by_seq(fetch: Fetch, query: Any, seqs: list[Seq]) -> Iterator[rows.Row]:
    for some in rows.in_slices(seqs, SLICE):
        found = {row[0]: row for row in fetch(query.where(_R.seq.in_(some)))}
        yield from (found[seq] for seq in some if seq in found)


def _by_time(fetch: Fetch, query: Any) -> Iterator[rows.Row]:
    ordered = query.order_by(_R.ended, _R.seq).limit(SLICE)
    found = fetch(ordered)
    while found:
        yield from found
        seq, ended = found[-1][0], found[-1][-1]
        later = (_R.ended > ended) | ((_R.ended == ended) & (_R.seq > seq))
        found = fetch(ordered.where((_R.ended >= ended) & later)) if len(found) == SLICE else []


def read_events(
    fetch: Fetch, after: int = 0, since: Instant | None = None, limit: int | None = None
) -> Iterator[Recorded]:
    """Events in order of their numbers, from ``after`` (not included) on; ``since``: of that instant or
    later; at most ``limit``."""
    if since is not None:
        first = fetch(EventRow.select(peewee.fn.MIN(EventRow.n)).where(EventRow.at >= since))[0][0]
        if first is None:
            return
        after = max(after, first - 1)
    left = limit
    while left is None or left > 0:
        size = SLICE if left is None else min(SLICE, left)
        found = fetch(_events(after, since, size))
        yield from map(_event, found)
        if len(found) < size:
            return
        after = found[-1][0]
        left = None if left is None else left - size


def read_kinds(
    fetch: Fetch, kinds: Sequence[str], after: int = 0, upto: int | None = None
) -> Iterator[Recorded]:
    """Events of these kinds in order of their numbers, from ``after`` (not included) up to ``upto``
    (included)."""
    row = EventRow
    query = row.select(row.n, row.at, row.kind, row.body).where(row.kind.in_(kinds))
    query = query.order_by(row.n).limit(SLICE)
    query = query if upto is None else query.where(row.n <= upto)
    size = SLICE
    while size == SLICE:
        found = fetch(query.where(row.n > after))
        yield from map(_event, found)
        size, after = len(found), found[-1][0] if found else after


def read_oldest(fetch: Fetch, since: Instant) -> Instant | None:
    """When the oldest of the requests was submitted that had not ended before ``since``; None: there are
    none."""
    there = _R.ended.is_null() | (_R.ended >= since)
    found: Instant | None = fetch(_R.select(peewee.fn.MIN(_R.submitted)).where(there))[0][0]
    return found


def _event(row: rows.Row) -> Recorded:
    try:
        return rows.event_of(row)
    except (msgspec.MsgspecError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"event {row[0]} of the journal cannot be read: {plain(error)}") from error


def _events(after: int, since: Instant | None, size: int) -> Any:
    query = EventRow.select(EventRow.n, EventRow.at, EventRow.kind, EventRow.body).where(EventRow.n > after)
    if since is not None:
        # Asked again: after a clock was set back some later events are older. The unary plus keeps SQLite on
        # the order of n.
        query = query.where(peewee.NodeList((peewee.SQL("+"), EventRow.at)) >= since)
    return query.order_by(EventRow.n).limit(size)


def read_blob(fetch: Fetch, digest: str) -> bytes:
    """A script or environment. Raises KeyError."""
    for body, codec in fetch(BlobRow.select(BlobRow.body, BlobRow.codec).where(BlobRow.digest == digest)):
        return rows.blob_body(body, codec)
    raise KeyError(digest)


def copy_to(connection: sqlite3.Connection, path: Path) -> None:
    """Writes a copy of the database to ``path`` (mode 0600), whole or not at all, as of one commit. Raises
    sqlite3.Error, OSError."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    new.touch(0o600, exist_ok=False)
    target = sqlite3.connect(new)
    try:
        connection.backup(target)
    finally:
        target.close()
    put_in_place(new, path)


class Reader:
    """A read-only connection of its own, for threads other than the engine's; several may share one."""

    def __init__(self, path: Path) -> None:
        """Opens the database that a journal has opened before. Raises StoreError."""
        self._lock = threading.Lock()
        self._db = schema.readonly(path)
        self._plain = fetch_from(self._db, path)
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
        """Ended requests that satisfy all that is given: in the order of ``seqs``, else as they ended."""
        return read_ended(self._fetch, seqs=seqs, queue=queue, owner=owner, since=since)

    def events(
        self, after: int = 0, since: Instant | None = None, limit: int | None = None
    ) -> Iterator[Recorded]:
        """Events numbered above ``after``, of instant ``since`` or later, at most ``limit``, in order."""
        return read_events(self._fetch, after, since, limit)

    def kinds(self, kinds: Sequence[str], after: int = 0, upto: int | None = None) -> Iterator[Recorded]:
        """Events of these kinds, numbered above ``after`` and up to ``upto``, in order."""
        return read_kinds(self._fetch, kinds, after, upto)

    def oldest(self, since: Instant) -> Instant | None:
        """When the oldest of the requests was submitted that had not ended before ``since``."""
        return read_oldest(self._fetch, since)

    def blob(self, digest: str) -> bytes:
        """A script or environment. Raises KeyError."""
        return read_blob(self._fetch, digest)

    def problems(self) -> list[str]:
        """What SQLite's ``integrity_check`` finds wrong; nothing when the file is sound."""
        with self._lock:
            found = schema.connection(self._db).execute("PRAGMA integrity_check(5)").fetchall()
        return [str(row[0]) for row in found if row[0] != "ok"]

    def backup(self, path: Path) -> None:
        """Copies the database as it is now to ``path``; commits go on meanwhile. Raises StoreError."""
        try:
            with self._lock:
                copy_to(schema.connection(self._db), path)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{path} could not be written: {plain(error)}") from error

    def close(self) -> None:
        """Closes the connection."""
        with self._lock:
            self._db.close()
