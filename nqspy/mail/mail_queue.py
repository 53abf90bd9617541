"""The mail queue: mails leave on a thread of their own, a few for each person, none lost.

Every message lies in the home's ``mail/`` from when it is taken until it was handed over: a daemon that dies
leaves them to the next one. A second thread puts them there, so that a mail server that hangs keeps no
message in memory only.
"""

import contextlib
import heapq
import itertools
import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

from nqspy.mail.message import MailMessage, gathered
from nqspy.mail.rate_limit import RateLimit
from nqspy.mail.transport import NotSent, deliver
from nqspy.model.ids import DAY, HOUR, Instant
from nqspy.model.machine import Mail
from nqspy.system.private_files import write_private
from nqspy.system.timed import Hand

PAUSES = (1.0, 5.0, 30.0, 120.0)
"""Real seconds between the tries of one message."""

NIGHT = "night."
"""Beginning of the ids of the nights' messages, which may be handed in twice."""

NOTED = 5_000
"""Mails after which what was sent long ago is forgotten."""

PROBE = 300.0
"""Real seconds after which one message is tried again while none can be sent."""

KEEPING = 10.0
"""Real seconds that a daemon which stops gives its messages to come to the disk."""

LOG = logging.getLogger("nqspy.mail")
_Work = Callable[[], None]


class MailClock(Protocol):
    """The site's clock, by which the hour of the limit counts."""

    def now(self) -> Instant:
        """The site's time."""

    def real_of(self, at: Instant) -> float:
        """Real seconds since the epoch at which it shows ``at``."""


@dataclass(slots=True)
class _Kept:
    """A message on its way, with the file it lies in."""

    message: MailMessage
    path: Path
    tries: int = 0
    covers: list[Path] = field(default_factory=list)


