"""The mail queue: mails leave on a thread of their own, a few an hour for each person, none lost.

Every mail lies in the home's ``mail/`` from when it is taken until it was handed over: a daemon that dies
leaves them to the next one. A second thread puts them there, so that a mail server that hangs keeps none in
memory only. ``mail/sent`` says which mails left of late.
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
from nqspy.system.run_with_timeout import Hand

PAUSES = (1.0, 5.0, 30.0, 120.0)
"""Real seconds between the tries of one mail."""
TRIAL = 300.0
"""Real seconds after which one mail is tried again while none can be sent."""
KEEPING = 10.0
"""Real seconds that a daemon which stops gives its mails to come to the disk."""
NOTED = 5_000
"""Mails after which ``mail/sent`` is shortened."""

LOG = logging.getLogger("nqspy.mail")
_Work = Callable[[], None]


class MailClock(Protocol):
    """The site's clock, by which the hour of the limit counts."""

    def now(self) -> Instant:
        """The site's time."""

    def real_of(self, at: Instant) -> float:
        """Real seconds since the epoch at which it shows ``at``."""


@dataclass(slots=True, eq=False)
class _Kept:
    """A mail on its way, and those it is made of by file; ``due`` monotonic; ``counted`` by the limit."""

    message: MailMessage
    files: dict[Path, str]
    tries: int = 0
    due: float = 0.0
    counted: bool = False


class RateLimit:
    """Counts the mails of each address within an hour. A clock that was set back forgets what lies ahead."""

    def __init__(self) -> None:
        self._sent: dict[str, list[Instant]] = {}

    def note(self, address: str, at: Instant) -> None:
        """Count a mail that was sent then."""
        self._sent.setdefault(address, []).append(at)

    def full(self, address: str, now: Instant, limit: int | None) -> bool:
        """True if an address gets no more mails now; ``limit`` None: it gets all."""
        sent = [at for at in self._sent.pop(address, ()) if now - HOUR < at <= now]
        if sent:
            self._sent[address] = sent
        return limit is not None and len(sent) >= limit

    def next(self, addresses: Iterable[str]) -> Instant | None:
        """First instant at which one of these addresses may get a mail again."""
        times = (Instant(self._sent[name][0] + HOUR) for name in addresses if name in self._sent)
        return min(times, default=None)


