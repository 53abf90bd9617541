"""Mail queue: mails are sent on a thread of their own, a few an hour for each person, and none is lost.

Every mail is a file in the home's ``mail/`` until it was sent: after a crash the next daemon sends it.
A second thread writes the files, so that mails are on the disk even while a mail server hangs. ``mail/sent``
lists the mails that were sent lately.
"""

import contextlib
import itertools
import json
import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from msgspec.structs import asdict

from nqspy.mail.message import NIGHT, MailMessage, gathered
from nqspy.mail.transport import NotSent, deliver
from nqspy.model.ids import DAY, HOUR, Instant
from nqspy.model.machine import Mail
from nqspy.system.private_files import write_private
from nqspy.system.run_with_timeout import CommandRunner

PAUSES = (1.0, 5.0, 30.0, 120.0)
"""Real seconds between two tries of one mail."""
TRIAL = 300.0
"""Real seconds between two tries of one mail while all mails fail."""
STORING = 10.0
"""Real seconds for which a stopping daemon waits until its mails are on the disk."""
SENT_LINES = 5_000
"""Number of sent mails after which ``mail/sent`` is shortened."""

LOG = logging.getLogger("nqspy.mail")
_Work = Callable[[], None]


class MailClock(Protocol):
    """The site's clock, by which the hourly limit counts."""

    def now(self) -> Instant:
        """Return the site's present time, in ms since the epoch."""

    def real_of(self, at: Instant) -> float:
        """Return the real seconds since the epoch at which the site's clock shows ``at``."""


@dataclass(slots=True, eq=False)
class _QueuedMail:
    """A waiting mail, with the ids of its parts by file. ``due``: monotonic time of the next try;
    ``counted``: True if the hourly limit counts it."""

    message: MailMessage
    files: dict[Path, str]
    tries: int = 0
    due: float = 0.0
    counted: bool = False


class RateLimit:
    """Counts the mails of each address within an hour; forgets future ones if the clock is set back."""

    def __init__(self) -> None:
        self._sent: dict[str, list[Instant]] = {}

    def note(self, address: str, at: Instant) -> None:
        """Count a mail sent to an address at an instant."""
        self._sent.setdefault(address, []).append(at)

    def full(self, address: str, now: Instant, limit: int | None) -> bool:
        """True if an address gets no more mails now; ``limit``: mails an hour, None: no limit."""
        sent = [at for at in self._sent.pop(address, ()) if now - HOUR < at <= now]
        if sent:
            self._sent[address] = sent
        return limit is not None and len(sent) >= limit

    def next(self, addresses: Iterable[str]) -> Instant | None:
        """Return the instant at which the first counted mail of one of these addresses is an hour old, so
        that it may get another; None if none is counted."""
        times = (Instant(self._sent[name][0] + HOUR) for name in addresses if name in self._sent)
        return min(times, default=None)


