"""SqliteJournal: the journal door on SQLite. One commit is one transaction, durable when it returns."""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import msgspec
import peewee

from nqspy.model import configure
from nqspy.model import events as ev
from nqspy.model.ids import Seq
from nqspy.model.site import Site
from nqspy.ports import Batch, CommitFailed
from nqspy.store import copies, places, rows, schema
from nqspy.store.errors import DamagedStore, StoreError, as_store_error, is_locked, plain
from nqspy.store.history import EventHistory, fetch_from
from nqspy.store.open_mark import OpenMark
from nqspy.store.opening import open_database
from nqspy.store.reserve import PIECE, Reserve, capacity
from nqspy.store.stored import CommitStep, StoredBytes

_SETTING = """INSERT INTO settings (path, value) VALUES (?, ?)
ON CONFLICT (path) DO UPDATE SET value = excluded.value"""
_FIND_KEY = "SELECT digest, seqs FROM keys WHERE owner = ? AND key = ?"

_REMEMBERED_BLOBS = 10_000
_LARGE = 1_000
"""Events and rows of a commit after which the database's page cache is emptied."""
CAPACITY = 1_000
"""Calls of `capacity` after which the size of the file system is read again."""
_MAKES_ROOM = {ev.Deleted, ev.Deleting, ev.Ended, ev.Held, ev.SettingsChanged, ev.DaemonStarted}
_NEEDS_ROOM = {ev.Submitted, ev.Starting}
"""Events that may use the disk reserve if all events of the commit do, and events that must not use it."""

_UNREADABLE = (
    sqlite3.DatabaseError, peewee.DatabaseError, msgspec.MsgspecError, KeyError, TypeError, ValueError,
)  # fmt: skip


