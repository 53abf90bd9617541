"""A small process that finds a shepherd for each order: an idle one (`pool`), else a new one, forked from
itself. All modules are imported beforehand.

Run as ``python -I -S -E -X utf8 spawner.py ORDERS LOCK SPOOL NAME CGROUP FILES IDLE``: descriptors of the
order socket and of the spawner's lock, the spool's path, the name of this home's cgroup directory, the kind
of cgroups to use (empty: the best), how many files a job may open (the daemon has more), how many seconds an
idle shepherd stays. An order is one message: ``SEQ.ATTEMPT`` and a line end, then the order as JSON, or
nothing and a descriptor of a file that holds it. The answer is ``SEQ.ATTEMPT`` with the shepherd's pidfd.
When the daemon closes its end of the socket, the spawner releases the lock and stays only for its shepherds
(`Reaper`); it reports that by `STAYS`. Standard library only."""

import contextlib
import sys

if __name__ == "__main__":
    sys.path.insert(0, __file__.rsplit("/", 3)[0])

import fcntl
import gc
import json
import os
import resource
import select
import signal
import socket
import time
import traceback
from typing import Any

from nqspy.executors import cgroups, forks, prepare, proc, records
from nqspy.executors.attempt_reporter import Station
from nqspy.executors.control import rmdir
from nqspy.executors.logins import LoginServer
from nqspy.executors.pool import ShepherdPool, serve

_LARGEST = 1 << 17
_PAUSE = 0.5
STAYS = b"stays"
"""Last message of a spawner, which then stays for its shepherds only."""


def main(arguments: list[str]) -> None:
    """Read orders until the daemon has ended, then stay as long as there are shepherds."""
    orders, lock, spool, name, kind, files, idle = arguments
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(files), most))
    for fd in (int(orders), int(lock)):
        os.set_inheritable(fd, False)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    connection, groups = socket.socket(fileno=int(orders)), cgroups.Cgroups(name, kind)
    spawner = _Spawner(connection, int(lock), spool, groups, float(idle))
    gc.collect()
    gc.disable()
    gc.freeze()
    spawner.serve()
    spawner.stay()


