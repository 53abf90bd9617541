"""Slow things, after the commit: mail and the exits' notices, on a thread of their own. No decision waits
for them."""

import queue
import subprocess
import threading
from collections.abc import Callable
from typing import Any

from nqspy.daemon.log import LOG
from nqspy.model.actions import Notify
from nqspy.rpc.messages import plain

TIMEOUT = 30
"""Longest time a mail command may take, real seconds."""


class Notices:
    """Takes notices in order; a mail command that fails is logged and costs nothing else."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="notices", daemon=True)

    def start(self) -> None:
        """Begins to work."""
        self._thread.start()

    def mail(self, notice: Notify, command: str | None, managers: str) -> None:
        """Feeds a mail to the site's command; without one the notice is only logged."""
        text = notice.text.strip().replace("\n", " | ")
        LOG.info("notice to %s: %s: %s", notice.to or managers, notice.subject, text)
        if command:
            self._queue.put(lambda: _send(command, notice, managers))

    def later(self, work: Callable[[], Any]) -> None:
        """Has something slow done."""
        self._queue.put(work)

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            try:
                work()
            except Exception as error:
                LOG.warning("a notice failed: %s", error)

    def close(self) -> None:
        """Finishes what is there, for a little while."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(timeout=2)


def _header(text: str) -> str:
    """One line, whatever is in it."""
    return plain(" ".join(text.split()))


def _send(command: str, notice: Notify, managers: str) -> None:
    to, subject = _header(notice.to or managers), _header(notice.subject)
    text = f"To: {to}\nSubject: {subject}\n\n{plain(notice.text)}\n"
    done = subprocess.run(
        command, shell=True, input=text.encode(), timeout=TIMEOUT, capture_output=True, check=False
    )
    if done.returncode != 0:
        LOG.warning(
            "mail command ended %d: %s", done.returncode, done.stderr.decode(errors="replace").strip()[:200]
        )
