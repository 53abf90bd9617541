"""Maintenance of files that would grow for ever: backups, history, old reports; on a thread of its own."""

import errno
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

from nqspy.daemon.inbox import WakeUp
from nqspy.daemon.log import LOG
from nqspy.model.ids import DAY, HOUR, Instant
from nqspy.model.machine import Backup, History
from nqspy.model.site import Settings
from nqspy.store import copies
from nqspy.store.errors import StoreError, plain
from nqspy.store.journal import SqliteJournal
from nqspy.store.reserve import capacity, free
from nqspy.store.rotation import PAUSE, Rotation

_FREE = 1 << 30
"""Free bytes on the disk that a backup must leave, or a fiftieth of the disk."""


class Stopped(Exception):
    """The daemon stops: the current work is abandoned, and done again later."""


LEAST_AGE = DAY
"""Age in ms below which rows (and the keys of submissions) stay in the database, however large it is."""

Wishes = tuple[Backup, History]
"""Settings of the site that a check followed: of backups and of history."""


class Maintenance:
    """Does backups, rotation of the history and removal of old reports when due, on its own thread;
    ``report`` gets text and source of a failure."""

    def __init__(
        self, journal: SqliteJournal, reports: Path, put: Callable[[WakeUp], None],
        report: Callable[[str, str], None],
    ) -> None:  # fmt: skip
        self._journal, self._reports = journal, reports
        self._path: Path = journal.path
        self._put, self._report = put, report
        self._worker = ThreadPoolExecutor(1, "upkeep")
        self._work: Future[Instant] | None = None
        self._stop = threading.Event()
        self._wishes: Wishes | None = None
        self._began: Instant | None = None
        self._checked = Instant(0)
        self._due = Instant(0)

    @property
    def due(self) -> Instant | None:
        """Return the instant of the next check; None while work is under way (its end wakes the engine)."""
        return self._due if self._work is None and self._wishes is not None else None

    def check(self, settings: Settings, now: Instant) -> None:
        """Start the work that is due, unless some is under way. Cheap if none is due."""
        wishes = copy(settings.backup), copy(settings.history)
        if self._work is not None:
            if not self._work.done():
                return
            self._due, self._work = self._work.result(), None
        # A clock that was set back would never reach the due time.
        if self._checked <= now < self._due and wishes == self._wishes:
            return
        if self._began is None:
            self._began = now
        self._wishes, self._checked = wishes, now
        self._work = self._worker.submit(self._run, *wishes, self._began, now)
        self._work.add_done_callback(lambda _: self._put(WakeUp()))

    def _run(self, backup: Backup, history: History, began: Instant, now: Instant) -> Instant:
        """Do the work that is due; return the instant of the next check."""
        due = Instant(now + DAY)
        try:
            due = min(due, self._back_up(backup, began, now))
            self._rotate(history, now)
            self._clear_reports(history, now)
        except Stopped:
            LOG.info("maintenance of the database was interrupted because nqsd stops")
        except Exception as error:
            LOG.exception("maintenance of the database failed")
            self._report(f"maintenance of the database failed: {error}", "upkeep")
            due = Instant(now + HOUR)
        return due

    def _back_up(self, backup: Backup, began: Instant, now: Instant) -> Instant:
        if backup.every is None:
            return Instant(now + DAY)
        # The first an hour after the start. Backups from the future (the clock was set back) do not count.
        past = [copy.at for copy in copies.listed(self._path) if copy.at <= now]
        due = Instant(past[-1] + backup.every if past else began + min(backup.every, HOUR))
        if now < due:
            return due
        try:
            file = self.copy(now, backup.keep)
        except copies.SPOILT as error:
            self._report(f"no backup could be made: {plain(error)}; nqsd tries again", "backup")
            return Instant(now + min(backup.every, HOUR))
        LOG.info("backup %s made and checked", file)
        return Instant(now + backup.every)

    def copy(self, now: Instant, most: int) -> Path:
        """Make a backup, on the maintenance thread, and remove all but the last ``most``; return its file.
        Raises one of `copies.SPOILT`."""
        size, folder = self._path.stat().st_size, self._path.parent
        if free(folder) - size < min(capacity(folder) // 50, _FREE):
            raise OSError(errno.ENOSPC, f"a copy of {size >> 20} MiB would fill the disk")
        return copies.back_up(self._path, now, most, go_on=self._go_on)

    def _go_on(self, pause: float = 0.0) -> None:
        if self._stop.wait(pause):
            raise Stopped

    def _rotate(self, history: History, now: Instant) -> None:
        turn, forget = self._journal.turn, self._journal.forget_blobs
        rotation = Rotation(self._path, turn, forget, partial(self._go_on, PAUSE))
        before = None if history.keep is None else Instant(now - history.keep)
        try:
            if history.size is not None:
                beyond = min(rotation.beyond(history.size), Instant(now - LEAST_AGE))
                before = beyond if before is None else max(before, beyond)
            if before is None:
                return
            done = rotation.run(before)
        except StoreError as error:
            self._report(f"{error}; nothing is lost, nqsd tries again tomorrow", "history")
            return
        if done:
            LOG.info(
                "history: %d events, %d requests, %d scripts and environments moved into %d files",
                done.events, done.requests, done.blobs, done.files,
            )  # fmt: skip

    def _clear_reports(self, history: History, now: Instant) -> None:
        """Remove report folders older than `History.reports` by their names; the last one stays."""
        if history.reports is None or not self._reports.is_dir():
            return
        before = datetime.fromtimestamp((now - history.reports) / 1000, UTC).date()
        nights: list[tuple[date, Path]] = []
        for folder in filter(Path.is_dir, self._reports.iterdir()):
            with suppress(ValueError):  # not a report's folder
                nights.append((date.fromisoformat(folder.name), folder))
        for night, folder in sorted(nights)[:-1]:
            if night < before:
                self._go_on()
                shutil.rmtree(folder)
                LOG.info("the report of %s was removed by the retention setting", night)

    def close(self) -> None:
        """End the current work; its results are complete or absent."""
        self._stop.set()
        self._worker.shutdown(wait=True, cancel_futures=True)
