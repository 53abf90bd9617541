"""One attempt as the daemon watches it, and its shepherd when somebody has stopped that.

A shepherd runs as the daemon's own user: a job of that user's can stop it. Then nobody would see the job's
end, its limits or what the daemon asks for, and its PEs were kept without end. So the daemon looks, now and
then while requests run, and whenever it has something to say; who stands still is continued.
"""

import logging
import signal
from collections.abc import Callable
from typing import Any

from nqspy.executors import proc
from nqspy.executors.patience import now
from nqspy.model.observations import Observation

_log = logging.getLogger("nqspy.executor")

Put = Callable[[Observation], None]
"""Takes what is observed; from any thread."""

_PACE = 5.0
_SOON = 0.2
_MOST = 25
"""So often a shepherd is continued at most: 5 s of standing still whatever is done."""


class WatchedAttempt:
    """One attempt under watch. ``order`` until the starter has answered; ``pending``: messages to a
    shepherd that does not listen yet; ``told``: reported as running; ``looks``: how often it was looked
    whether what is left of it has ended; ``stops``: how often its shepherd was found stopped."""

    __slots__ = ("looks", "order", "pending", "pidfd", "redelivered", "stops", "told")

    def __init__(self, order: dict[str, Any] | None, *, told: bool = False) -> None:
        self.order = order
        self.pending: list[bytes] = []
        self.pidfd: int | None = None
        self.told = told
        self.redelivered = False
        self.looks = 0
        self.stops = 0

    def go_on(self, name: str) -> bool:
        """Whether its shepherd stands still (``name``: the attempt's, for the log). It is continued; when
        that does not help, as it is stopped again or traced, it is killed: then the attempt is lost."""
        if self.pidfd is None or not stands_still(self.pidfd):
            return False
        self.stops += 1
        if self.stops == 1:
            _log.warning("the shepherd of %s was stopped: it is continued", name)
        if self.stops == _MOST:
            _log.warning("the shepherd of %s is stopped again and again: it is killed", name)
        proc.send_by(self.pidfd, signal.SIGCONT if self.stops < _MOST else signal.SIGKILL)
        return True


def stands_still(pidfd: int) -> bool:
    """Whether a process is stopped, or a tracer holds it."""
    pid = proc.pid_of(pidfd)
    seen = proc.stat(pid) if pid > 0 else None
    return seen is not None and seen.still


class Rhythm:
    """When shepherds are looked at: every few seconds, and soon again while one stands still."""

    def __init__(self) -> None:
        self._next = 0.0

    def wait(self) -> float:
        """Real seconds until the next look."""
        return max(0.0, self._next - now())

    def seen(self, trouble: bool) -> None:
        """They were looked at just now; ``trouble``: one stands still."""
        self._next = now() + (_SOON if trouble else _PACE)
