"""Commands that wait for their request (`mpprun` for an application, ``qsub -I`` for a session). When such a
command has ended, its request is deleted; when the request has ended, the command gets a signal. They hold no
connection: pidfds show their end, and one thread waits for these, started with the first such request."""

import contextlib
import os
import resource
import select
import signal
import threading
from collections.abc import Callable, Sequence

from nqspy.daemon.log import LOG
from nqspy.executors.proc import Stat, readable
from nqspy.model.events import Recorded, Submitted
from nqspy.model.ids import Seq
from nqspy.model.requests import Spec
from nqspy.model.site import Site

ENDED = signal.SIGURG
"""Signal to a command whose request has ended; without a handler it does nothing."""
MOST = 16_384
"""Most commands that are watched, each by a descriptor; at most a quarter of the descriptors allowed here."""


class CallerWatch:
    """Watches waiting commands; when one has ended, calls ``ended`` with its request, on its own thread."""

    def __init__(self, ended: Callable[[Seq], None]) -> None:
        self._ended = ended
        soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = MOST if soft == resource.RLIM_INFINITY else min(MOST, soft // 4)
        self._fds: dict[Seq, int] = {}
        self._seqs: dict[int, Seq] = {}
        self._poll: select.epoll | None = None
        self._stop, self._stopper = -1, -1
        self._thread: threading.Thread | None = None

    def begin(self, site: Site) -> list[Seq]:
        """Watch the commands that waited before this daemon; return the requests of those that have ended."""
        return [each.seq for each in site.requests.values() if not self._watch(each.seq, each.spec)]

    def follow(self, happened: Sequence[Recorded], site: Site) -> None:
        """Watch the commands of submitted requests; signal (`ENDED`) those of requests that have ended."""
        for each in happened:
            if isinstance(each.event, Submitted) and not self._watch(each.event.seq, each.event.spec):
                self._ended(each.event.seq)
            seq = getattr(each.event, "seq", None)
            if seq in self._fds and site.to_be(seq) is None:
                fd = self._fds.pop(seq)
                with contextlib.suppress(OSError):  # it has ended as well
                    signal.pidfd_send_signal(fd, ENDED)
                self._seqs.pop(fd, None)
                os.close(fd)

    def waits(self, seq: Seq) -> bool:
        """True if a command still waits for that request."""
        fd = self._fds.get(seq)
        return fd is not None and not readable(fd)

    def close(self) -> None:
        """Stop the thread that watches the commands."""
        if self._thread is not None and self._poll is not None:
            os.write(self._stopper, b"x")
            self._thread.join()
            self._poll.close()
            for fd in (*self._fds.values(), self._stop, self._stopper):
                os.close(fd)

    def _watch(self, seq: Seq, spec: Spec) -> bool:
        """Watch the command that waits for a request, if there is one; return False if it has ended."""
        caller = spec.caller or spec.session
        if caller is None or len(self._fds) >= self._most:  # it asks by itself, later
            return True
        try:
            fd = _opened(*caller, spec.uid)
        except OSError as error:
            LOG.warning("the client that waits for request %d cannot be watched: %s", seq, error)
            return True
        if fd is None:
            return False
        self._fds[seq], self._seqs[fd] = fd, seq
        if self._poll is None:
            self._poll = select.epoll()
            self._stop, self._stopper = os.pipe()
            self._poll.register(self._stop, select.EPOLLIN)
            self._thread = threading.Thread(target=self._run, args=(self._poll,), name="callers", daemon=True)
            self._thread.start()
        self._poll.register(fd, select.EPOLLIN | select.EPOLLONESHOT)
        return True

    def _run(self, poll: select.epoll) -> None:
        while True:
            for fd, _ in poll.poll():
                if fd == self._stop:
                    return
                if (seq := self._seqs.get(fd)) is not None:
                    self._ended(seq)


def _opened(pid: int, began: int, uid: int) -> int | None:
    """Return a pidfd of the user's process that began at ``began`` (ticks after boot); None if it has ended.
    Raises OSError if it cannot be watched."""
    try:
        fd = os.pidfd_open(max(pid, 0))
    except (ProcessLookupError, OverflowError):
        return None
    with contextlib.suppress(OSError):  # with the pidfd open the number is not reused
        same = Stat(pid).start == began and os.stat(f"/proc/{pid}").st_uid == uid
        if same and not readable(fd):
            return fd
    os.close(fd)
    return None
