"""Present problems of an installation; each stays as long as its cause."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from nqspy.daemon.disks import full_disks
from nqspy.daemon.files import QueueFiles
from nqspy.daemon.inbox import Host
from nqspy.daemon.reloads import Reloads
from nqspy.decider.notice_runner import NoticeRunner
from nqspy.mail.mail_queue import MailQueue
from nqspy.model.errors import NqspyError
from nqspy.model.events import Alarm, ExitOff, Recorded
from nqspy.model.ids import MINUTE, Instant
from nqspy.model.texts import in_words
from nqspy.report.time_text import Zone
from nqspy.userexit.loader import read_folder

T = TypeVar("T")
_SETTLED = 2_000_000_000
"""Nanoseconds after which a second change of a file surely gets another time."""


class FolderCache(Generic[T]):
    """Cached result of reading one folder, for `status`; it is read again only if a file has changed."""

    def __init__(self) -> None:
        self._marks: object = None
        self._result: T | None = None

    def get(self, folder: Path, read: Callable[[], T]) -> T:
        """Return the result of ``read``, or the cached one if no file changed. Raises as ``read`` does."""
        marks, newest = _marks(folder)
        if self._result is None or marks != self._marks:
            self._result = None
            result = read()
            if time.time_ns() - newest < _SETTLED:
                return result
            self._result, self._marks = result, marks
        return self._result


def _marks(folder: Path) -> tuple[object, int]:
    """Return a value that changes with the folder or a file in it, and the last change in ns."""
    try:
        found = [(".", os.stat(folder))]
        with os.scandir(folder) as entries:
            found += [(entry.name, entry.stat()) for entry in entries]
    except OSError:
        return object(), time.time_ns()
    marks = sorted((name, each.st_dev, each.st_ino, each.st_size, each.st_ctime_ns) for name, each in found)
    return marks, max(each.st_ctime_ns for _, each in found)


QUIET = 5 * MINUTE
"""Time (ms by the site's clock) after which an exit that has not failed again is no problem any more."""


class Troubles:
    """Collects the present problems of the installation, in the engine's thread. `watch` gets events, `lines`
    returns the problems."""

    def __init__(
        self, host: Host, queue_files: QueueFiles, reloads: Reloads, runner: NoticeRunner, mail: MailQueue
    ) -> None:
        self._host, self._queue_files, self._reloads = host, queue_files, reloads
        self._runner, self._mail = runner, mail
        self._exits: dict[str, tuple[Instant, str]] = {}
        self._sources: object = None
        self._queues: FolderCache[dict[str, str]] = FolderCache()
        self._folder: FolderCache[dict[str, bytes]] = FolderCache()

    def watch(self, happened: Iterable[Recorded]) -> None:
        """Note the failures of exits and the exits switched off for failures among these events."""
        self._forget_if_loaded()
        for recorded in happened:
            event = recorded.event
            if isinstance(event, ExitOff):
                decider = self._host.decider
                decider.backoff.off[event.exit] = event.text
                decider.saved.save(decider.backoff)
            elif isinstance(event, Alarm) and event.who.startswith("exit "):
                self._exits[event.who.removeprefix("exit ")] = (recorded.at, event.text)

    def _forget_if_loaded(self) -> None:
        """Forget failures if the exits were loaded again."""
        sources = self._host.decider.sources
        if sources is not self._sources:
            self._sources = sources
            self._exits.clear()
            self._runner.failing.clear()

    def lines(self) -> list[str]:
        """Return a line for each present problem, for `status` and the doctor."""
        return [*self._of_the_site(), *full_disks(self._host.home), *self._files(), *self._exit_lines(),
                *self._runner.failing.values(), *filter(None, (self._mail.failing,))]  # fmt: skip

    def _of_the_site(self) -> Iterator[str]:
        site = self._host.engine.site
        zone, shift, outage = Zone(site.timezone), site.shift, self._host.engine.outage.since
        if shift.failed is not None:  # rows of a former version have no text
            yield shift.failed_text or f"shift {shift.failed} could not be entered"
        for name, state in site.resources.items():
            if state.state == "broken":
                why = f": {state.text}" if state.text else ""
                yield f"resource {name} is broken (since {in_words(zone.local(state.since))}){why}"
        for cause, number in site.causes_of_retries().items():
            yield f"{cause}; requests that cannot start and are tried again: {number}"
        yield from self._host.damage
        if self._reloads.trouble:
            yield self._reloads.trouble
        if outage is not None:
            yield f"the database cannot be written since {in_words(zone.local(outage[0]))}: {outage[1]}"

    def _files(self) -> Iterator[str]:
        files = self._queue_files
        try:
            found = self._queues.get(
                files.folder, lambda: {name: digest for name, digest, _ in files.current()}
            )
        except NqspyError as error:
            yield f"queues.d cannot be read: {error}"
            return
        known = self._host.engine.site.files
        if files.trouble:
            if found == known:
                files.trouble = ""  # these are the files applied last
            else:
                yield files.trouble
                return
        yield from _changes("queues.d", known, found, "applied", "qmgr reload queues")

    def _exit_lines(self) -> Iterator[str]:
        self._forget_if_loaded()
        decider, exits = self._host.decider, self._host.exits
        yield from exits.problems
        if exits.refused:
            yield f"reload exits was refused: {exits.refused}"
        folder = decider.folder
        sources = self._folder.get(
            folder, lambda: {each.path.name: each.text for each in read_folder(folder)[0]}
        )
        before = {source.path.name: source.text for source in decider.sources}
        left_out = "".join(exits.problems)
        now = {name: text for name, text in sources.items() if name not in left_out}
        before = {name: text for name, text in before.items() if name not in left_out}
        yield from _changes("exits", before, now, "loaded", "qmgr reload exits")
        # Exits that fail, or are switched off for it, until that is dealt with.
        loaded = {source.path.stem for source in decider.sources}
        known, at = self._host.engine.site.settings.exits, self._host.clock.now()
        on = {name for name in loaded if name not in known or known[name].enabled}
        self._exits = {name: failure for name, failure in self._exits.items() if at - failure[0] < QUIET}
        off = decider.backoff.off.items()
        yield from (f"exit {name} is switched off: {text}" for name, text in off if name in loaded - on)
        yield from (text for name, (_, text) in self._exits.items() if name in on)


def _changes(
    where: str, before: Mapping[str, object], now: Mapping[str, object], done: str, how: str
) -> Iterator[str]:
    """Yield a line about new files, and one about changed or removed files. ``where``: name of the folder;
    ``done``: what was done with the earlier files (``loaded``); ``how``: command to do that again."""
    new = [name for name in sorted(now) if name not in before]
    if new:
        yield f"{where}: {', '.join(new)} {'is' if len(new) == 1 else 'are'} new and not {done} yet: {how}"
    others = [name for name in differing(before, now) if name in before]
    if others:
        since = "it was" if len(others) == 1 else "they were"
        yield f"{where}: {', '.join(others)} changed since {since} {done}: {how}"


def differing(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """Return the names with different content, and those that were added or removed."""
    names = sorted({*before, *now})
    return [name for name in names if before.get(name) != now.get(name)]
