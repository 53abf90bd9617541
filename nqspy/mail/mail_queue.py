"""The mail queue: mails leave on a thread of their own, a few for each person, none lost.

Every mail lies in the home's ``mail/`` from when it is taken until it was handed over: a daemon that dies
leaves them to the next one. A second thread puts them there, so that a mail server that hangs keeps none in
memory only.
"""

import json
import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from nqspy.mail.folder import KeptMail, MailClock, MailFolder
from nqspy.mail.message import MailMessage, gathered
from nqspy.mail.rate_limit import RateLimit
from nqspy.mail.transport import NotSent, deliver
from nqspy.model.ids import Instant
from nqspy.model.machine import Mail
from nqspy.system.run_with_timeout import Hand

PAUSES = (1.0, 5.0, 30.0, 120.0)
"""Real seconds between the tries of one mail."""

TRIAL = 300.0
"""Real seconds after which one mail is tried again while none can be sent."""

KEEPING = 10.0
"""Real seconds that a daemon which stops gives its mails to come to the disk."""

LOG = logging.getLogger("nqspy.mail")
_Work = Callable[[], None]


class MailQueue:
    """Takes mails from any thread. ``trouble`` is told, once, when they cannot be handed over; ``failing``:
    why they cannot be, empty while they can."""

    def __init__(self, folder: Path, clock: MailClock, trouble: Callable[[str], None]) -> None:
        self._folder = MailFolder(folder, clock)
        self._clock = clock
        self._trouble = trouble
        self._taken: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._keeper = threading.Thread(target=self._keep_all, name="mail-keep", daemon=True)
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._sender = threading.Thread(target=self._send_all, name="mail", daemon=True)
        self._hand = Hand()
        self._rate_limit: RateLimit[KeptMail] = RateLimit()
        self._waiting: list[KeptMail] = []  # not sent yet; until another is sent where due is endless
        self._trial: KeptMail | None = None  # the one that is tried now and then while none can be sent
        self._mail, self._host = Mail(), "localhost"
        self.failing = ""

    # ------------------------------------------------------------ from any thread

    def start(self, mail: Mail, host: str) -> None:
        """Begins to work, with what a former daemon left."""
        self._taken.put(lambda: self._resume(mail, host))
        self._keeper.start()
        self._sender.start()

    def send(self, messages: Iterable[MailMessage], mail: Mail, host: str) -> None:
        """Has mails sent by the way that is set; without one they are dropped."""
        self._taken.put(lambda: self._take(messages, mail, host))

    def follow(self, mail: Mail, host: str) -> None:
        """The way is set anew: what could not be sent by the former one is tried again by this one; without
        any it waits for one."""
        self._taken.put(lambda: self._queue.put(lambda: self._follow(mail, host)))

    def send_file(self, path: Path, mail: Mail, host: str) -> None:
        """Has the mails sent that a file holds, and the file removed: each once, whatever happens in
        between."""
        self._taken.put(lambda: self._take_file(path, mail, host))

    def close(self, patience: float = 2.0) -> None:
        """Stops; what is left lies in the folder, and a command that still runs is ended."""
        if not self._sender.is_alive():
            return
        self._taken.put(None)
        self._keeper.join(KEEPING)
        self._sender.join(patience)
        self._hand.stop()
        self._sender.join(0.5)

    # ------------------------------------------------------------ the thread that keeps

    def _keep_all(self) -> None:
        """Brings mails to the disk, then to the thread that sends them."""
        while (work := self._taken.get()) is not None:
            _safely(work)
        self._queue.put(None)

    def _resume(self, mail: Mail, host: str) -> None:
        lately, kept = self._folder.sent_lately(), self._folder.left()
        self._queue.put(lambda: self._begin(lately, kept, mail, host))

    def _take(self, messages: Iterable[MailMessage], mail: Mail, host: str) -> None:
        kept = [self._folder.keep(message) for message in messages] if mail.on else []
        self._queue.put(lambda: self._admit_all(kept, mail, host))

    def _take_file(self, path: Path, mail: Mail, host: str) -> None:
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        self._take(self._folder.unknown(MailMessage(**row) for row in rows), mail, host)
        path.unlink(missing_ok=True)

    # ------------------------------------------------------------ the thread that sends

    def _send_all(self) -> None:
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
        times = [min((kept.due for kept in self._waiting), default=math.inf) - time.monotonic()]
        if (at := self._rate_limit.next()) is not None:
            times.append(self._clock.real_of(at) - time.time())
        return max(0.01, min(times)) if min(times) < math.inf else None

    def _look(self) -> None:
        """What is due: mails to be tried again, people whose hour is over."""
        if not self._mail.on:
            return
        now = time.monotonic()
        due = sorted((kept for kept in self._waiting if kept.due <= now), key=lambda kept: kept.due)
        self._waiting = [kept for kept in self._waiting if kept.due > now]
        for kept in due:
            self._try(kept)
        for address, waiting in self._rate_limit.due(self._clock.now(), self._mail.limit):
            self._try(self._together(address, waiting) if len(waiting) > 1 else waiting[0])

    def _together(self, address: str, waiting: list[KeptMail]) -> KeptMail:
        message = gathered(address, [each.message for each in waiting])
        return self._folder.keep_instead(message, waiting)

    def _begin(self, lately: list[tuple[str, Instant]], kept: list[KeptMail], mail: Mail, host: str) -> None:
        for address, at in lately:
            self._rate_limit.note(address, at)
        self._admit_all(kept, mail, host)

    def _follow(self, mail: Mail, host: str) -> None:
        if mail == self._mail:
            return
        self.failing, self._trial = "", None
        waiting, self._waiting = sorted(self._waiting, key=lambda kept: kept.due), []
        self._admit_all(waiting, mail, host)

    def _admit_all(self, mails: Iterable[KeptMail], mail: Mail, host: str) -> None:
        """They go now, or when their person's hour is over; without a way they wait for one."""
        self._mail, self._host = mail, host
        for kept in mails:
            if mail.on:
                self._admit(kept)
            else:
                self._wait(kept, math.inf)

    def _admit(self, kept: KeptMail) -> None:
        kept.tries = 0
        if self._rate_limit.admit(kept.message.to, kept, self._clock.now(), self._mail.limit):
            self._try(kept)

    def _wait(self, kept: KeptMail, pause: float) -> None:
        kept.due = time.monotonic() + pause
        self._waiting.append(kept)

    # ------------------------------------------------------------ one try

    def _try(self, kept: KeptMail) -> None:
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
            self._folder.note(kept)
            self.failing = ""
            self._over()

    def _not_sent(self, kept: KeptMail, error: NotSent) -> None:
        if self._hand.stopped:
            return
        if error.for_good:
            LOG.warning("mail %r: %s", kept.message.subject, error)
            self._folder.drop(kept)
            return
        kept.tries += 1
        self.failing = f"mail cannot be sent: {error}"
        if self._trial is None and kept.tries > len(PAUSES):
            self._trial = kept
            LOG.warning("mail cannot be sent: %s; it is kept in %s", error, self._folder.path)
            self._trouble(f"mail cannot be sent: {error}; it is kept and goes out once one can be sent again")
        if self._trial is None:
            self._wait(kept, PAUSES[kept.tries - 1])
        else:
            self._wait(kept, TRIAL if kept is self._trial else math.inf)

    def _over(self) -> None:
        """One was sent: what waits for that is tried again, within everybody's hourly limit."""
        if self._trial is not None:
            LOG.info("mail can be sent again")
        self._trial = None
        again = [kept for kept in self._waiting if kept.due == math.inf]
        self._waiting = [kept for kept in self._waiting if kept.due < math.inf]
        for kept in again:
            self._admit(kept)


def _safely(work: _Work) -> None:
    try:
        work()
    except Exception as error:
        LOG.warning("the mail queue failed: %s", error)
