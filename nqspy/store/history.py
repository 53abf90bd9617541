"""The whole history: rows that were rotated into files, and rows in the tables. Rows move into files while
others read. So after each query of a table the list of files is read again: if it has grown, rows may have
been missed, and the new files are searched first."""

import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Self

import msgspec
import peewee

from nqspy.model.events import Recorded
from nqspy.model.ids import Instant, Seq
from nqspy.ports import EndedRow
from nqspy.store import archive, places, rows
from nqspy.store.archive import Archive
from nqspy.store.errors import StoreError, as_store_error
from nqspy.store.schema import ArchiveRow, BlobRow, EventRow, RequestRow

SLICE = 500
"""Rows read by one query. Between two queries no transaction is open: the write-ahead log can be emptied."""

Fetch = Callable[[Any], list[rows.Row]]

_A, _B, _E, _R = ArchiveRow, BlobRow, EventRow, RequestRow
_EVENTS = _E.select(_E.n, _E.at, _E.kind, _E.body).order_by(_E.n)
_ALL = [getattr(_A, name) for name in Archive.__struct_fields__]
_NAMES = ("seq", "state", "queue", "submitted", "spec", "live", "ending", "ended", "owner")
_ENDED = [getattr(_R, name) for name in _NAMES]

_LARGEST = 2**63 - 1
"""The largest integer that SQLite can store: no request has a larger number."""

Position = tuple[int, int]
"""Instant of an end, and number of the request: requests are listed in this order."""


def fetch_from(db: peewee.SqliteDatabase, path: Path) -> Fetch:
    """Return a function that runs a query on ``db`` and returns its rows as tuples; it raises StoreError."""

    def fetch(query: Any) -> list[rows.Row]:
        with as_store_error(f"{path} cannot be read", sqlite3.Error, peewee.PeeweeException):
            return list(query.tuples().execute(db))

    return fetch


