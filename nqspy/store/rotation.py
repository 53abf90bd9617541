"""Rotation: rows older than the site wants to keep move from the database into files of the history.

Each file takes the same steps: it is written and synced; the table ``archives`` names it; its rows are
deleted (by the hundred); it is marked as cleared. A kill between two steps loses nothing and moves nothing
twice: the next round deletes the rows of a file that is named and not cleared, and writes a file anew that is
not named.

It has a connection and a thread of its own. It writes only while it holds the journal's ``turn``, a few
milliseconds at a time, with a pause for the engine in between."""

import filecmp
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import peewee
from msgspec.structs import astuple, replace

from nqspy.model.ids import Instant
from nqspy.model.keys import ARRAYS, PLAIN
from nqspy.store import archive, places, schema
from nqspy.store.archive import Archive
from nqspy.store.errors import as_store_error
from nqspy.store.history import SLICE
from nqspy.store.rows import Row, in_slices
from nqspy.store.stored import Pair, digests_of, rows_named

EVENTS = 5_000
"""Most events in one file: to read one of them, the whole file is read."""
REQUESTS = 2_000
"""Most requests in one file: to read one of them, the whole file is read."""
BLOBS = 500
"""Most blobs in one file."""
BATCH = 100
"""Rows deleted in one transaction, while the journal's lock is held."""
PAUSE = 0.01
"""Seconds between two transactions of a round, in which the engine can commit."""

_PRAGMAS = (
    ("synchronous", "normal"),  # what a power cut brings back of deleted rows is deleted again
    ("wal_autocheckpoint", 0),  # done between the turns
    ("cache_size", -4096),
    ("temp_store", "memory"),
)
_FILE = """INSERT OR REPLACE INTO archives (name, kind, first, last, since, until, rows, digest, cleared)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)"""
_EVENTS = "SELECT n, at, kind, version, body FROM events WHERE n BETWEEN ? AND ? ORDER BY n"
_DELETE_EVENT = "DELETE FROM events WHERE n = ?"
_DELETE_REQUEST = "DELETE FROM requests WHERE seq = ? AND ended IS NOT NULL"
_NOTHING = "SELECT ?"
_ARCHIVES = "SELECT name, kind, first, last, since, until, rows, digest, cleared FROM archives"
_HAS_OLD = """SELECT EXISTS(SELECT 1 FROM events WHERE at < ?1)
OR EXISTS(SELECT 1 FROM requests WHERE ended IS NOT NULL AND ended < ?1)"""
_OLD_EVENTS = "SELECT coalesce((SELECT min(n) FROM events WHERE at >= ?) - 1, (SELECT max(n) FROM events), 0)"
_OLD_REQUESTS = f"""SELECT {", ".join(archive.REQUEST)} FROM requests
WHERE ended IS NOT NULL AND ended < ? ORDER BY ended, seq LIMIT {REQUESTS}"""  # noqa: S608 - our own words
_USED = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, \
pragma_page_size"
_BEYOND = """SELECT coalesce(
(SELECT at FROM events WHERE n > (SELECT max(n) FROM events) - ? ORDER BY n LIMIT 1), 0)"""
_DEAD_KEYS = """SELECT owner, key, seqs FROM keys WHERE (owner, key) > (?, ?) AND NOT EXISTS
(SELECT 1 FROM json_each(keys.seqs) AS each JOIN requests ON requests.seq = each.value)
ORDER BY owner, key LIMIT ?"""
_NAMED = """SELECT owner, json_extract(spec, '$.script'), json_extract(spec, '$.environment'),
'=' || CASE WHEN seq > :arrays THEN seq - :arrays ELSE seq END FROM requests
WHERE (seq > :low AND seq <= :high) OR (seq > :low + :arrays AND seq <= :high + :arrays)"""
_EXITS = """SELECT json_extract(value, '$[1]') FROM events, json_each(body, '$.files')
WHERE kind = 'exits_loaded'"""
_LOADED_EXITS = "SELECT value FROM state, json_each(rest, '$.loaded_exits')"
_TOP = """SELECT max(coalesce((SELECT max(seq) FROM requests WHERE seq <= ?), 0),
coalesce((SELECT max(seq) FROM requests WHERE seq > ?) - ?, 0))"""
"""The greatest number of a request that is no index of an array: indices share the blobs of their array."""

Failpoint = Callable[[str], None]


@dataclass(slots=True)
class Rotated:
    """Numbers of rows that a round moved into files, by kind (``keys``: deleted), and of files that it wrote;
    True if it moved or deleted anything."""

    events: int = 0
    requests: int = 0
    blobs: int = 0
    keys: int = 0
    files: int = 0

    def __bool__(self) -> bool:
        return bool(self.files or self.keys)