class SqliteJournal(EventHistory):
    """The store of one home. It belongs to the thread that opened it; other threads use a `Reader`.

    ``reserve``: room that is given up on a full disk for commits that free room. ``failpoint``: called in
    each commit just before it becomes durable; an exception of it undoes the commit (for tests and drills).
    ``turn``: lock of all that write to the database: this journal, and rotation for some ms at a time.
    ``lost``, after `load`: how many events a damaged log has lost, and the next request's number then; None
    if none. ``ignored``: stored settings that no feature declares."""

    remembers = True

    _mark: OpenMark

    def __init__(self, path: Path, db: peewee.SqliteDatabase) -> None:
        """Use `SqliteJournal.open` instead."""
        super().__init__(fetch_from(db, path), path)
        self.lost: tuple[int, Seq] | None = None
        self.ignored: list[str] = []
        self.path = path
        self.failpoint: Callable[[], None] | None = None
        self._db = db
        self._connection = schema.connection(db)
        self.turn = threading.Lock()
        self._hasty = False
        self._reads = 0
        self._capacity: int | None = None
        self._blobs: set[str] = set()
        self._stored = StoredBytes()
        self.reserve: Reserve | None = None
        self._accounts = int(self._connection.execute("SELECT count(*) FROM accounts").fetchone()[0])

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the database, or make a new one (mode 0600). Raises DamagedStore, OtherFormat, StoreError."""
        db = open_database(path)
        try:
            journal = cls(path, db)
            journal._mark = OpenMark(path)
            return journal
        except OSError as error:
            db.close()
            raise StoreError(f"{places.mark(path)} cannot be written: {plain(error)}") from error
        except sqlite3.Error as error:
            db.close()
            raise DamagedStore(path, str(error)) from error

    def commit(self, batch: Batch, site: Site) -> None:
        """Write the batch and the rows of all objects in ``site.touched`` durably, then clear ``touched``.
        Raises CommitFailed: then nothing was written, and the journal can still be used."""
        with self.turn:
            try:
                changes = rows.gather(batch, site, self._blobs, self._accounts)
            except (TypeError, ValueError, OverflowError) as error:
                raise CommitFailed(f"an event cannot be written: {plain(error)}") from error
            step, tries = self._stored.step(batch.events, site), 0
            while True:
                try:
                    self._transaction(changes, step)
                    break
                except (sqlite3.Error, peewee.PeeweeException, OSError, OverflowError) as error:
                    if not self._makes_do(error, batch, tries):
                        passing = is_locked(error)
                        if passing:
                            self._wait_for_locks(schema.LOCKED_WAIT)
                        text = f"nothing was written to {self.path}: {plain(error)}"
                        raise CommitFailed(text, passing) from error
                    tries += 1
            if tries:
                self.reserve_room()
            if self._hasty:
                self._wait_for_locks(schema.LOCK_WAIT)
            self._mark.note(site.n, site.next_seq)
            self._stored.done(step)
            if len(self._blobs) > _REMEMBERED_BLOBS:
                self._blobs.clear()
            self._blobs |= batch.blobs.keys()
            self._blobs -= step.dropped
            self._accounts = len(site.accounts)
            site.touched.clear()
            if sum(map(len, changes.rows.values())) > _LARGE:
                with contextlib.suppress(sqlite3.Error):  # it is committed
                    self._connection.execute("PRAGMA shrink_memory")

    def _wait_for_locks(self, seconds: float) -> None:
        """Set how long (s) commits wait for another program's lock. `commit` shortens the time after a wait
        in vain, and restores it after a success."""
        with contextlib.suppress(sqlite3.Error, peewee.PeeweeException):
            connection = self._connection = schema.connection(self._db)
            connection.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")
            self._hasty = seconds < schema.LOCK_WAIT

    def reserve_room(self) -> None:
        """Allocate disk room for the database's log and for the reserve, as far as there is any."""
        if self.reserve is not None:
            self.reserve.lengthen(places.log(self.path))
            self.reserve.fill()

    def _makes_do(self, error: Exception, batch: Batch, tries: int) -> bool:
        """True if a commit that failed on a full disk is to be tried again. First the log is begun anew,
        which needs no room; then each further try gives up a larger piece of the reserve."""
        if self.reserve is None or not self.reserve.lacks_room(error) or not self.reserve.needed():
            return False
        self.reserve.failed()
        kinds = {type(recorded.event) for recorded in batch.events}
        if not kinds & _MAKES_ROOM or kinds & _NEEDS_ROOM:
            return False
        more_room = tries == 0 or self.reserve.lend(PIECE << (tries - 1))
        with contextlib.suppress(sqlite3.Error, peewee.PeeweeException):
            schema.connection(self._db).execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        return more_room

    def _transaction(self, changes: rows.RowChanges, step: CommitStep) -> None:
        connection = self._connection = schema.connection(self._db)
        written = False
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._write(changes)
            self._stored.write(connection, step)
            if self.failpoint is not None:
                self.failpoint()
            written = True
            connection.execute("COMMIT")
        except BaseException:
            self._undo()
            if written:
                self._cover()
            raise

    def _write(self, changes: rows.RowChanges) -> None:
        connection = self._connection
        for statement, some in changes.rows.items():
            if some:
                connection.executemany(statement, some)
        for path, value in changes.settings:
            if value is None:
                connection.execute("DELETE FROM settings WHERE path = ?", (path,))
            else:
                connection.execute(_SETTING, (path, value))
        for head, order in changes.order.items():
            stored = connection.execute(
                "SELECT path, value FROM settings WHERE path GLOB ? ORDER BY position", (f"{head}/*",)
            ).fetchall()
            if [path for path, _ in stored] != order:
                # A transaction deleted an object and made it again: it must be the last one.
                values = dict(stored)
                connection.executemany("DELETE FROM settings WHERE path = ?", [(path,) for path in values])
                connection.executemany(_SETTING, [(path, values[path]) for path in order])

    def _undo(self) -> None:
        try:
            self._connection.rollback()
        except sqlite3.Error:
            # Closing a connection rolls back where this could not; the next commit opens another.
            self._db.close()

    def _cover(self) -> None:
        """Overwrite a commit that failed at its sync: it stands complete behind the end of the log, and after
        a crash SQLite would take it for committed. This writes an empty transaction without a sync."""
        try:
            connection = self._connection = schema.connection(self._db)
            connection.execute("PRAGMA synchronous = NORMAL")
            try:
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"PRAGMA user_version = {version}")
                connection.execute("COMMIT")
            finally:
                connection.rollback()
                connection.execute("PRAGMA synchronous = FULL")
        except (sqlite3.Error, peewee.PeeweeException):
            self._undo()  # the disk accepts nothing at all; the next commit overwrites it

    def load(self) -> Site:
        """Return the site as of the last commit; set ``lost`` and ``ignored``. Raises DamagedStore."""
        try:
            self._connection = schema.connection(self._db)  # a failed commit may have closed the connection
            site = rows.load_site(self._connection)
            self.ignored = list(configure.ignored(rows.setting_rows(self._connection)))
        except _UNREADABLE as error:
            raise DamagedStore(self.path, str(error)) from error
        before = self._mark.before
        if before is not None and before.n > site.n:
            self.lost = before.n - site.n, before.next_seq
        self._accounts = len(site.accounts)
        self._stored.load(site)
        return site

    def find_key(self, owner: str, key: str) -> tuple[str, tuple[Seq, ...]] | None:
        """Return digest and request numbers of the owner's earlier submission with this key, or None."""
        row = self._asked(lambda: self._connection.execute(_FIND_KEY, (owner, key)).fetchone())
        return None if row is None else (row[0], tuple(msgspec.json.decode(row[1])))

    def forget_blobs(self, digests: Iterable[str]) -> None:
        """Note that blobs were deleted: later submissions must write them again. Call it with `turn` held."""
        self._blobs.difference_update(digests)
        self._stored.forget()

    def stored_bytes(self, owner: str) -> int:
        """Return the bytes of a user's scripts, environments and large specifications. Raises StoreError."""
        return int(self._asked(lambda: self._stored.total(self._connection, owner)))

    def has_blob(self, owner: str, digest: str) -> bool:
        """True if the blob with this digest is counted as stored for the user. Raises StoreError."""
        return bool(self._asked(lambda: self._stored.has(self._connection, owner, digest)))

    def _asked(self, read: Callable[[], Any]) -> Any:
        with as_store_error(f"{self.path} cannot be read", sqlite3.Error):
            return read()

    def capacity(self) -> int | None:
        """Return the bytes of the database's file system, read anew every `CAPACITY` calls; None: unknown."""
        if self._reads % CAPACITY == 0:
            try:
                self._capacity = capacity(self.path.parent)
            except OSError:
                self._capacity = None
        self._reads += 1
        return self._capacity

    def low(self) -> bool:
        """True if the disk is so full that only commits that free room are accepted; False if unknown."""
        try:
            return self.reserve is not None and self.reserve.low()
        except OSError:
            return False

    def backup(self, path: Path) -> None:
        """Copy the database as it is now to ``path``, whole or not at all. Raises StoreError."""
        with as_store_error(f"{path} could not be written", *copies.SPOILT):
            copies.copy_to(self.path, path)

    def trace(self, callback: Callable[[str], None]) -> None:
        """Call ``callback`` from now on with each SQL statement before it runs (for tests and drills)."""
        self._connection.set_trace_callback(callback)

    def close(self) -> None:
        """Close the database and remove its mark. Unless a reader is open, SQLite merges its log into it."""
        self._db.close()
        self._mark.clear()