class EventHistory:
    """Reads events and ended requests of the database at ``path``: from its tables by ``fetch``, and from
    files of rotated rows. Raises StoreError wherever one of these cannot be read."""

    def __init__(self, fetch: Fetch, path: Path) -> None:
        self._fetch = fetch
        self._folder = places.history(path)

    def close(self) -> None:
        """Do nothing; `Reader` and the journal close their connections here."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def files_of(self, kind: str, *where: Any) -> list[Archive]:
        """Return the files of a kind (events, requests, blobs) that satisfy ``where``, oldest first."""
        query = _A.select(*_ALL).where(_A.kind == kind, *where).order_by(_A.since, _A.until, _A.first)
        return [Archive(*row) for row in self._fetch(query)]

    def _lines(self, one: Archive) -> list[bytes]:
        return archive.read(self._folder / one.name)

    # ------------------------------------------------------------ events

    def events(
        self, after: int = 0, since: Instant | None = None, limit: int | None = None
    ) -> Iterator[Recorded]:
        """Yield the events with numbers above ``after`` that happened at ``since`` or later (None: all), in
        order of numbers, at most ``limit``; from files too. Raises StoreError."""
        size = SLICE if limit is None else max(1, min(SLICE, limit))
        query = first = _EVENTS
        if since is not None:
            # Each row is compared: after a clock was set back some later events are older. The unary plus
            # keeps SQLite on the order of n. The index finds the first event, but reads all that follow.
            query = query.where(peewee.NodeList((peewee.SQL("+"), _E.at)) >= since)
            first = query.where(_E.n >= _E.select(peewee.fn.MIN(_E.n)).where(_E.at >= since))
        return islice(self._events(after, size, query, first, since or 0), limit)

    def kinds(self, kinds: Sequence[str], after: int = 0, upto: int | None = None) -> Iterator[Recorded]:
        """Yield events of these kinds with numbers above ``after`` up to ``upto`` (None: all), in order."""
        query = _EVENTS.where(_E.kind.in_(kinds))
        found = self._events(after, SLICE, query, query, 0, kinds)
        return found if upto is None else takewhile(lambda recorded: recorded.n <= upto, found)

    def _events(
        self, after: int, size: int, query: Any, first: Any, since: int, kinds: Sequence[str] | None = None
    ) -> Iterator[Recorded]:
        """Yield events with numbers above ``after``: the first ``size`` rows by the query ``first``, others
        by ``query``. Those in files must be from the instant ``since`` on, and of ``kinds`` (None: all)."""
        while True:
            found = self._fetch(first.where(_E.n > after).limit(size))
            # Numbers have no gaps: rows that follow on what was read are not in a file.
            follows = kinds is None and found and found[-1][0] - after == len(found)
            files = [] if follows else self.files_of("events", _A.last > after)
            for one in sorted(files, key=lambda one: one.first):
                for recorded in map(archive.event_of, self._lines(one) if one.until >= since else ()):
                    fits = recorded.at >= since and (kinds is None or recorded.event.kind in kinds)
                    if recorded.n > after and fits:
                        yield recorded
                after = one.last
            if files:
                continue
            # The whole slice at once: decoding each event when it is used costs a twentieth more.
            yield from list(map(_event, found))
            if len(found) < size:
                return
            after, first = found[-1][0], query

    def oldest(self, since: Instant) -> Instant | None:
        """Return the earliest instant of submission of all requests that have not ended, or that ended at
        ``since`` or later; None if there is no such request."""
        there = _R.ended.is_null() | (_R.ended >= since)
        found = [self._fetch(_R.select(peewee.fn.MIN(_R.submitted)).where(there))[0][0]]
        for one in self.files_of("requests", _A.until >= since):
            found += [row[3] for row in map(_row_of, self._lines(one)) if row[7] >= since]
        return min((at for at in found if at is not None), default=None)

    # ------------------------------------------------------------ ended requests

    def ended(
        self, seqs: Sequence[Seq] | None = None, *, queue: str | None = None, owner: str | None = None,
        since: Instant | None = None,
    ) -> Iterator[EndedRow]:  # fmt: skip
        """Yield ended requests that satisfy all conditions given, from files too: in the order of ``seqs`` if
        given, else by their ends. ``since``: only those that ended at this instant or later."""
        shared = rows.SharedSpecs()
        wanted = _Wanted(queue, owner, since)
        found = self._by_time(wanted) if seqs is None else self._by_seq(wanted, list(seqs))
        return (rows.ended_of(row[:7], shared) for row in found)

    def newest(self, owner: str | None = None, since: Instant | None = None) -> Iterator[EndedRow]:
        """Yield ended requests, the latest end first, from files too; ``since``: only ends at or after it."""
        shared, wanted = rows.SharedSpecs(), _Wanted(None, owner, since)
        seen: set[Seq] = set()
        place: Position | None = None
        while found := self._fetch(wanted.slice(place, back=True)):
            seen.update(row[0] for row in found)
            yield from (rows.ended_of(row[:7], shared) for row in found)
            place = (found[-1][7], found[-1][0])
        # Rows that moved into files meanwhile are the oldest: they are read from there.
        for one in reversed(self.files_of("requests", _A.until >= (since or 0))):
            lines = [row for row in self._wanted_lines(wanted, one) if row[0] not in seen]
            lines.sort(key=lambda row: (row[7], row[0]), reverse=True)
            yield from (rows.ended_of(row[:7], shared) for row in lines)

    def _by_seq(self, wanted: "_Wanted", seqs: list[Seq]) -> Iterator[rows.Row]:
        found: dict[Seq, rows.Row] = {}
        seqs = [seq for seq in seqs if seq <= _LARGEST]
        for some in rows.in_slices(seqs, SLICE):
            found |= {row[0]: row for row in self._fetch(wanted.query().where(_R.seq.in_(some)))}
        missing = [seq for seq in seqs if seq not in found]
        if missing:
            found |= self._filed(wanted, missing)
        yield from (found[seq] for seq in seqs if seq in found)

    def _filed(self, wanted: "_Wanted", seqs: list[Seq]) -> dict[Seq, rows.Row]:
        """Return rows of these requests from files. Lines begin with the number: only wanted ones are
        decoded."""
        found: dict[Seq, rows.Row] = {}
        files = self.files_of("requests", _A.first <= max(seqs), _A.last >= min(seqs))
        for one in files:
            heads = {b'{"seq":%d,' % s: s for s in seqs if one.first <= s <= one.last and s not in found}
            for line in self._lines(one) if heads else ():
                if line[: line.index(b",") + 1] in heads:
                    row = _row_of(line)
                    if wanted.fits(row):
                        found[row[0]] = row
        return found

    def _by_time(self, wanted: "_Wanted") -> Iterator[rows.Row]:
        known: set[str] = set()
        twice: set[Seq] = set()
        place: Position | None = None
        while True:
            for one in self.files_of("requests", _A.until >= (wanted.since or 0)):
                if one.name not in known:
                    known.add(one.name)
                    for row in self._wanted_lines(wanted, one):
                        if not one.cleared:
                            twice.add(row[0])
                        if place is None or (row[7], row[0]) > place:
                            yield row
            found = self._fetch(wanted.slice(place))
            if {one.name for one in self.files_of("requests", _A.until >= (wanted.since or 0))} - known:
                continue
            yield from (row for row in found if row[0] not in twice)
            if len(found) < SLICE:
                return
            place = (found[-1][7], found[-1][0])

    def _wanted_lines(self, wanted: "_Wanted", one: Archive) -> list[rows.Row]:
        return [row for row in map(_row_of, self._lines(one)) if wanted.fits(row)]

    # ------------------------------------------------------------ blobs

    def blob(self, digest: str) -> bytes:
        """Return the script, environment or exit with this digest. Raises KeyError if it is not stored."""
        query = _B.select(_B.body, _B.codec).where(_B.digest == digest)
        for body, codec in self._fetch(query):
            return rows.blob_body(body, codec)
        for one in self.files_of("blobs"):
            mark = b'{"digest": "%b"' % digest.encode()
            for line in self._lines(one):
                if line.startswith(mark):
                    return archive.blob_of(line)
        raise KeyError(digest)

    def blobs(self, digests: Collection[str]) -> dict[str, bytes]:
        """Return by digest the blobs with these digests that are in the database, not those in files."""
        query = _B.select(_B.digest, _B.body, _B.codec).where(_B.digest.in_(list(digests)))
        return {digest: rows.blob_body(body, codec) for digest, body, codec in self._fetch(query)}


def _event(row: rows.Row) -> Recorded:
    wrong = msgspec.MsgspecError, LookupError, TypeError, ValueError, RecursionError
    with as_store_error(f"event {row[0]} of the journal cannot be read", *wrong):
        return rows.event_of(row)


class _Wanted:
    """Conditions on ended requests: queue, owner, and the earliest end (None: any)."""

    def __init__(self, queue: str | None, owner: str | None, since: Instant | None) -> None:
        self.queue, self.owner, self.since = queue, owner, since

    def query(self) -> Any:
        """Return the query of the table's rows that satisfy the conditions."""
        query = _R.select(*_ENDED).where(_R.ended.is_null(False))
        if self.queue is not None:
            query = query.where(_R.queue == self.queue)
        if self.owner is not None:
            query = query.where(_R.owner == self.owner)
        return query if self.since is None else query.where(_R.ended >= self.since)

    def slice(self, place: Position | None, back: bool = False) -> Any:
        """Return the query of the next slice behind ``place`` in the order of ends; ``back``: backwards."""
        order = (_R.ended.desc(), _R.seq.desc()) if back else (_R.ended, _R.seq)
        query = self.query().order_by(*order).limit(SLICE)
        if place is None:
            return query
        ended, seq = place
        if back:
            return query.where((_R.ended <= ended) & ((_R.ended < ended) | (_R.seq < seq)))
        return query.where((_R.ended >= ended) & ((_R.ended > ended) | (_R.seq > seq)))

    def fits(self, row: rows.Row) -> bool:
        """True if a row from a file satisfies the conditions."""
        return (
            (self.queue is None or row[2] == self.queue)
            and (self.owner is None or row[8] == self.owner)
            and (self.since is None or row[7] >= self.since)
        )


def _row_of(line: bytes) -> rows.Row:
    named = archive.request_of(line)
    if '"attempt":' in named["live"] and '"attempts":' not in named["live"]:
        reason = "is of format 4 or earlier: nqspy of commit e13b55b9 reads it"
        raise StoreError(f"request {named['seq']} of the history {reason}")
    return tuple(named[name] for name in _NAMES)