class Rotation:
    """Round that moves old rows of the database at ``path`` into files, in the thread that makes it.
    ``turn``: the journal's lock; ``forget``: gets digests of deleted blobs; ``pause``: called after each
    write, an exception of it ends the round; ``failpoint``: gets the name of each step done (for tests)."""

    def __init__(
        self, path: Path, turn: threading.Lock, forget: Callable[[Iterable[str]], None],
        pause: Callable[[], None] = lambda: None, failpoint: Failpoint = lambda step: None,
    ) -> None:  # fmt: skip
        self._folder = places.history(path)
        self._path = path
        self._turn = turn
        self._forget = forget
        self._pause = pause
        self._step = failpoint
        self._rotated = Rotated()
        self._connection: sqlite3.Connection

    def run(self, before: Instant) -> Rotated:
        """Move events and ended requests older than ``before`` into files, then blobs that no record names;
        return the numbers moved. If nothing is so old, blobs stay too. Raises StoreError."""
        stopped = as_store_error(
            f"{self._folder}: rotation stopped", sqlite3.Error, peewee.PeeweeException, OSError
        )
        with stopped, closing(schema.database(self._path, _PRAGMAS)) as db:
            self._connection = schema.connection(db)
            self._finish()
            if self._one(_HAS_OLD, before):
                places.make_folder(self._folder)
                self._events(before)
                self._requests(before)
                self._keys()
                self._blobs()
            self._checkpoint()
        return self._rotated

    def beyond(self, size: int) -> Instant:
        """Return the instant before which events must move so that the database has about ``size`` bytes; 0
        if it is small enough. Each event counts with the average bytes of an event. Raises StoreError."""
        errors = as_store_error(f"{self._path}: its size is not known", sqlite3.Error, peewee.PeeweeException)
        with errors, schema.reading(self._path) as self._connection:
            used, events = self._one(_USED), self._one("SELECT count(*) FROM events")
            return Instant(self._one(_BEYOND, events * size // used) if used > size else 0)

    def _one(self, statement: str, *values: Any) -> Any:
        return self._connection.execute(statement, values).fetchone()[0]

    def _file(self, one: Archive, lines: Iterator[str]) -> Archive:
        """Write a file and name it in ``archives``; return its row."""
        target = self._folder / one.name
        new = target.with_name(target.name + ".new")
        count, digest = archive.write(new, lines)
        made = replace(one, rows=count, digest=digest)
        wrong = archive.check(new, made)
        if wrong is not None:
            raise OSError(wrong)
        if target.exists() and not filecmp.cmp(target, new, shallow=False):
            number = 1  # no row names this file: it is from before an older backup was restored
            while (other := target.with_name(f"{target.name}.{number}")).exists():
                number += 1
            target.rename(other)
        places.put_in_place(new, target)
        self._step("written")
        self._in_turn(_FILE, [astuple(made)[:8]])
        self._rotated.files += 1
        self._step("named")
        return made

    def _clear(self, one: Archive, statement: str, keys: Sequence[Row]) -> None:
        """Delete the rows that a named file holds."""
        for some in in_slices(list(keys), BATCH):
            self._in_turn(statement, some)
            self._step("deleted")
        self._in_turn("UPDATE archives SET cleared = 1 WHERE name = ?", [(one.name,)])
        self._step("cleared")
        self._checkpoint()

    def _in_turn(self, statement: str, rows: Sequence[Row] | Callable[[], Sequence[Row]]) -> int:
        """Run a statement for rows, given or returned by a function, with the lock held; return their
        number."""
        with self._turn:
            connection = self._connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                some = rows() if callable(rows) else rows
                connection.executemany(statement, some)
                connection.execute("COMMIT")
            except BaseException:
                connection.rollback()
                raise
        self._pause()
        return len(some)

    def _checkpoint(self) -> None:
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _finish(self) -> None:
        """Delete the rows of files that a killed round has named and not cleared."""
        for row in self._connection.execute(f"{_ARCHIVES} WHERE cleared = 0").fetchall():
            one = Archive(*row)
            wrong = archive.check(self._folder / one.name, one)
            if wrong is not None:
                raise OSError(f"{wrong}; its rows stay in the database")
            lines = archive.read(self._folder / one.name)
            if one.kind == "events":
                self._clear(one, _DELETE_EVENT, [(n,) for n in range(one.first, one.last + 1)])
            elif one.kind == "requests":
                self._clear(one, _DELETE_REQUEST, [(archive.request_of(line)["seq"],) for line in lines])
            else:
                self._clear(one, _NOTHING, [])  # blobs that remain are found again

    def _events(self, before: Instant) -> None:
        last = self._one(_OLD_EVENTS, before)
        first = self._one("SELECT coalesce(max(last), 0) + 1 FROM archives WHERE kind = 'events'")
        while first <= last:
            until = min(first + EVENTS - 1, last)
            since, latest = self._connection.execute(
                "SELECT min(at), max(at) FROM events WHERE n BETWEEN ? AND ?", (first, until)
            ).fetchone()
            name = f"events-{first:09d}-{until:09d}.jsonl.gz"
            made = self._file(
                Archive(name, "events", first, until, since, latest, 0, ""), self._event_lines(first, until)
            )
            self._clear(made, _DELETE_EVENT, [(n,) for n in range(first, until + 1)])
            self._rotated.events += made.rows
            first = until + 1

    def _event_lines(self, first: int, last: int) -> Iterator[str]:
        for start in range(first, last + 1, SLICE):
            found = self._connection.execute(_EVENTS, (start, min(last, start + SLICE - 1))).fetchall()
            yield from map(archive.event_line, found)
            self._pause()

    def _requests(self, before: Instant) -> None:
        while found := self._connection.execute(_OLD_REQUESTS, (before,)).fetchall():
            seqs, ends = sorted(row[0] for row in found), (found[0][1], found[-1][1])
            name = f"requests-{seqs[0]:09d}-{seqs[-1]:09d}-{ends[0]}.jsonl.gz"
            one = Archive(name, "requests", seqs[0], seqs[-1], *ends, 0, "")
            made = self._file(one, map(archive.request_line, found))
            self._clear(made, _DELETE_REQUEST, [(seq,) for seq in seqs])
            self._rotated.requests += made.rows

    def _keys(self) -> None:
        """Delete the keys of submissions that have no row of a request left; the events still have them."""
        place: Row = ("", "")
        while found := self._connection.execute(_DEAD_KEYS, (*place, BATCH)).fetchall():
            place = found[-1][:2]
            self._in_turn("DELETE FROM keys WHERE owner = ? AND key = ? AND seqs = ?", found)
            self._rotated.keys += len(found)
            self._step("keys")

    def _blobs(self) -> None:
        top = self._one(_TOP, PLAIN, ARRAYS, ARRAYS)
        pairs: set[Pair] = set()
        for low in range(0, top, SLICE):
            pairs |= self._named(low, min(top, low + SLICE))
            self._pause()
        # Bytes stored for users that no record of theirs names any more.
        every = self._connection.execute("SELECT owner, digest FROM kept").fetchall()
        for some in in_slices([pair for pair in every if pair not in pairs], BATCH):
            unused = partial(self._unused_pairs, some, top)
            self._in_turn("DELETE FROM kept WHERE owner = ? AND digest = ?", unused)
        named = digests_of(pairs) | self._digests(_EXITS) | self._digests(_LOADED_EXITS)
        blobs = [row[0] for row in self._connection.execute("SELECT digest FROM blobs ORDER BY digest")]
        for some in in_slices([digest for digest in blobs if digest not in named], BLOBS):
            self._file_blobs(some, top)

    def _named(self, low: int, high: int) -> set[Pair]:
        values = {"low": low, "high": high, "arrays": ARRAYS}
        return set(rows_named(self._connection.execute(_NAMED, values)))

    def _digests(self, statement: str) -> set[str]:
        return {digest for (digest,) in self._connection.execute(statement) if digest is not None}

    def _unused_pairs(self, pairs: Sequence[Row], top: int) -> Sequence[Row]:
        since = self._named(top, PLAIN)
        self._forget(())
        return [pair for pair in pairs if pair not in since]

    def _file_blobs(self, digests: list[str], top: int) -> None:
        name = f"blobs-{digests[0][:12]}-{digests[-1][:12]}-{top}.jsonl.gz"
        one = Archive(name, "blobs", 0, 0, 0, 0, 0, "")
        query, run = "SELECT digest, body, codec FROM blobs WHERE digest = ?", self._connection.execute
        made = self._file(one, (archive.blob_line(run(query, (digest,)).fetchone()) for digest in digests))
        for some in in_slices(digests, BATCH):
            unused = partial(self._unused_blobs, some, top)
            self._rotated.blobs += self._in_turn("DELETE FROM blobs WHERE digest = ?", unused)
            self._step("deleted")
        self._clear(made, _NOTHING, [])

    def _unused_blobs(self, digests: list[str], top: int) -> Sequence[Row]:
        # A request submitted meanwhile is committed already, or comes after us: we hold the lock.
        named = digests_of(self._named(top, PLAIN)) | self._digests(_LOADED_EXITS)
        unused = [digest for digest in digests if digest not in named]
        self._forget(unused)
        return [(digest,) for digest in unused]