class MailQueue:
    """Stores and sends mails; accepts them from any thread. ``trouble`` is called with a text when all begin
    to fail; ``failing``: why the last try failed, else ""."""

    def __init__(self, folder: Path, clock: MailClock, trouble: Callable[[str], None]) -> None:
        self._folder, self._clock, self._trouble = folder, clock, trouble
        self.failing = ""
        self._runner = CommandRunner()
        self._writer = threading.Thread(target=self._store_all, name="mail-keep", daemon=True)
        self._sender = threading.Thread(target=self._send_all, name="mail", daemon=True)
        # Of the thread that writes files
        self._incoming: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._numbers = itertools.count(time.time_ns())
        self._nights: set[str] = set()  # ids of the nights' mails that were stored or sent
        # Of the thread that sends
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._mail, self._host = Mail(), "localhost"
        self._rate_limit = RateLimit()
        self._waiting: list[_QueuedMail] = []  # unsent; infinite due: waits until another one was sent
        self._limited: set[str] = set()  # addresses whose mails wait for the hourly limit
        self._trial: _QueuedMail | None = None  # the mail that is tried while none can be sent
        self._noted = 0

    # ------------------------------------------------------------ from any thread

    def start(self, mail: Mail, host: str) -> None:
        """Start the threads; send a former daemon's unsent mails. ``host``: for the sender's address."""
        self._incoming.put(lambda: self._resume(mail, host))
        self._writer.start()
        self._sender.start()

    def send(self, messages: Iterable[MailMessage], mail: Mail, host: str) -> None:
        """Store mails, and send them in the way that ``mail`` configures; without a way drop them."""
        self._incoming.put(lambda: self._store(messages, mail, host))

    def follow(self, mail: Mail, host: str) -> None:
        """Retry unsent mails if ``mail`` has changed; without a configured way they wait."""
        self.send((), mail, host)

    def send_file(self, path: Path, mail: Mail, host: str) -> None:
        """Send the mails in a JSON file (a list of `MailMessage`), each once even over crashes; remove it."""

        def store() -> None:
            with contextlib.suppress(FileNotFoundError):
                messages = [MailMessage(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
                self._store([message for message in messages if message.id not in self._nights], mail, host)
                path.unlink()

        self._incoming.put(store)

    def close(self, timeout: float = 2.0) -> None:
        """Stop; unsent mails stay in the folder, and a running command is killed."""
        if self._sender.is_alive():
            self._incoming.put(None)
            self._writer.join(STORING)
            self._sender.join(timeout)
            self._runner.stop()
            self._sender.join(0.5)

    # ------------------------------------------------------------ the thread that writes files

    def _store_all(self) -> None:
        """Write mails to the disk, then pass them to the thread that sends them."""
        while (work := self._incoming.get()) is not None:
            _safely(work)
        self._queue.put(None)

    def _resume(self, mail: Mail, host: str) -> None:
        """Read the mails of a former daemon, without those that it had sent."""
        unsent, done, now = [], set(), self._clock.now()
        for at, address, ids in self._shorten():
            done.update(ids.split(","))
            if int(at) > now - HOUR:
                self._rate_limit.note(address, Instant(int(at)))
        for path in sorted(self._folder.glob("*.json")):
            try:
                message = MailMessage(**json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, TypeError):
                message = None
            if message is None or message.id in done:
                _remove([path])
            else:
                unsent.append(_QueuedMail(message, {path: message.id}))
                done.add(message.id)
        self._nights = {id for id in done if id.startswith(NIGHT)}
        self._queue.put(lambda: self._add(unsent, mail, host))

    def _store(self, messages: Iterable[MailMessage], mail: Mail, host: str) -> None:
        items = []
        for message in messages if mail.on else ():
            path = self._folder / f"{next(self._numbers):020d}.json"
            try:
                self._folder.mkdir(mode=0o700, exist_ok=True)
                write_private(path, [json.dumps(asdict(message))])
            except OSError as error:  # it is sent all the same
                LOG.warning("a mail could not be stored in %s: %s", self._folder, error)
            if message.id.startswith(NIGHT):
                self._nights.add(message.id)
            items.append(_QueuedMail(message, {path: message.id}))
        self._queue.put(lambda: self._add(items, mail, host))

    # ------------------------------------------------------------ the thread that sends

    def _send_all(self) -> None:
        while True:
            due = min((item.due for item in self._waiting), default=math.inf) - time.monotonic()
            if (at := self._rate_limit.next(self._limited)) is not None:
                due = min(due, self._clock.real_of(at) - time.time())
            work: _Work | None = self._send_due
            with contextlib.suppress(queue.Empty):
                waits = self._mail.on and due < math.inf
                work = self._queue.get(timeout=max(0.01, due) if waits else None)
            if work is None:
                return
            _safely(work)
            _safely(self._send_due)

    def _add(self, mails: list[_QueuedMail], mail: Mail, host: str) -> None:
        """Add mails; if the configured way has changed, retry unsent mails."""
        if mail != self._mail:
            self.failing, self._trial = "", None
            self._retry_all()
        self._waiting += mails
        self._mail, self._host = mail, host

    def _retry_all(self) -> None:
        """Retry all waiting mails, within the limit of each address."""
        for item in self._waiting:
            item.due, item.tries, item.counted = 0.0, 0, False

    def _send_due(self) -> None:
        """Send the mails that are due; join those that waited for the hourly limit, by person."""
        if not self._mail.on:
            return
        now, limit = self._clock.now(), self._mail.limit
        for item in [item for item in self._waiting if item.due <= time.monotonic()]:
            address = item.message.to
            if not item.counted and (address in self._limited or self._rate_limit.full(address, now, limit)):
                self._limited.add(address)
                item.due = math.inf
            else:
                self._try(item)
        for address in [name for name in self._limited if not self._rate_limit.full(name, now, limit)]:
            self._limited.remove(address)
            some = [item for item in self._waiting if item.message.to == address and not item.counted]
            self._waiting = [item for item in self._waiting if item.message.to != address or item.counted]
            one = _QueuedMail(gathered(address, [item.message for item in some]), {})
            for item in some:
                one.files |= item.files
            self._waiting.append(one)
            self._try(one)

    def _try(self, item: _QueuedMail) -> None:
        """Send a mail, or schedule another try; never block the others."""
        if self._runner.stopped:
            return
        if not item.counted:
            self._rate_limit.note(item.message.to, self._clock.now())
            item.counted = True
        try:
            deliver(item.message, self._mail, self._host, self._runner)
        except NotSent as error:
            self._not_sent(item, error)
        except Exception as error:
            LOG.exception("mail %r could not be sent", item.message.subject)
            self._not_sent(item, NotSent(f"internal error: {error!r}"[:300]))
        else:
            self._noted += 1  # in a file, so that a restart keeps to the limit and sends nothing twice
            with contextlib.suppress(OSError):
                self._folder.mkdir(mode=0o700, exist_ok=True)
                with open(self._folder / "sent", "a", encoding="utf-8") as out:
                    out.write(f"{self._clock.now()} {item.message.to} {','.join(item.files.values())}\n")
                if self._noted % SENT_LINES == 0:
                    self._shorten()
            _remove(item.files)
            self._waiting.remove(item)
            self.failing = ""
            if self._trial is not None:
                LOG.info("mail can be sent again")
                self._trial = None
                self._retry_all()

    def _not_sent(self, item: _QueuedMail, error: NotSent) -> None:
        if self._runner.stopped:
            return
        if error.for_good:
            LOG.warning("mail %r: %s", item.message.subject, error)
            self._waiting.remove(item)
            _remove(item.files)
            return
        item.tries += 1
        self.failing = f"mail cannot be sent: {error}"
        if self._trial is None and item.tries > len(PAUSES):
            self._trial = item
            LOG.warning("mail cannot be sent: %s; all stay in %s and are sent later", error, self._folder)
            self._trouble(f"mail cannot be sent: {error}; all mails are stored and sent later")
        pause = TRIAL if item is self._trial else math.inf
        item.due = time.monotonic() + (pause if self._trial is not None else PAUSES[item.tries - 1])

    def _shorten(self) -> list[list[str]]:
        """Remove entries over an hour old from ``mail/sent`` (nights' mails: a week); return the rest."""
        path, now = self._folder / "sent", self._clock.now()
        if not path.exists():
            return []
        rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
        rows = [row for row in rows if len(row) == 3 and row[0].isdigit()]
        rows = [row for row in rows if int(row[0]) > now - (7 * DAY if NIGHT in row[2] else HOUR)]
        write_private(path, (f"{' '.join(row)}\n" for row in rows))
        return rows


def _safely(work: _Work) -> None:
    try:
        work()
    except Exception as error:
        LOG.warning("the mail queue failed: %s", error)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
