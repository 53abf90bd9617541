"""A small process that finds a shepherd for each order it reads: one that is spare (`spares`), else a new one
forked from itself. It has everything imported beforehand.

Run as ``python -I -S -E -X utf8 starter.py ORDERS LOCK SPOOL NAME CGROUP FILES SPARE``: descriptors of the
order socket and of the starter's lock, the spool's path, the name of this home's cgroup directory, the make
of cgroups to use (empty: the best), how many files a job may open (the daemon has more), how many seconds a
spare shepherd stays. An order is one message: ``SEQ.ATTEMPT`` and a line end, then the order as JSON, or
nothing and a descriptor of a file that holds it. The answer is ``SEQ.ATTEMPT`` with the shepherd's pidfd.
When the daemon's end of the socket is closed it lets the lock go and stays only for the shepherds that it has
(`Keeper`); it says so by `STAYS`. Standard library only.
"""

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

from nqspy.executors import cgroups, forks, login_taker, prepare, proc, records
from nqspy.executors.attempt_reporter import Station
from nqspy.executors.control import rmdir
from nqspy.executors.spares import Spares, serve

_LARGEST = 1 << 17
_PATIENCE = 0.5
STAYS = b"stays"
"""Last word of a starter that stays for its shepherds."""


def main(arguments: list[str]) -> None:
    """Reads orders until the daemon is gone, and stays as long as there are shepherds."""
    orders, lock, spool, name, kind, files, patience = arguments
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(files), most))
    for fd in (int(orders), int(lock)):
        os.set_inheritable(fd, False)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    connection, groups = socket.socket(fileno=int(orders)), cgroups.Cgroups(name, kind)
    desk = _Desk(connection, int(lock), spool, groups, float(patience))
    gc.collect()
    gc.disable()
    gc.freeze()
    desk.serve()
    desk.stay()