class _Spawner:
    """Reads orders and finds shepherds for them."""

    def __init__(
        self, orders: socket.socket, lock: int, spool: str, groups: cgroups.Cgroups, idle: float
    ) -> None:
        """``idle``: real seconds that an idle shepherd stays."""
        self.orders, self.pool, self.poll = orders, ShepherdPool(idle), select.poll()
        reports = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.station = Station(spool, lock, reports, groups, self.pool.offers)
        self.logins = LoginServer(spool, groups, self.station.most_processes, self.poll)
        self.station.logins = self.logins.asks
        self.reaper = Reaper(self.station, self.logins.runners)
        self.wake = forks.wake_on_children()

    def serve(self) -> None:
        """Handle orders and the ends of children until the daemon has ended."""
        for fd in (self.orders.fileno(), self.pool.fileno(), self.wake):
            self.poll.register(fd, select.POLLIN)
        while True:
            waits = [wait * 1000 for wait in (self.reaper.wait(), self.pool.wait()) if wait is not None]
            ready = [fd for fd, _ in self.poll.poll(min(waits, default=None))]
            if self.pool.fileno() in ready:
                self.reaper.set_idle(self.pool.read_offers())
            self.logins.serve(ready)
            if self.wake in ready or not ready:
                forks.silence(self.wake)
                self.reaper.reap()
            if self.orders.fileno() in ready and not self._handle():
                self.reaper.reap()
                return
            self.pool.dismiss()

    def stay(self) -> None:
        """Release the lock, then reap until no shepherd remains."""
        self.poll.unregister(self.orders)
        self.poll.unregister(self.pool)
        os.close(self.station.lock)
        self.pool.end()
        if self.reaper.busy():
            with contextlib.suppress(OSError):  # the daemon was killed
                self.orders.send(STAYS)
            self.orders.close()
        while self.reaper.busy():
            wait = self.reaper.wait()
            self.logins.serve([fd for fd, _ in self.poll.poll(None if wait is None else wait * 1000)])
            forks.silence(self.wake)
            self.reaper.reap()
        self.reaper.clean_up()

    def _handle(self) -> bool:
        """Handle one order; return False if no more will come."""
        try:
            message, fds, _, _ = socket.recv_fds(self.orders, _LARGEST, 1, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:  # the daemon was killed before it read our answers
            return False
        if not message:
            return False
        head, _, data = message.partition(b"\n")
        name, order = head.decode("ascii"), dict[str, Any]()
        try:
            order = prepare.read(data, fds, self.station)
        except Exception:  # an unreadable order is empty; its shepherd fails
            traceback.print_exc()
            sys.stderr.flush()
        in_cgroup = bool(order) and self.station.cgroups.kind != "none" and not order.get("deliver")
        plain = in_cgroup and prepare.plain(order, self.station)
        pid = self.pool.assign(message, [self.station.lock, *fds], plain) if order else 0
        if pid:
            self.reaper.reassign(pid, name)
        else:
            born = self.station.cgroups.for_shepherd(name) if plain else None
            fork = os.fork if born is None else born.fork
            while not pid:
                try:
                    pid = forks.begin(lambda: self._shepherd(order, born), fork, log=True)
                except OSError:
                    time.sleep(_PAUSE)  # no process is free: the order waits
            self.reaper.add(pid, name)
        try:
            pidfd = [os.pidfd_open(pid)]
        except OSError:
            pidfd = []  # no descriptor is free
        with contextlib.suppress(OSError):  # the daemon has ended: the next read shows it
            socket.send_fds(self.orders, [head], pidfd)
        for fd in (*pidfd, *fds):
            os.close(fd)
        return True

    def _shepherd(self, order: dict[str, Any], born: cgroups.ShepherdCgroup | None) -> None:
        for each in (self.pool, self.logins, self.orders):
            each.close()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        try:
            serve(order, self.station, born)
        except records.Gone:
            sys.stderr.write(f"the folder of attempt {order['seq']}.{order['attempt']} was removed\n")
            sys.stderr.flush()
            os._exit(1)


_FAST_ROUNDS = 50
_FAST = 0.02
_SLOW = 1.0


class Reaper:
    """Reaps shepherds, and kills what a killed one leaves. The spawner is the subreaper above its shepherds,
    as each shepherd is above its job. So what remains of the job of a killed shepherd becomes a child of the
    spawner, even in another session and without marks. All children that are no shepherds are killed; when
    none remains, the attempt's folder gets the record ``swept``."""

    def __init__(self, station: Station, others: set[int]) -> None:
        """``others``: other children, not to be killed; `reap` removes ended ones. Raises OSError."""
        self._spool, self._reports, self._cgroups = station.spool, station.reports, station.cgroups
        self._shepherds: dict[int, str] = {}
        self._births: dict[int, str] = {}
        self._others = others
        self._lost: list[str] = []
        self._rounds = 0
        forks.become_subreaper()
        self._update_list()

    def busy(self) -> bool:
        """True if there are shepherds, or attempts with processes to kill."""
        return bool(self._shepherds or self._lost)

    def wait(self) -> float | None:
        """Return the real seconds until the next round of killing; None if no process is to be killed."""
        if not self._lost:
            return None
        return _FAST if self._rounds < _FAST_ROUNDS else _SLOW

    def add(self, pid: int, name: str) -> None:
        """Add a shepherd forked for the attempt ``name``."""
        self._shepherds[pid] = self._births[pid] = name

    def reassign(self, pid: int, name: str) -> None:
        """Note that an idle shepherd now serves the attempt ``name``."""
        self._shepherds[pid] = name

    def set_idle(self, pids: list[int]) -> None:
        """Note that these shepherds have no attempt now."""
        self._shepherds |= dict.fromkeys(self._shepherds.keys() & pids, "")

    def reap(self) -> None:
        """Reap the children that have ended. A shepherd with another status than 0 counts as killed."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                if pid in self._others:
                    self._others.remove(pid)
                    self._lost += [""] if status else []
                name = self._shepherds.pop(pid, None)
                if name is not None:
                    if status:
                        self._lost += [name] if name else []
                        self._rounds = 0
                    self._cgroups.remove_for_shepherd(self._births.pop(pid), killed=bool(status))
        if self._lost:
            self._sweep()

    def clean_up(self) -> None:
        """Remove this home's cgroups, unless another spawner has the lock: a job may be about to enter."""
        with contextlib.suppress(OSError), open(f"{self._spool}/starter.lock", "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._cgroups.remove()
            self._update_list()

    def _sweep(self) -> None:
        """Kill, in one round, children that are no shepherds; record and report when surely none remains."""
        self._rounds += 1
        remaining = self._strangers()
        if remaining:
            before = _trees(remaining)
            # A stopped process forks no more: then all can be found.
            proc.send(before, signal.SIGSTOP, _trees(remaining))
            before = _trees(self._strangers())
            proc.send(before, signal.SIGKILL, before)
        elif not self._strangers():  # a list that is read while a process ends may miss others
            lost, self._lost = self._lost, []
            for name in filter(None, lost):
                with contextlib.suppress(OSError):  # no folder or no room: then it stays unknown
                    records.add(f"{self._spool}/{name}", "swept", {})
                seq, attempt = records.attempt_named(name) or (0, 0)
                message = {"k": "end", "s": seq, "a": attempt, "u": None}
                with contextlib.suppress(OSError):
                    self._reports.sendto(json.dumps(message).encode("ascii"), f"{self._spool}/reports.sock")

    def _strangers(self) -> list[int]:
        ours = self._others.union(self._shepherds)
        return [pid for pid in proc.children(os.getpid()) if pid not in ours]

    def _update_list(self) -> None:
        """Update the list of this home's cgroups, with the lock held: remove empty ones of other spawners,
        add those that exist. Errors change nothing."""
        path, noted = f"{self._spool}/cgroups", list[str]()
        own, name = self._cgroups.bases(), self._cgroups.name
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileNotFoundError):
                noted = proc.contents(path).decode("utf-8", "surrogateescape").split("\n")[:-1]
            for folder in noted:
                if folder not in own and _is_ours(folder, name):
                    cgroups.sweep(folder)
                    rmdir(folder)
            places = dict.fromkeys((*noted, *own))
            there = [each for each in places if _is_ours(each, name) and os.path.isdir(each)]
            if there and there != noted:
                data = "".join(f"{each}\n" for each in there).encode("utf-8", "surrogateescape")
                proc.replace(path, data, durable=True)
            elif there != noted:
                os.unlink(path)


def _trees(roots: list[int]) -> list[int]:
    return [pid for root in roots for pid in (root, *proc.descendants(root))]


def _is_ours(folder: str, name: str) -> bool:
    plain = os.path.isabs(folder) and os.path.normpath(folder) == folder and "\n" not in folder
    return plain and os.path.basename(folder) == name and os.path.realpath(folder) == folder


if __name__ == "__main__":
    main(sys.argv[1:])
