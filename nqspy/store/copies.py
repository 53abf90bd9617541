"""Backups: copies of the database in the folder ``backups``, made while it is written, checked, the last few
kept. A copy is one file that needs no other; its name tells the instant of the site's clock at which it was
made: ``nqs-20261121T030000Z.db``."""

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
"""Pages copied between two looks at whether it shall go on."""

SPOILT = (sqlite3.Error, peewee.PeeweeException, OSError)
"""What reading a file that is no good database raises."""


@dataclass(frozen=True, slots=True, order=True)
class Copy:
    """A backup: instant at which it was made, and its file."""

    at: Instant
    path: Path


def name_of(at: Instant) -> str:
    """Name of a backup made at an instant."""
    return f"nqs-{datetime.fromtimestamp(at // 1000, UTC):{_FORM}}Z.db"


def listed(path: Path) -> list[Copy]:
    """The backups of the database at ``path``, oldest first."""
    found = []
    try:
        entries = list(places.backups(path).iterdir())
    except OSError:
        return []
    for file in entries:
        match = _NAME.match(file.name)
        if match is None:
            continue
        with suppress(ValueError):  # digits that are no date: somebody else's
            moment = datetime.strptime(match[1], _FORM).replace(tzinfo=UTC)
            found.append(Copy(Instant(int(moment.timestamp()) * 1000), file))
    return sorted(found)


def by_age(path: Path) -> list[Copy]:
    """Return the same by the time they were written, oldest first: the site's clock may have been far off."""
    written = []
    for copy in listed(path):
        with suppress(OSError):  # gone meanwhile
            written.append((copy.path.stat().st_mtime_ns, copy))
    return [copy for _, copy in sorted(written)]


def problem(file: Path) -> str | None:
    """Return what is wrong with a database file that is not being written, by ``integrity_check``; None when
    it is good. The log of one that was not closed properly is part of it."""
    try:
        if file.stat().st_size == 0:
            return "it is empty"
        with_log = places.log_size(file) > 0
        opened = schema.connection(schema.readonly(file)) if with_log else schema.snapshot(file)
        with closing(opened) as connection:
            if connection.execute("PRAGMA application_id").fetchone()[0] != schema.APPLICATION_ID:
                return "it is no database of nqspy"
            found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    except SPOILT as error:
        return getattr(error, "strerror", None) or str(error)
    return None if found == "ok" else " ".join(str(found).split())


def newest_good(path: Path) -> Path | None:
    """The newest backup that passes its check, None when there is none."""
    return next((copy.path for copy in reversed(by_age(path)) if problem(copy.path) is None), None)


def copy_to(path: Path, target: Path, go_on: Callable[[], None] = lambda: None) -> None:
    """Writes a copy of the database as of one commit to ``target`` (mode 0600), checked, whole or not at all;
    commits go on. What ``go_on``, called now and then, raises ends it. Raises sqlite3.Error, OSError."""
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
    """Write a checked copy of the database to ``target``, a new file anywhere; return its size. It is made
    among the backups first: there no other user exchanges names. Raises sqlite3.Error, OSError."""
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
        # The disk gets it bit by bit: a commit never waits behind hundreds of megabytes.
        os.fdatasync(handle)
        go_on()

    try:
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("PRAGMA synchronous = OFF")
        copy.execute("PRAGMA cache_size = -1024")
        source = schema.connection(db)
        # One read transaction for all of it: else each commit would make the copying begin again.
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
    """Make a checked backup, keep the newest ``keep`` only; return its file. Raises as `copy_to`."""
    folder = places.backups(path)
    places.make_folder(folder)
    target = folder / name_of(at)
    with _alone(folder):
        for unfinished in folder.glob("nqs-*.db.new"):  # of one that was killed
            unfinished.unlink(missing_ok=True)
        copy_to(path, target, go_on)
        places.give(target, path.parent)
        thin_out(path, target, keep)
    return target


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of the backups: the daemon and ``nqspy backup`` may both want to make one."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def thin_out(path: Path, newest: Path, keep: int) -> None:
    """Removes the oldest backups beyond ``keep``, never ``newest`` itself. Those that seem to be written
    after it are of a clock that ran ahead, and count as the oldest."""
    made = newest.stat().st_mtime_ns
    others = [copy.path for copy in by_age(path) if copy.path != newest]
    others.sort(key=lambda file: file.stat().st_mtime_ns <= made)
    for old in others[: max(0, len(others) + 1 - keep)]:
        old.unlink(missing_ok=True)
