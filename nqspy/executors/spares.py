"""Shepherds that have seen an attempt to its end and are there for another. A shepherd of its own costs a
short request more than its job does: it must be forked, touch its pages first and be waited for.

A shepherd is spare when all of its job's processes have ended and the whole story is told; it then has no
child and holds nothing of the request. It offers itself to the starter with a socket for the next order,
waits, and leaves when the starter closes that. Standard library only.
"""

from __future__ import annotations

import os
import signal
import socket
import time

from nqspy.executors import proc, traits

_MOST = 64
PATIENCE = 1.0
"""Real seconds that one waits for an order."""
_LARGEST = 1 << 17
Message = tuple[bytes, list[int]]
"""An order as the starter read it, and its descriptors: the starter's lock, then the file of a long one."""


class Spares:
    """The starter's side: who offered himself. ``offers``: where shepherds do; every shepherd inherits it."""

    def __init__(self, patience: float) -> None:
        """``patience``: real seconds that one waits for an order."""
        self._patience = patience
        self._here, self.offers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._here.setblocking(False)
        self._waiting: list[tuple[float, bool, int, socket.socket]] = []

    def fileno(self) -> int:
        """Readable when somebody offers himself."""
        return self._here.fileno()

    def take_in(self) -> list[int]:
        """Reads the offers; gives the pids of those who are now spare."""
        found: list[int] = []
        while True:
            try:
                message, fds, _, _ = socket.recv_fds(self._here, 64, 1, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return found
            pid, born = map(int, message.split())
            self._waiting.append((_now() + self._patience, bool(born), pid, socket.socket(fileno=fds[0])))
            found.append(pid)
            if len(self._waiting) > _MOST:
                self._waiting.pop(0)[3].close()

    def hand(self, message: bytes, fds: list[int], born: bool) -> int:
        """Gives an order to a spare shepherd, one that was ``born`` in the cgroup of its job or one that was
        not; its pid, 0 when there is none."""
        for place in range(len(self._waiting) - 1, -1, -1):
            if self._waiting[place][1] == born:
                _, _, pid, channel = self._waiting.pop(place)
                with channel:
                    if _stands_still(pid):
                        continue
                    try:
                        socket.send_fds(channel, [message], fds)
                    except OSError:
                        continue  # killed meanwhile
                return pid
        return 0

    def wait(self) -> float | None:
        """Real seconds until one has waited long enough; None: there is none."""
        return max(0.0, self._waiting[0][0] - _now()) if self._waiting else None

    def let_go(self) -> None:
        """Has those leave who have waited long enough."""
        while self._waiting and self._waiting[0][0] <= _now():
            _, _, pid, channel = self._waiting.pop(0)
            channel.close()
            _stands_still(pid)

    def end(self) -> None:
        """Has all of them leave, and takes no more."""
        waiting = self._waiting
        self.close()
        for _, _, pid, _ in waiting:
            _stands_still(pid)

    def close(self) -> None:
        """In a shepherd: leaves them to the starter."""
        for *_, channel in self._waiting:
            channel.close()
        self._waiting = []
        self._here.close()


class Offer:
    """The shepherd's side: offers this process, and waits for an order. It is made before the end is told:
    what follows from that may be its next order."""

    def __init__(self, offers: socket.socket, born: bool, mine: traits.Traits) -> None:
        """``born``: in the cgroup of its jobs; ``mine``: what it handed on at first: where that is another it
        neither offers itself nor takes an order."""
        self._offers = offers
        self._mine = mine
        self._offer = b"%d %d" % (os.getpid(), born)
        self._channel: socket.socket | None = None

    def make(self) -> None:
        """From now on there may be an order."""
        if not (_childless() and traits.unchanged(self._mine)):
            return
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                socket.send_fds(self._offers, [self._offer], [theirs.fileno()], socket.MSG_DONTWAIT)
            except OSError:
                mine.close()  # the starter is gone, or has enough to do
                return
        self._channel = mine

    def wait(self) -> Message | None:
        """The next order; None when there is no more to do. What it leaves unclaimed is ordered again."""
        if self._channel is None:
            return None
        with self._channel:
            try:
                message, fds, _, _ = socket.recv_fds(self._channel, _LARGEST, 2, socket.MSG_CMSG_CLOEXEC)
            except OSError:
                return None
        self._channel = None
        return (message, list(fds)) if message and traits.unchanged(self._mine) else None


def _childless() -> bool:
    """True if this process has no child. A delivery that hangs in the kernel may have left one, and that
    would count as a process of the next job."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def _stands_still(pid: int) -> bool:
    """Whether somebody has stopped it, or it is gone. A stopped one is ended: it would never leave."""
    seen = proc.stat(pid)
    if seen is not None and seen.still:
        proc.send([pid], signal.SIGKILL)
    return seen is None or seen.still or seen.state in "ZX"


def _now() -> float:
    return time.monotonic()  # noqa: TID251 - a stand-alone process measures real durations
