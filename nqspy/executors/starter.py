"""A small process that finds a shepherd for each order it reads: one that is spare (`spares`), else a new one
forked from itself. It has everything imported beforehand.

Run as ``python -I -S -E -X utf8 starter.py ORDERS LOCK SPOOL NAME CAGE FILES SPARE``: descriptors of the
order socket and of the starter's lock, the spool's path, the name of this home's cgroup directory, the make
of cages to use (empty: the best), how many files a job may open (the daemon has more), and how many seconds a
spare shepherd stays. An order is one message: ``SEQ.ATTEMPT`` and a line end, then the order as JSON, or
nothing and a descriptor of a file that holds it. The answer is ``SEQ.ATTEMPT`` with the shepherd's pidfd.
When the daemon's end of the socket is closed it lets the lock go and stays only for the shepherds that it has
(`keeper`); it says so by `STAYS`.
"""

from __future__ import annotations

import contextlib
import sys

if __name__ == "__main__":
    sys.path.insert(0, __file__.rsplit("/", 3)[0])

import gc
import os
import resource
import select
import signal
import socket
import time
import traceback
from typing import Any, NoReturn

from nqspy.executors import cage, forks, login_taker, outset, records
from nqspy.executors.attempt_reporter import Station
from nqspy.executors.keeper import Keeper
from nqspy.executors.spares import Spares, serve

_LARGEST = 1 << 17
_PATIENCE = 0.5
STAYS = b"stays"
"""Last word of a starter that stays for its shepherds."""


def main(arguments: list[str]) -> None:
    """Reads orders until the daemon is gone, and stays as long as there are shepherds."""
    orders_fd, lock, spool, name = int(arguments[0]), int(arguments[1]), arguments[2], arguments[3]
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(arguments[5]), most))
    for fd in (orders_fd, lock):
        os.set_inheritable(fd, False)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    orders = socket.socket(fileno=orders_fd)
    reports = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    reports.setblocking(False)
    seat = cage.Seat(name, arguments[4])
    spares = Spares(float(arguments[6]))
    station = Station(spool, lock, reports, seat, spares.offers)
    poll = select.poll()
    logins = login_taker.LoginDesk(spool, seat, station.most_processes, poll)
    station.logins = logins.asks
    keeper = Keeper(spool, reports, seat, logins.takers)
    wake = forks.wake_on_children()
    gc.collect()
    gc.disable()
    gc.freeze()
    _Desk(orders, station, keeper, spares, logins, poll).serve(wake)
    poll.unregister(orders)
    poll.unregister(spares)
    os.close(lock)
    spares.end()
    if keeper.keeps():
        with contextlib.suppress(OSError):  # the daemon was killed
            orders.send(STAYS)
        orders.close()
    while keeper.keeps():
        wait = keeper.wait()
        logins.serve([fd for fd, _ in poll.poll(None if wait is None else wait * 1000)])
        forks.silence(wake)
        keeper.look()
    keeper.leave()


class _Desk:
    """Desk where orders come in and shepherds are found for them."""

    def __init__(
        self,
        orders: socket.socket,
        station: Station,
        keeper: Keeper,
        spares: Spares,
        logins: login_taker.LoginDesk,
        poll: select.poll,
    ) -> None:
        self.orders, self.logins, self.poll = orders, logins, poll
        self.station = station
        self.keeper = keeper
        self.spares = spares

    def serve(self, wake: int) -> None:
        """Handles orders and ends until the daemon is gone."""
        poll = self.poll
        for fd in (self.orders.fileno(), self.spares.fileno(), wake):
            poll.register(fd, select.POLLIN)
        while True:
            waits = [wait * 1000 for wait in (self.keeper.wait(), self.spares.wait()) if wait is not None]
            ready = [fd for fd, _ in poll.poll(min(waits, default=None))]
            if self.spares.fileno() in ready:
                self.keeper.rest(self.spares.take_in())
            self.logins.serve(ready)
            if wake in ready or not ready:
                forks.silence(wake)
                self.keeper.look()
            if self.orders.fileno() in ready and not self._take():
                self.keeper.look()
                return
            self.spares.let_go()

    def _take(self) -> bool:
        """Handles one order; False when there will be no more."""
        try:
            message, fds, _, _ = socket.recv_fds(self.orders, _LARGEST, 1, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:  # the daemon was killed with answers of ours unread
            return False
        if not message:
            return False
        head, _, data = message.partition(b"\n")
        name = head.decode("ascii")
        order = _order(data, fds, self.station)
        plain = bool(order) and outset.in_own_cgroup(order, self.station)
        pid = self.spares.hand(message, [self.station.lock, *fds], plain) if order else 0
        if pid:
            self.keeper.turn(pid, name)
        else:
            pid = self._fork(order, plain, name)
        self._answer(head, pid)
        for fd in fds:
            os.close(fd)
        return True

    def _fork(self, order: dict[str, Any], plain: bool, name: str) -> int:
        """A new shepherd for it."""
        born = self.station.seat.birthplace(name) if plain else None
        pid = -1
        while pid < 0:
            try:
                pid = os.fork() if born is None else born.fork()
            except OSError:
                time.sleep(_PATIENCE)  # no more processes for now: the order waits
        if pid == 0:
            self.spares.close()
            self.logins.close()
            _shepherd(order, born, self.orders, self.station)
        self.keeper.add(pid, name)
        return pid

    def _answer(self, head: bytes, pid: int) -> None:
        try:
            pidfd = [os.pidfd_open(pid)]
        except OSError:
            pidfd = []  # no descriptor to be had
        with contextlib.suppress(OSError):  # the daemon is gone; the next reading says so
            socket.send_fds(self.orders, [head], pidfd)
        for fd in pidfd:
            os.close(fd)


def _order(data: bytes, fds: list[int], station: Station) -> dict[str, Any]:
    """An order. One that cannot be read is empty, and its shepherd's trouble."""
    try:
        return outset.read(data, fds, station)
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        return {}


def _shepherd(
    order: dict[str, Any], born: cage.Birthplace | None, orders: socket.socket, station: Station
) -> NoReturn:
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        orders.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        serve(order, station, born)
        status = 0
    except records.Gone:
        sys.stderr.write(f"the folder of attempt {order['seq']}.{order['attempt']} was taken away\n")
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        # Not by the interpreter's way out: that takes 10 ms.
        os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1:])
