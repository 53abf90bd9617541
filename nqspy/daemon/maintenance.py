"""Upkeep of what would grow for ever: backups, history, old reports; by the site's clock, on a thread."""

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

from nqspy.daemon.inbox import Ring
from nqspy.daemon.log import LOG
from nqspy.model.ids import DAY, HOUR, Instant
from nqspy.model.machine import Backup, History
from nqspy.model.site import Settings
from nqspy.store import copies
from nqspy.store.errors import StoreError, plain
from nqspy.store.journal import SqliteJournal
from nqspy.store.reserve import capacity, free
from nqspy.store.rotation import PAUSE, Rotation

_LEFT = 1 << 30
"""Bytes that a backup leaves free, or a fiftieth of the disk."""


class Stopped(Exception):
    """The daemon ends: what is under way is given up, and made anew later."""


LEAST_KEPT = DAY
"""Nothing younger moves into files, whatever size the database has: keys of submissions are known as long."""

Wishes = tuple[Backup, History]
"""Settings of the site."""


class Maintenance:
    """Does what is due, beside the engine's thread; ``tell`` gets what failed, and the alarm's name."""

    def __init__(
        self, journal: SqliteJournal, reports: Path, put: Callable[[Ring], None],
        tell: Callable[[str, str], None],
    ) -> None:  # fmt: skip
        self._journal, self._reports = journal, reports
        self._path: Path = journal.path
        self._put, self._tell = put, tell
        self._worker = ThreadPoolExecutor(1, "upkeep")
        self._work: Future[Instant] | None = None
        self._stop = threading.Event()
        self._wishes: Wishes | None = None
        self._began: Instant | None = None
        self._looked = Instant(0)
        self._due = Instant(0)

    @property
    def due(self) -> Instant | None:
        """Time of the next look; None while something is under way (its end rings the bell)."""
        return self._due if self._work is None and self._wishes is not None else None

    def look(self, settings: Settings, now: Instant) -> None:
        """Has done what is due. Cheap when nothing is."""
        wishes = copy(settings.backup), copy(settings.history)
        if self._work is not None:
            if not self._work.done():
                return
            self._due, self._work = self._work.result(), None
        # A clock that was set back would be waited for in vain.
        if self._looked <= now < self._due and wishes == self._wishes:
            return
        if self._began is None:
            self._began = now
        self._wishes, self._looked = wishes, now
        self._work = self._worker.submit(self._run, *wishes, self._began, now)
        self._work.add_done_callback(lambda _: self._put(Ring()))

    def _run(self, backup: Backup, history: History, began: Instant, now: Instant) -> Instant:
        """Do what is due; return when to look again."""
        due = Instant(now + DAY)
        try:
            due = min(due, self._back_up(backup, began, now))
            self._rotate(history, now)
            self._clear_reports(history, now)
        except Stopped:
            LOG.info("upkeep of the database was given up: the daemon stops")
        except Exception as error:
            LOG.exception("upkeep of the database failed")
            self._tell(f"upkeep of the database failed: {error}", "upkeep")
            due = Instant(now + HOUR)
        return due

    def _back_up(self, backup: Backup, began: Instant, now: Instant) -> Instant:
        if backup.every is None:
            return Instant(now + DAY)
        # The first one an hour after the start. One from the future (the clock was set back) does not count.
        past = [copy.at for copy in copies.listed(self._path) if copy.at <= now]
        due = Instant(past[-1] + backup.every if past else began + min(backup.every, HOUR))
        if now < due:
            return due
        try:
            file = self.copy(now, backup.keep)
        except copies.SPOILT as error:
            self._tell(f"no backup could be made: {plain(error)}; it is tried again", "backup")
            return Instant(now + min(backup.every, HOUR))
        LOG.info("backup %s made and checked", file)
        return Instant(now + backup.every)

    def copy(self, now: Instant, kept: int) -> Path:
        """Makes a backup, on the upkeep's thread; returns its file. Raises one of `copies.SPOILT`."""
        size, folder = self._path.stat().st_size, self._path.parent
        if free(folder) - size < min(capacity(folder) // 50, _LEFT):
            raise OSError(errno.ENOSPC, f"{size >> 20} MiB more would fill the disk")
        return copies.back_up(self._path, now, kept, go_on=self._go_on)

    def _go_on(self, pause: float = 0.0) -> None:
        if self._stop.wait(pause):
            raise Stopped

    def _rotate(self, history: History, now: Instant) -> None:
        turn, forget = self._journal.turn, self._journal.forget_blobs
        rotation = Rotation(self._path, turn, forget, partial(self._go_on, PAUSE))
        before = None if history.keep is None else Instant(now - history.keep)
        try:
            if history.size is not None:
                beyond = min(rotation.beyond(history.size), Instant(now - LEAST_KEPT))
                before = beyond if before is None else max(before, beyond)
            if before is None:
                return
            done = rotation.run(before)
        except StoreError as error:
            self._tell(f"{error}; it is tried again tomorrow, nothing is lost", "history")
            return
        if done:
            LOG.info(
                "history: %d events, %d requests, %d scripts and environments moved into %d files",
                done.events, done.requests, done.blobs, done.files,
            )  # fmt: skip

    def _clear_reports(self, history: History, now: Instant) -> None:
        """Removes the folders of nights that began before, as their names say; the last one stays."""
        if history.reports is None or not self._reports.is_dir():
            return
        before = datetime.fromtimestamp((now - history.reports) / 1000, UTC).date()
        nights: list[tuple[date, Path]] = []
        for folder in filter(Path.is_dir, self._reports.iterdir()):
            with suppress(ValueError):  # another's folder
                nights.append((date.fromisoformat(folder.name), folder))
        for night, folder in sorted(nights)[:-1]:
            if night < before:
                self._go_on()
                shutil.rmtree(folder)
                LOG.info("the report of %s is removed: it is older than the site keeps reports", night)

    def close(self) -> None:
        """Ends what is under way, whole or not at all."""
        self._stop.set()
        self._worker.shutdown(wait=True, cancel_futures=True)