class MailQueue:
    """Takes messages from any thread. ``trouble`` is told, once, when mails cannot be handed over."""

    def __init__(self, folder: Path, clock: MailClock, trouble: Callable[[str], None]) -> None:
        self._folder = folder
        self._clock = clock
        self._trouble = trouble
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="mail", daemon=True)
        self._taken: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._keeper = threading.Thread(target=self._keep_all, name="mail-keep", daemon=True)
        self._hand = Hand()
        self._rate_limit: RateLimit[_Kept] = RateLimit()
        self._numbers = itertools.count(time.time_ns())
        self._again: list[tuple[float, int, _Kept]] = []
        self._failed: list[_Kept] = []
        self._probe: _Kept | None = None  # tried now and then while nothing can be sent
        self._sent: set[str] = set()
        self._noted = 0
        self._mail, self._host = Mail(), "localhost"
        self.failing = ""
        """Why mail cannot be sent; empty while it can."""

    # ------------------------------------------------------------ from any thread

    def start(self, mail: Mail, host: str) -> None:
        """Begins to work, with what a former daemon left."""
        self._taken.put(lambda: self._resume(mail, host))
        self._keeper.start()
        self._thread.start()

    def send(self, messages: Iterable[MailMessage], mail: Mail, host: str) -> None:
        """Has messages sent by the way that is set; without one they are dropped."""
        self._taken.put(lambda: self._take(messages, mail, host))

    def follow(self, mail: Mail, host: str) -> None:
        """The way is set anew: what could not be sent by the former one is tried again by this one; without
        any it waits for one."""
        self._taken.put(lambda: self._queue.put(lambda: self._follow(mail, host)))

    def send_file(self, path: Path, mail: Mail, host: str) -> None:
        """Has the messages sent that a file holds, and the file removed: each message once, whatever happens
        in between."""
        self._taken.put(lambda: self._take_file(path, mail, host))

    def close(self, patience: float = 2.0) -> None:
        """Stops; what is left lies in the folder, and a command that still runs is ended."""
        if not self._thread.is_alive():
            return
        self._taken.put(None)
        self._keeper.join(KEEPING)
        self._thread.join(patience)
        self._hand.stop()
        self._thread.join(0.5)

    # ------------------------------------------------------------ the threads

    def _keep_all(self) -> None:
        """Brings messages to the disk, then to the thread that sends them."""
        while (work := self._taken.get()) is not None:
            _safely(work)
        self._queue.put(None)

    def _work(self) -> None:
        while True:
            try:
                work = self._queue.get(timeout=self._patience())
            except queue.Empty:
                work = self._look
            if work is None:
                return
            _safely(work)
            _safely(self._look)

    def _patience(self) -> float | None:
        if not self._mail.on:
            return None
        times = [self._again[0][0] - time.monotonic()] if self._again else []
        if (at := self._rate_limit.next()) is not None:
            times.append(self._clock.real_of(at) - time.time())
        return max(0.01, min(times)) if times else None

    def _look(self) -> None:
        """What is due: messages to be tried again, people whose hour is over."""
        if not self._mail.on:
            return
        while self._again and self._again[0][0] <= time.monotonic():
            self._try(heapq.heappop(self._again)[2])
        for address, waiting in self._rate_limit.due(self._clock.now(), self._mail.limit):
            self._try(self._together(address, waiting) if len(waiting) > 1 else waiting[0])

    def _together(self, address: str, waiting: list[_Kept]) -> _Kept:
        """One message in place of those that wait; their files go as soon as its own is there."""
        kept = self._keep(gathered(address, [each.message for each in waiting]))
        others = [each.path for each in waiting]
        if kept.path.exists():
            _remove(others)
        else:
            kept.covers = others
        return kept

    def _take(self, messages: Iterable[MailMessage], mail: Mail, host: str) -> None:
        kept = [self._keep(message) for message in messages] if mail.on else []
        self._queue.put(lambda: self._admit_all(kept, mail, host))

    def _take_file(self, path: Path, mail: Mail, host: str) -> None:
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        # First what is there, then what was sent: one that leaves just now is in either.
        there = {kept["id"] for kept in map(_read, self._files()) if kept is not None}
        new = [row for row in rows if row["id"] not in there and row["id"] not in self._sent]
        self._take([MailMessage(**row) for row in new], mail, host)
        path.unlink(missing_ok=True)

    def _admit_all(self, messages: Iterable[_Kept], mail: Mail, host: str) -> None:
        self._mail, self._host = mail, host
        if not mail.on:
            self._failed += messages
            return
        for kept in messages:
            self._admit(kept)

    def _admit(self, kept: _Kept) -> None:
        if self._rate_limit.admit(kept.message.to, kept, self._clock.now(), self._mail.limit):
            self._try(kept)

    def _try(self, kept: _Kept) -> None:
        """Hands one over, or sees to it that it is tried again; whatever happens, others are not held up."""
        if self._hand.stopped:
            return
        try:
            deliver(kept.message, self._mail, self._host, self._hand)
        except NotSent as error:
            self._not_sent(kept, error)
        except Exception as error:
            LOG.exception("mail %r could not be sent", kept.message.subject)
            self._not_sent(kept, NotSent(f"internal error: {error!r}"[:300]))
        else:
            self._note(kept)
            self.failing = ""
            self._over()

    def _not_sent(self, kept: _Kept, error: NotSent) -> None:
        if self._hand.stopped:
            return
        if error.for_good:
            LOG.warning("mail %r: %s", kept.message.subject, error)
            _remove((kept.path, *kept.covers))
            return
        kept.tries += 1
        self.failing = f"mail cannot be sent: {error}"
        if kept is self._probe:
            self._later(kept, PROBE)
        elif self._probe is not None:
            self._failed.append(kept)
        elif kept.tries <= len(PAUSES):
            self._later(kept, PAUSES[kept.tries - 1])
        else:
            self._probe = kept
            self._later(kept, PROBE)
            LOG.warning("mail cannot be sent: %s; it is kept in %s", error, self._folder)
            self._trouble(f"mail cannot be sent: {error}; it is kept and goes out once one can be sent again")

    def _later(self, kept: _Kept, pause: float) -> None:
        heapq.heappush(self._again, (time.monotonic() + pause, next(self._numbers), kept))

    def _over(self) -> None:
        """One was sent: what could not be sent before is tried again, within everybody's hourly limit."""
        if self._probe is not None:
            LOG.info("mail can be sent again")
        self._probe = None
        waiting, self._failed = self._failed, []
        for kept in waiting:
            kept.tries = 0
            self._admit(kept)

    def _follow(self, mail: Mail, host: str) -> None:
        if mail == self._mail:
            return
        self.failing, self._probe = "", None
        waiting = [*(kept for _, _, kept in sorted(self._again)), *self._failed]
        self._again, self._failed = [], []
        for kept in waiting:
            kept.tries = 0
        self._admit_all(waiting, mail, host)

    # ------------------------------------------------------------ the folder

    def _keep(self, message: MailMessage) -> _Kept:
        path = self._folder / f"{next(self._numbers):020d}.json"
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            write_private(path, [json.dumps(asdict(message))])
        except OSError as error:
            LOG.warning("a mail could not be kept in %s: %s", self._folder, error)
        return _Kept(message, path)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("*.json")) if self._folder.is_dir() else []

    def _note(self, kept: _Kept) -> None:
        """It was handed over: remembered, so that a restart keeps to the hourly limit and sends nothing
        twice."""
        if kept.message.id.startswith(NIGHT):
            self._sent.add(kept.message.id)
        self._noted += 1
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with open(self._folder / "sent", "a", encoding="utf-8") as out:
                out.write(f"{self._clock.now()} {kept.message.to} {kept.message.id}\n")
            if self._noted % NOTED == 0:
                self._shorten()
        _remove((kept.path, *kept.covers))

    def _resume(self, mail: Mail, host: str) -> None:
        lately, kept = self._read_sent(), []
        for path in self._files():
            row = _read(path)
            if row is None or row["id"] in self._sent:
                _remove((path,))
            else:
                kept.append(_Kept(MailMessage(**row), path))
        self._queue.put(lambda: self._begin(lately, kept, mail, host))

    def _begin(self, lately: list[tuple[str, Instant]], kept: list[_Kept], mail: Mail, host: str) -> None:
        for address, at in lately:
            self._rate_limit.note(address, at)
        self._admit_all(kept, mail, host)

    def _read_sent(self) -> list[tuple[str, Instant]]:
        """Remembers what was sent; returns to whom and when within the last hour."""
        rows = self._shorten()
        self._sent.update(id for _, _, id in rows)
        hour = self._clock.now() - HOUR
        return [(address, Instant(int(at))) for at, address, _ in rows if int(at) > hour]

    def _shorten(self) -> list[list[str]]:
        """Forgets what was sent long ago: only the last hour counts, and the nights' messages for a week."""
        path, now = self._folder / "sent", self._clock.now()
        if not path.exists():
            return []
        rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
        rows = [row for row in rows if len(row) == 3 and row[0].isdigit()]
        ages = {True: 7 * DAY, False: HOUR}
        rows = [row for row in rows if int(row[0]) > now - ages[row[2].startswith(NIGHT)]]
        write_private(path, (f"{' '.join(row)}\n" for row in rows))
        return rows


def _safely(work: _Work) -> None:
    try:
        work()
    except Exception as error:
        LOG.warning("the mail queue failed: %s", error)


def _read(path: Path) -> dict[str, str] | None:
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
        return row if isinstance(row, dict) and set(row) == {"to", "subject", "text", "id"} else None
    except (OSError, ValueError):
        return None


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
