"""A shepherd's life: one attempt, then others while all goes well: a shepherd of its own costs a short
request more than its job does. When its job's processes have ended and the story is told, it offers itself to
the starter with a socket for an order; it leaves when that is closed. Standard library only."""

import contextlib
import os
import resource
import signal
import socket
from typing import Any

from nqspy.executors import cgroups, forks, prepare, proc, records
from nqspy.executors.attempt_reporter import AttemptReporter, Station
from nqspy.executors.proc import now
from nqspy.executors.shepherd import Shepherd
from nqspy.system import urgency

_ATTEMPTS = 100
"""So many attempts one shepherd serves at most."""
_MOST = 64
PATIENCE = 1.0
"""Real seconds that one waits for an order."""
_LARGEST = 1 << 17

_LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
_FILES = ("oom_score_adj", "coredump_filter", "cgroup")
Traits = tuple[object, ...]
"""Traits that a process hands on to its children: a job that changes them would change the next job's."""


class Spares:
    """Spare shepherds, as the starter sees them. ``offers``: where they offer themselves; all inherit it."""

    def __init__(self, patience: float) -> None:
        """``patience``: real seconds that one waits for an order."""
        self._patience = patience
        self._here, self.offers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._here.setblocking(False)
        self._waiting: list[tuple[float, bool, int, socket.socket]] = []

    def fileno(self) -> int:
        """Descriptor that is readable when a shepherd offers itself."""
        return self._here.fileno()

    def take_in(self) -> list[int]:
        """Read the offers; return the pids of those that are spare now."""
        found: list[int] = []
        while True:
            try:
                message, fds, _, _ = socket.recv_fds(self._here, 64, 1, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return found
            pid, born = map(int, message.split())
            self._waiting.append((now() + self._patience, bool(born), pid, socket.socket(fileno=fds[0])))
            found.append(pid)
            if len(self._waiting) > _MOST:
                self._waiting.pop(0)[3].close()

    def hand(self, message: bytes, fds: list[int], born: bool) -> int:
        """Give an order to a spare shepherd, ``born`` in its job's cgroup or not; return its pid or 0."""
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
        return max(0.0, self._waiting[0][0] - now()) if self._waiting else None

    def let_go(self) -> None:
        """Have those leave that have waited long enough."""
        while self._waiting and self._waiting[0][0] <= now():
            _, _, pid, channel = self._waiting.pop(0)
            channel.close()
            _stands_still(pid)

    def end(self) -> None:
        """Has all of them leave, and takes no more."""
        pids = [pid for _, _, pid, _ in self._waiting]
        self.close()
        for pid in pids:
            _stands_still(pid)

    def close(self) -> None:
        """In a shepherd: leaves them to the starter."""
        for *_, channel in self._waiting:
            channel.close()
        self._waiting = []
        self._here.close()


class Offer:
    """The shepherd's side: offers this process before the end is told, and waits for an order."""

    def __init__(self, offers: socket.socket, born: bool, mine: Traits) -> None:
        """``born``: in the cgroup of its jobs; ``mine``: its traits, without which it takes no order."""
        self._offers = offers
        self._mine = mine
        self._offer = b"%d %d" % (os.getpid(), born)
        self._channel: socket.socket | None = None

    def make(self) -> None:
        """Offer it: from now on there may be an order."""
        # A delivery that hangs in the kernel may have left a child: it would count as one of the next job.
        if not (forks.reap() and _unchanged(self._mine)):
            return
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                socket.send_fds(self._offers, [self._offer], [theirs.fileno()], socket.MSG_DONTWAIT)
            except OSError:
                mine.close()  # the starter is gone, or has enough to do
                return
        self._channel = mine

    def wait(self) -> tuple[bytes, list[int]] | None:
        """Return the next order with its descriptors: the starter's lock, a long order's file; or None."""
        if self._channel is None:
            return None
        with contextlib.suppress(OSError), self._channel:
            message, fds, _, _ = socket.recv_fds(self._channel, _LARGEST, 2, socket.MSG_CMSG_CLOEXEC)
            return (message, list(fds)) if message and _unchanged(self._mine) else None
        return None


def _stands_still(pid: int) -> bool:
    """True if it was stopped, or is gone. A stopped one is ended: it would never leave."""
    seen = proc.stat(pid)
    if seen is not None and seen.still:
        proc.send([pid], signal.SIGKILL)
    return seen is None or seen.still or seen.state in "ZX"


def of_this_process() -> Traits:
    """Return its urgency for CPUs and disks, how exact its timers are, its limits and cgroups, how much the
    kernel likes to kill it and what of it comes into a core file. Raises OSError when that cannot be read."""
    found: list[object] = [os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), forks.io_urgency()]
    found += [forks.timer_slack(), *map(resource.getrlimit, _LIMITS)]
    for name in _FILES:
        with contextlib.suppress(FileNotFoundError):  # this kernel has none
            found.append(proc.contents(f"/proc/self/{name}"))
    return tuple(found)


def _unchanged(before: Traits) -> bool:
    """True if they still are as they were."""
    try:
        return of_this_process() == before
    except OSError:
        return False


def serve(order: dict[str, Any], station: Station, born: cgroups.ShepherdCgroup | None) -> None:
    """Live the life of a shepherd (``born`` in the cgroup of its jobs); end when another has the claim."""
    os.setsid()
    urgency.ordinary_children()
    os.umask(0)
    wake = forks.wake_on_children()
    forks.become_subreaper()
    me = station.identifier.of(os.getpid()).text()
    mine = of_this_process()
    for left in reversed(range(_ATTEMPTS)):
        folder = os.path.join(station.spool, records.folder_name(order["seq"], order["attempt"]))
        if order.get("deliver"):
            os.close(station.lock)
            os.chdir(folder)
            if (record := records.read(".", "exit")) is not None:
                AttemptReporter(order, station).finish(record | {"once_more": True})
            return
        if not prepare.claim(order, folder, me, station, born):
            return
        # The lock is let go only now: whoever gets it knows that every order was claimed or never will be.
        os.close(station.lock)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # at a shutdown the job gets its own: record how it ends
        offer = Offer(station.offers, born is not None, mine)
        shepherd = Shepherd(order, station, born, wake, offer.make if left else None)
        try:
            told = shepherd.live()
        except BaseException:
            shepherd.cgroup.kill()  # no job runs without somebody to watch over it
            raise
        message = offer.wait() if told else None
        if message is None:
            return
        text, (station.lock, *fds) = message
        order = prepare.read(text.partition(b"\n")[2], fds, station)
        for fd in fds:
            os.close(fd)
        # Nothing of the attempt before holds for this one.
        if not order["cpus"]:
            os.sched_setaffinity(0, station.cpus)
        if born is not None:
            born.begin()
