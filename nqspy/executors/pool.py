"""Pool of idle shepherds, and the life of a shepherd: it serves one attempt, then others while all goes well.
A new shepherd costs more than a short job. Just before it reports its job's end, it offers itself to the
spawner with a socket for an order; it exits when that is closed. Standard library only."""

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
"""Most attempts that one shepherd serves."""
_MOST = 64
IDLE_SECONDS = 1.0
"""Real seconds that an idle shepherd waits for an order."""
_LARGEST = 1 << 17

_LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
_FILES = ("oom_score_adj", "coredump_filter", "cgroup")
Traits = tuple[object, ...]
"""Process attributes that children inherit: a job that changes them would change those of the next job."""


class ShepherdPool:
    """Idle shepherds, on the spawner's side. ``offers``: socket for their offers, which all inherit."""

    def __init__(self, seconds: float) -> None:
        """``seconds``: real seconds that a shepherd waits for an order."""
        self._seconds = seconds
        self._here, self.offers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._here.setblocking(False)
        self._waiting: list[tuple[float, bool, int, socket.socket]] = []

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when a shepherd offers itself."""
        return self._here.fileno()

    def read_offers(self) -> list[int]:
        """Read the offers; return the pids of the shepherds that have become idle."""
        found: list[int] = []
        while True:
            try:
                message, fds, _, _ = socket.recv_fds(self._here, 64, 1, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return found
            pid, born = map(int, message.split())
            self._waiting.append((now() + self._seconds, bool(born), pid, socket.socket(fileno=fds[0])))
            found.append(pid)
            if len(self._waiting) > _MOST:
                self._waiting.pop(0)[3].close()

    def assign(self, message: bytes, fds: list[int], born: bool) -> int:
        """Give an order to an idle shepherd with (``born``) or without an own cgroup; return its pid or 0."""
        for place in range(len(self._waiting) - 1, -1, -1):
            if self._waiting[place][1] == born:
                _, _, pid, channel = self._waiting.pop(place)
                with channel:
                    if _stopped(pid):
                        continue
                    try:
                        socket.send_fds(channel, [message], fds)
                    except OSError:
                        continue  # killed meanwhile
                return pid
        return 0

    def wait(self) -> float | None:
        """Return the real seconds until a shepherd was idle long enough; None: the pool is empty."""
        return max(0.0, self._waiting[0][0] - now()) if self._waiting else None

    def dismiss(self) -> None:
        """Dismiss the shepherds that have been idle for long enough."""
        while self._waiting and self._waiting[0][0] <= now():
            _, _, pid, channel = self._waiting.pop(0)
            channel.close()
            _stopped(pid)

    def end(self) -> None:
        """Dismiss all shepherds and accept no more."""
        pids = [pid for _, _, pid, _ in self._waiting]
        self.close()
        for pid in pids:
            _stopped(pid)

    def close(self) -> None:
        """Close the pool's descriptors, as in a new shepherd: the spawner has its own."""
        for *_, channel in self._waiting:
            channel.close()
        self._waiting = []
        self._here.close()


class Offer:
    """Shepherd's side: offers this process before the end is reported, then waits for an order."""

    def __init__(self, offers: socket.socket, born: bool, traits: Traits) -> None:
        """``born``: True if born in its jobs' cgroup; ``traits``: attributes needed for another job."""
        self._offers = offers
        self._traits = traits
        self._offer = b"%d %d" % (os.getpid(), born)
        self._channel: socket.socket | None = None

    def make(self) -> None:
        """Offer this process to the spawner: from now on an order may come. Do nothing if a child remains, an
        attribute (`process_traits`) has changed, or the spawner takes no offer."""
        # A delivery that hangs in the kernel may have left a child, which would count for the next job.
        if not (forks.reap() and _unchanged(self._traits)):
            return
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                socket.send_fds(self._offers, [self._offer], [theirs.fileno()], socket.MSG_DONTWAIT)
            except OSError:
                mine.close()  # the spawner has ended or is busy
                return
        self._channel = mine

    def wait(self) -> tuple[bytes, list[int]] | None:
        """Wait for an order; return it with its descriptors (lock, file of a long order). Return None if the
        spawner dismisses this process, if it was not offered, or if its attributes have changed."""
        if self._channel is None:
            return None
        with contextlib.suppress(OSError), self._channel:
            message, fds, _, _ = socket.recv_fds(self._channel, _LARGEST, 2, socket.MSG_CMSG_CLOEXEC)
            return (message, list(fds)) if message and _unchanged(self._traits) else None
        return None


def _stopped(pid: int) -> bool:
    """True if a process was stopped or has ended. Kill a stopped one: it would never exit."""
    found = proc.stat(pid)
    if found is not None and found.still:
        proc.send([pid], signal.SIGKILL)
    return found is None or found.still or found.state in "ZX"


def process_traits() -> Traits:
    """Return this process's CPU and I/O priority, timer slack, limits, OOM score, core filter and cgroups.
    Raises OSError if they cannot be read."""
    found: list[object] = [os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), forks.io_urgency()]
    found += [forks.timer_slack(), *map(resource.getrlimit, _LIMITS)]
    for name in _FILES:
        with contextlib.suppress(FileNotFoundError):  # this kernel has none
            found.append(proc.contents(f"/proc/self/{name}"))
    return tuple(found)


def _unchanged(before: Traits) -> bool:
    """True if the traits of this process are the same as before."""
    try:
        return process_traits() == before
    except OSError:
        return False


def serve(order: dict[str, Any], station: Station, born: cgroups.ShepherdCgroup | None) -> None:
    """Serve an order as a shepherd, then others while all goes well. ``born``: this process's own cgroup."""
    os.setsid()
    urgency.ordinary_children()
    os.umask(0)
    wake = forks.wake_on_children()
    forks.become_subreaper()
    me = station.identifier.of(os.getpid()).text()
    traits = process_traits()
    for remaining in reversed(range(_ATTEMPTS)):
        folder = os.path.join(station.spool, records.folder_name(order["seq"], order["attempt"]))
        if order.get("deliver"):
            os.close(station.lock)
            os.chdir(folder)
            if (record := records.read(".", "exit")) is not None:
                AttemptReporter(order, station).finish(record | {"once_more": True})
            return
        if not prepare.claim(order, folder, me, station, born):
            return
        # The lock is released only now: its next holder knows that each order is claimed or never will be.
        os.close(station.lock)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # a shutdown ends the job, too: record how
        offer = Offer(station.offers, born is not None, traits)
        shepherd = Shepherd(order, station, born, wake, offer.make if remaining else None)
        try:
            reported = shepherd.live()
        except BaseException:
            shepherd.cgroup.kill()  # no job runs without a shepherd
            raise
        message = offer.wait() if reported else None
        if message is None:
            return
        text, (station.lock, *fds) = message
        order = prepare.read(text.partition(b"\n")[2], fds, station)
        for fd in fds:
            os.close(fd)
        # Nothing of the former attempt applies to this one.
        if not order["cpus"]:
            os.sched_setaffinity(0, station.cpus)
        if born is not None:
            born.begin()