class MailQueue:
    """Takes mails from any thread. ``trouble`` is told once why they fail; ``failing``: why, or empty."""

    def __init__(self, folder: Path, clock: MailClock, trouble: Callable[[str], None]) -> None:
        self._folder, self._clock, self._trouble = folder, clock, trouble
        self.failing = ""
        self._hand = Hand()
        self._keeper = threading.Thread(target=self._keep_all, name="mail-keep", daemon=True)
        self._sender = threading.Thread(target=self._send_all, name="mail", daemon=True)
        # Of the thread that keeps
        self._taken: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._numbers = itertools.count(time.time_ns())
        self._nights: set[str] = set()  # ids of the nights' mails that were taken or sent
        # Of the thread that sends
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._mail, self._host = Mail(), "localhost"
        self._rate_limit = RateLimit()
        self._waiting: list[_Kept] = []  # not sent yet; until another one is sent where due is endless
        self._limited: set[str] = set()  # addresses whose mails wait for the limit of an hour
        self._trial: _Kept | None = None  # the one that is tried now and then while none can be sent
        self._noted = 0

    # ------------------------------------------------------------ from any thread

    def start(self, mail: Mail, host: str) -> None:
        """Begin to work, with what a former daemon left."""
        self._taken.put(lambda: self._resume(mail, host))
        self._keeper.start()
        self._sender.start()

    def send(self, messages: Iterable[MailMessage], mail: Mail, host: str) -> None:
        """Have mails sent by the way that is set; without one they are dropped."""
        self._taken.put(lambda: self._take(messages, mail, host))

    def follow(self, mail: Mail, host: str) -> None:
        """Have mails that could not be sent tried again by another way; without any they wait for one."""
        self.send((), mail, host)

    def send_file(self, path: Path, mail: Mail, host: str) -> None:
        """Have the mails of a file sent, each once whatever happens in between, and the file removed."""

        def take() -> None:
            with contextlib.suppress(FileNotFoundError):
                messages = [MailMessage(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
                self._take([each for each in messages if each.id not in self._nights], mail, host)
                path.unlink()

        self._taken.put(take)

    def close(self, patience: float = 2.0) -> None:
        """Stop; what is left lies in the folder, and a command that still runs is ended."""
        if self._sender.is_alive():
            self._taken.put(None)
            self._keeper.join(KEEPING)
            self._sender.join(patience)
            self._hand.stop()
            self._sender.join(0.5)

    # ------------------------------------------------------------ the thread that keeps

    def _keep_all(self) -> None:
        """Bring mails to the disk, then to the thread that sends them."""
        while (work := self._taken.get()) is not None:
            _safely(work)
        self._queue.put(None)

    def _resume(self, mail: Mail, host: str) -> None:
        """Read what a former daemon left. A mail that it had sent is not on its way any more."""
        left, done, now = [], set(), self._clock.now()
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
                left.append(_Kept(message, {path: message.id}))
                done.add(message.id)
        self._nights = {id for id in done if id.startswith(NIGHT)}
        self._queue.put(lambda: self._add(left, mail, host))

    def _take(self, messages: Iterable[MailMessage], mail: Mail, host: str) -> None:
        kept = []
        for message in messages if mail.on else ():
            path = self._folder / f"{next(self._numbers):020d}.json"
            try:
                self._folder.mkdir(mode=0o700, exist_ok=True)
                write_private(path, [json.dumps(asdict(message))])
            except OSError as error:  # it is sent nevertheless
                LOG.warning("a mail could not be kept in %s: %s", self._folder, error)
            if message.id.startswith(NIGHT):
                self._nights.add(message.id)
            kept.append(_Kept(message, {path: message.id}))
        self._queue.put(lambda: self._add(kept, mail, host))

    # ------------------------------------------------------------ the thread that sends

    def _send_all(self) -> None:
        while True:
            due = min((kept.due for kept in self._waiting), default=math.inf) - time.monotonic()
            if (at := self._rate_limit.next(self._limited)) is not None:
                due = min(due, self._clock.real_of(at) - time.time())
            work: _Work | None = self._look
            with contextlib.suppress(queue.Empty):
                waits = self._mail.on and due < math.inf
                work = self._queue.get(timeout=max(0.01, due) if waits else None)
            if work is None:
                return
            _safely(work)
            _safely(self._look)

    def _add(self, mails: list[_Kept], mail: Mail, host: str) -> None:
        """Take mails; where another way is set now, what could not be sent is tried again by that."""
        if mail != self._mail:
            self.failing, self._trial = "", None
            self._begin_anew()
        self._waiting += mails
        self._mail, self._host = mail, host

    def _begin_anew(self) -> None:
        """Have all that waits tried again, within the limit of each address."""
        for kept in self._waiting:
            kept.due, kept.tries, kept.counted = 0.0, 0, False

    def _look(self) -> None:
        """Try what is due, and what waited for the limit of an hour: that in one mail for each person."""
        if not self._mail.on:
            return
        now, limit = self._clock.now(), self._mail.limit
        for kept in [kept for kept in self._waiting if kept.due <= time.monotonic()]:
            address = kept.message.to
            if not kept.counted and (address in self._limited or self._rate_limit.full(address, now, limit)):
                self._limited.add(address)
                kept.due = math.inf
            else:
                self._try(kept)
        for address in [name for name in self._limited if not self._rate_limit.full(name, now, limit)]:
            self._limited.remove(address)
            some = [kept for kept in self._waiting if kept.message.to == address and not kept.counted]
            self._waiting = [kept for kept in self._waiting if kept.message.to != address or kept.counted]
            one = _Kept(gathered(address, [kept.message for kept in some]), {})
            for kept in some:
                one.files |= kept.files
            self._waiting.append(one)
            self._try(one)

    def _try(self, kept: _Kept) -> None:
        """Hand a mail over, or see to it that it is tried again; whatever happens, others are not held up."""
        if self._hand.stopped:
            return
        if not kept.counted:
            self._rate_limit.note(kept.message.to, self._clock.now())
            kept.counted = True
        try:
            deliver(kept.message, self._mail, self._host, self._hand)
        except NotSent as error:
            self._not_sent(kept, error)
        except Exception as error:
            LOG.exception("mail %r could not be sent", kept.message.subject)
            self._not_sent(kept, NotSent(f"internal error: {error!r}"[:300]))
        else:
            self._noted += 1  # in a file, so that a restart keeps to the limit and sends nothing twice
            with contextlib.suppress(OSError):
                self._folder.mkdir(mode=0o700, exist_ok=True)
                with open(self._folder / "sent", "a", encoding="utf-8") as out:
                    out.write(f"{self._clock.now()} {kept.message.to} {','.join(kept.files.values())}\n")
                if self._noted % NOTED == 0:
                    self._shorten()
            _remove(kept.files)
            self._waiting.remove(kept)
            self.failing = ""
            if self._trial is not None:
                LOG.info("mail can be sent again")
                self._trial = None
                self._begin_anew()

    def _not_sent(self, kept: _Kept, error: NotSent) -> None:
        if self._hand.stopped:
            return
        if error.for_good:
            LOG.warning("mail %r: %s", kept.message.subject, error)
            self._waiting.remove(kept)
            _remove(kept.files)
            return
        kept.tries += 1
        self.failing = f"mail cannot be sent: {error}"
        if self._trial is None and kept.tries > len(PAUSES):
            self._trial = kept
            LOG.warning("mail cannot be sent: %s; it is kept in %s", error, self._folder)
            self._trouble(f"mail cannot be sent: {error}; it is kept and goes out once one can be sent again")
        pause = TRIAL if kept is self._trial else math.inf
        kept.due = time.monotonic() + (pause if self._trial is not None else PAUSES[kept.tries - 1])

    def _shorten(self) -> list[list[str]]:
        """Forget what was sent over an hour ago, of the nights' mails over a week; return the rest."""
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
