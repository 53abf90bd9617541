"""Backups: copies of the database in the folder ``backups``, made while the daemon writes, checked; only the
last few stay. A copy is one file that needs no other. Its name has the instant of the site's clock at which
it was made: ``nqs-20261121T030000Z.db``."""

import fcntl
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import peewee

from nqspy.model.ids import Instant
from nqspy.store import places, schema

_NAME = re.compile(r"nqs-(\d{8}T\d{6})Z(-[\w.-]+)?\.db$")
_FORM = "%Y%m%dT%H%M%S"

PAGES = 256
"""Pages copied between two calls of ``go_on``, which may end the copying."""

SPOILT = (sqlite3.Error, peewee.PeeweeException, OSError)
"""Errors of reading a file that is not a sound database."""


@dataclass(frozen=True, slots=True, order=True)
class Copy:
    """A backup: instant at which it was made, and its file."""

    at: Instant
    path: Path


def name_of(at: Instant) -> str:
    """Return the file name of a backup made at an instant: it shows the instant in UTC, to the second."""
    return f"nqs-{datetime.fromtimestamp(at // 1000, UTC):{_FORM}}Z.db"


def listed(path: Path) -> list[Copy]:
    """Return the backups of the database at ``path`` by the instants in their names, oldest first."""
    found = []
    try:
        entries = list(places.backups(path).iterdir())
    except OSError:
        return []
    for file in entries:
        match = _NAME.match(file.name)
        if match is None:
            continue
        with suppress(ValueError):  # digits that are no date: a file of another program
            moment = datetime.strptime(match[1], _FORM).replace(tzinfo=UTC)
            found.append(Copy(Instant(int(moment.timestamp()) * 1000), file))
    return sorted(found)


def by_age(path: Path) -> list[Copy]:
    """Return the backups of the database at ``path`` by modification time, oldest first: the instants in
    their names may be of a wrong clock."""
    written = []
    for copy in listed(path):
        with suppress(OSError):  # removed meanwhile
            written.append((copy.path.stat().st_mtime_ns, copy))
    return [copy for _, copy in sorted(written)]


def problem(file: Path) -> str | None:
    """Run ``integrity_check`` on a database that no process writes; return its first complaint, None if it is
    sound. The write-ahead log of a database that was not closed properly is read too."""
    try:
        if file.stat().st_size == 0:
            return "it is empty"
        with_log = places.log_size(file) > 0
        opened = schema.connection(schema.readonly(file)) if with_log else schema.snapshot(file)
        with closing(opened) as connection:
            if connection.execute("PRAGMA application_id").fetchone()[0] != schema.APPLICATION_ID:
                return "it is not a database of nqspy"
            found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    except SPOILT as error:
        return getattr(error, "strerror", None) or str(error)
    return None if found == "ok" else " ".join(str(found).split())


def newest_good(path: Path) -> Path | None:
    """Return the newest backup of the database at ``path`` that passes its check, None if no backup does."""
    return next((copy.path for copy in reversed(by_age(path)) if problem(copy.path) is None), None)


def copy_to(path: Path, target: Path, go_on: Callable[[], None] = lambda: None) -> None:
    """Copy the database, as of one commit, to the new file ``target`` (mode 0600), and check the copy;
    commits go on meanwhile. ``go_on`` is called after every `PAGES` pages: an exception of it ends the
    copying and leaves no file. Raises sqlite3.Error, OSError."""
    new = target.with_name(target.name + ".new")
    new.unlink(missing_ok=True)
    try:
        new.touch(0o600, exist_ok=False)
        _copy(path, new, go_on)
        wrong = problem(new)
        if wrong is not None:
            raise OSError(f"the copy does not pass its check: {wrong}")
        places.put_in_place(new, target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def hand_out(path: Path, target: Path) -> int:
    """Write a checked copy of the database to ``target``, a new file in any folder; return its size in bytes.
    It is made in the folder of the backups first, where no other user can exchange names. Raises
    sqlite3.Error, OSError."""
    folder = places.backups(path)
    staged = folder / "handed-out.db"
    with closing(places.Outside(target)) as outside:
        with places.as_owner(path.parent):
            places.make_folder(folder)
            with _alone(folder):
                try:
                    copy_to(path, staged)
                    source = os.open(staged, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
                finally:
                    staged.unlink(missing_ok=True)
        try:
            return outside.fill(source)
        finally:
            os.close(source)


def _copy(path: Path, new: Path, go_on: Callable[[], None]) -> None:
    db = schema.readonly(path)
    copy = sqlite3.connect(new, isolation_level=None)
    handle = os.open(new, os.O_RDONLY)

    def paced(*_: int) -> None:
        # The disk gets it in pieces: a commit never waits behind hundreds of megabytes.
        os.fdatasync(handle)
        go_on()

    try:
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("PRAGMA synchronous = OFF")
        copy.execute("PRAGMA cache_size = -1024")
        source = schema.connection(db)
        # One read transaction for the whole copy: otherwise each commit would make the copying begin again.
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        source.backup(copy, pages=PAGES, progress=paced)
        source.execute("COMMIT")
        copy.execute("PRAGMA journal_mode = DELETE")
    finally:
        os.close(handle)
        copy.close()
        db.close()


def back_up(path: Path, at: Instant, keep: int, go_on: Callable[[], None] = lambda: None) -> Path:
    """Make a checked backup of the database at ``path``, named after ``at``; return its file. Backups beyond
    the newest ``keep`` are removed. ``go_on`` and exceptions: as of `copy_to`."""
    folder = places.backups(path)
    places.make_folder(folder)
    target = folder / name_of(at)
    with _alone(folder):
        for unfinished in folder.glob("nqs-*.db.new"):  # of a process that was killed
            unfinished.unlink(missing_ok=True)
        copy_to(path, target, go_on)
        places.give(target, path.parent)
        thin_out(path, target, keep)
    return target


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock the backups while the block runs: the daemon and ``nqspy backup`` may both want to make one."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def thin_out(path: Path, newest: Path, keep: int) -> None:
    """Remove the oldest backups of the database at ``path`` beyond ``keep``, but not ``newest``. Backups that
    seem younger than ``newest`` were made while a clock ran ahead: they count as the oldest."""
    made = newest.stat().st_mtime_ns
    others = [copy.path for copy in by_age(path) if copy.path != newest]
    others.sort(key=lambda file: file.stat().st_mtime_ns <= made)
    for old in others[: max(0, len(others) + 1 - keep)]:
        old.unlink(missing_ok=True)