class _Desk:
    """Desk where orders come in and shepherds are found for them."""

    def __init__(
        self, orders: socket.socket, lock: int, spool: str, groups: cgroups.Cgroups, spare: float
    ) -> None:
        """``spare``: real seconds that a spare shepherd stays."""
        self.orders, self.spares, self.poll = orders, Spares(spare), select.poll()
        reports = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.station = Station(spool, lock, reports, groups, self.spares.offers)
        self.logins = login_taker.LoginDesk(spool, groups, self.station.most_processes, self.poll)
        self.station.logins = self.logins.asks
        self.keeper = Keeper(self.station, self.logins.takers)
        self.wake = forks.wake_on_children()

    def serve(self) -> None:
        """Handles orders and ends until the daemon is gone."""
        for fd in (self.orders.fileno(), self.spares.fileno(), self.wake):
            self.poll.register(fd, select.POLLIN)
        while True:
            waits = [wait * 1000 for wait in (self.keeper.wait(), self.spares.wait()) if wait is not None]
            ready = [fd for fd, _ in self.poll.poll(min(waits, default=None))]
            if self.spares.fileno() in ready:
                self.keeper.rest(self.spares.take_in())
            self.logins.serve(ready)
            if self.wake in ready or not ready:
                forks.silence(self.wake)
                self.keeper.look()
            if self.orders.fileno() in ready and not self._take():
                self.keeper.look()
                return
            self.spares.let_go()

    def stay(self) -> None:
        """Lets the lock go, and stays for the shepherds that it has."""
        self.poll.unregister(self.orders)
        self.poll.unregister(self.spares)
        os.close(self.station.lock)
        self.spares.end()
        if self.keeper.keeps():
            with contextlib.suppress(OSError):  # the daemon was killed
                self.orders.send(STAYS)
            self.orders.close()
        while self.keeper.keeps():
            wait = self.keeper.wait()
            self.logins.serve([fd for fd, _ in self.poll.poll(None if wait is None else wait * 1000)])
            forks.silence(self.wake)
            self.keeper.look()
        self.keeper.leave()

    def _take(self) -> bool:
        """Handles one order; False when there will be no more."""
        try:
            message, fds, _, _ = socket.recv_fds(self.orders, _LARGEST, 1, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:  # the daemon was killed with answers of ours unread
            return False
        if not message:
            return False
        head, _, data = message.partition(b"\n")
        name, order = head.decode("ascii"), dict[str, Any]()
        try:
            order = prepare.read(data, fds, self.station)
        except Exception:  # an order that cannot be read is empty, and its shepherd's trouble
            traceback.print_exc()
            sys.stderr.flush()
        in_cgroup = bool(order) and self.station.cgroups.kind != "none" and not order.get("deliver")
        plain = in_cgroup and prepare.plain(order, self.station)
        pid = self.spares.hand(message, [self.station.lock, *fds], plain) if order else 0
        if pid:
            self.keeper.turn(pid, name)
        else:
            pid = self._fork(order, plain, name)
        try:
            pidfd = [os.pidfd_open(pid)]
        except OSError:
            pidfd = []  # no descriptor to be had
        with contextlib.suppress(OSError):  # the daemon is gone; the next reading says so
            socket.send_fds(self.orders, [head], pidfd)
        for fd in (*pidfd, *fds):
            os.close(fd)
        return True

    def _fork(self, order: dict[str, Any], plain: bool, name: str) -> int:
        """A new shepherd for it."""
        born, pid = self.station.cgroups.for_shepherd(name) if plain else None, 0
        fork = os.fork if born is None else born.fork
        while not pid:
            try:
                pid = forks.begin(lambda: self._shepherd(order, born), fork, log=True)
            except OSError:
                time.sleep(_PATIENCE)  # no more processes for now: the order waits
        self.keeper.add(pid, name)
        return pid

    def _shepherd(self, order: dict[str, Any], born: cgroups.ShepherdCgroup | None) -> None:
        for each in (self.spares, self.logins, self.orders):
            each.close()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        try:
            serve(order, self.station, born)
        except records.Gone:
            sys.stderr.write(f"the folder of attempt {order['seq']}.{order['attempt']} was taken away\n")
            sys.stderr.flush()
            os._exit(1)


_HURRIED = 50
_HURRY = 0.02
_CALM = 1.0


class Keeper:
    """Shepherds by pid, and attempts of killed shepherds, the remains of which are being ended. The starter
    is the subreaper above its shepherds (each is the one of its job). So whatever is left of the job of a
    killed shepherd, in a session of its own and without a mark, comes to the starter. All its children that
    are no shepherds are such: they are killed; then the attempt's folder notes ``swept``."""

    def __init__(self, station: Station, others: set[int]) -> None:
        """``others``: children besides shepherds and remains; ended ones leave it. Raises OSError."""
        self._spool, self._reports, self._cgroups = station.spool, station.reports, station.cgroups
        self._shepherds: dict[int, str] = {}
        self._births: dict[int, str] = {}
        self._others = others
        self._lost: list[str] = []
        self._rounds = 0
        forks.become_subreaper()
        self._tend()

    def keeps(self) -> bool:
        """True if there is something to stay for."""
        return bool(self._shepherds or self._lost)

    def wait(self) -> float | None:
        """Real seconds after which it wants to look again, None: when a child ends."""
        if not self._lost:
            return None
        return _HURRY if self._rounds < _HURRIED else _CALM

    def add(self, pid: int, name: str) -> None:
        """A shepherd was forked for the attempt ``name``."""
        self._shepherds[pid] = self._births[pid] = name

    def turn(self, pid: int, name: str) -> None:
        """Note that a spare shepherd has the attempt ``name`` now."""
        self._shepherds[pid] = name

    def rest(self, pids: list[int]) -> None:
        """Note that these have seen theirs to its end."""
        self._shepherds |= dict.fromkeys(self._shepherds.keys() & pids, "")

    def look(self) -> None:
        """Waits for the children that have ended. A shepherd that did not leave by itself was killed."""
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

    def leave(self) -> None:
        """Take this home's cgroups away, unless another starter has them: a job may be about to enter."""
        with contextlib.suppress(OSError), open(f"{self._spool}/starter.lock", "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._cgroups.remove()
            self._tend()

    def _sweep(self) -> None:
        """Kill in one round what came to us; when nothing is left for sure that is noted and told."""
        self._rounds += 1
        left = self._strangers()
        if left:
            before = _trees(left)
            # Who is stopped forks no more: then all can be found.
            proc.send(before, signal.SIGSTOP, _trees(left))
            before = _trees(self._strangers())
            proc.send(before, signal.SIGKILL, before)
        elif not self._strangers():  # a list that is read while somebody ends may miss others
            lost, self._lost = self._lost, []
            for name in filter(None, lost):
                with contextlib.suppress(OSError):  # no folder any more, or no room: then it is not known
                    records.add(f"{self._spool}/{name}", "swept", {})
                seq, attempt = records.attempt_named(name) or (0, 0)
                message = {"k": "end", "s": seq, "a": attempt, "u": None}
                with contextlib.suppress(OSError):
                    self._reports.sendto(json.dumps(message).encode("ascii"), f"{self._spool}/reports.sock")

    def _strangers(self) -> list[int]:
        known = self._others.union(self._shepherds)
        return [pid for pid in proc.children(os.getpid()) if pid not in known]

    def _tend(self) -> None:
        """Keep the list of this home's cgroups (a starter elsewhere has others), with the lock: remove what
        is empty of those that are not its own, note those that are there. Errors change nothing."""
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
