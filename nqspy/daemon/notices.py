"""Slow work after the commit: notices to exits on a thread, mails on another. No decision waits for them."""

import queue
import threading
from collections.abc import Callable, Iterable
from copy import copy
from functools import partial
from typing import Any

from nqspy.daemon.log import LOG
from nqspy.decider.due_notices import DueNotices
from nqspy.decider.notice_runner import NoticeRunner
from nqspy.mail.mail_queue import MailQueue
from nqspy.mail.message import messages_to
from nqspy.model.actions import Notify
from nqspy.model.events import Recorded
from nqspy.model.site import Site
from nqspy.ports import Exits
from nqspy.rpc.messages import plain

MOST = 10_000
"""Most notices that may wait; further ones are dropped."""


class Notices:
    """Carries out notices and other slow work in order on a thread; a failure is only logged."""

    def __init__(self, mail_queue: MailQueue) -> None:
        self.mail_queue = mail_queue
        self._queue: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="notices", daemon=True)
        self._left_out = 0

    def start(self, site: Site) -> None:
        """Start the threads for notices and mails."""
        self._thread.start()
        self.mail_queue.start(copy(site.settings.mail), site.name)

    def mail(self, notice: Notify, site: Site) -> None:
        """Log a notice, and mail it if the site has a configured way; without a recipient to the managers."""
        to = notice.to or managers(site)
        text = plain(notice.text.strip().replace("\n", " | "))
        LOG.info("notice to %s: %s: %s", to, plain(notice.subject), text)
        if site.settings.mail.on:
            found, bad = messages_to(to, notice.subject, notice.text)
            if bad:
                LOG.warning("no mail to %s: this is not a mail address", ", ".join(map(repr, bad)))
            self.mail_queue.send(found, copy(site.settings.mail), site.name)

    def follow(self, site: Site) -> None:
        """Apply changed settings of mail to the mail queue."""
        self.mail_queue.follow(copy(site.settings.mail), site.name)

    def later(self, work: Callable[[], Any]) -> None:
        """Queue slow work; while `MOST` wait, drop further work, so that it does not fill the memory."""
        if self._queue.qsize() >= MOST:
            if not self._left_out:
                LOG.error("%d notices wait for slow exits; new notices are dropped", MOST)
            self._left_out += 1
            return
        if self._left_out:
            LOG.error("%d notices were dropped because earlier ones took too long", self._left_out)
            self._left_out = 0
        self._queue.put(work)

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            try:
                work()
            except Exception as error:
                LOG.warning("a notice failed: %s", error)

    def close(self) -> None:
        """Finish waiting work, for 2 s at most, and close the mail queue."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(timeout=2)
        self.mail_queue.close()


class ExitNotices:
    """Calls notice hooks of exits, in order, after the commit; ``runner`` does it in the notices' thread."""

    def __init__(self, exits: Exits, notices: Notices, runner: NoticeRunner) -> None:
        self._exits, self._due = exits, DueNotices(exits)
        self._notices, self._runner = notices, runner

    def adopt(self, site: Site) -> None:
        """Remember the requests that run already, so that exits are notified of their ends."""
        self._due.adopt(site)

    def notify(self, happened: Iterable[Recorded], site: Site) -> None:
        """Call the exits' hooks for starts, ends and shifts among these events."""
        for hook, arguments in self._due.of(happened, site):
            self._later(hook, arguments)

    def report(self, data: Any) -> None:
        """Call the exits' hook for the night's report, which they can only read."""
        if self._exits.has("night_report"):
            self._later("night_report", {"report": data})

    def _later(self, hook: str, arguments: dict[str, Any]) -> None:
        self._runner.ready()
        self._notices.later(partial(self._runner.give, hook, arguments))


def managers(site: Site, operators: bool = False) -> str:
    """Return the addresses of the site's managers (and ``operators``) with commas between; none: ``root``."""
    named = [user for user, role in site.settings.managers.items() if role == "m" or operators]
    return ",".join(named) or "root"
