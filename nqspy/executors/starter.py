"""A small process that forks one shepherd for each order it reads; it has everything imported beforehand.

Run as ``python -I -S -E -X utf8 starter.py ORDERS LOCK SPOOL NAME CAGE FILES``: descriptors of the order
socket and of the starter's lock, the spool's path, the name of this home's cgroup directory, the make of
cages to use (empty: the best), and how many files a job may open (the daemon has more). An order is one
message: ``SEQ.ATTEMPT`` and a line end, then the order as JSON, or nothing and a descriptor of a file that
holds it. The answer is ``SEQ.ATTEMPT`` with the shepherd's pidfd. It leaves when the daemon's end of the
socket is closed; shepherds stay.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    sys.path.insert(0, __file__.rsplit("/", 3)[0])

import gc
import json
import os
import resource
import signal
import socket
import time
import traceback
from typing import NoReturn

from nqspy.executors import cage, proc, shepherd
from nqspy.executors.teller import Station

_LARGEST = 1 << 17
_PATIENCE = 0.5
_LOOKS = 6
_PAUSE = 0.02


def main(arguments: list[str]) -> None:
    """Reads orders until the daemon is gone."""
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
    station = Station(spool, lock, reports, seat)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.disable()
    gc.freeze()
    while _take(orders, station):
        pass
    _leave(seat)


def _leave(seat: cage.Seat) -> None:
    """Takes the cages away, unless shepherds stay: a job may be about to enter one, which is empty until
    then. Those that have told their end are gone in a moment."""
    for _ in range(_LOOKS):
        if not proc.descendants(os.getpid()):
            seat.leave()
            return
        time.sleep(_PAUSE)


def _take(orders: socket.socket, station: Station) -> bool:
    """Handles one order; False when there will be no more."""
    try:
        message, fds, _, _ = socket.recv_fds(orders, _LARGEST, 1, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:  # the daemon was killed with answers of ours unread
        return False
    if not message:
        return False
    pid = _fork()
    if pid == 0:
        _shepherd(message, fds, orders, station)
    for fd in fds:
        os.close(fd)
    try:
        pidfd = [os.pidfd_open(pid)]
    except OSError:
        pidfd = []  # it has already left
    try:
        socket.send_fds(orders, [message.partition(b"\n")[0]], pidfd)
    except OSError:
        pass  # the daemon is gone; the next reading says so
    for fd in pidfd:
        os.close(fd)
    return True


def _fork() -> int:
    while True:
        try:
            return os.fork()
        except OSError:
            time.sleep(_PATIENCE)  # no more processes for now: the order waits


def _shepherd(message: bytes, fds: list[int], orders: socket.socket, station: Station) -> NoReturn:
    status = 1
    try:
        orders.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        data = message.partition(b"\n")[2]
        if fds:
            with open(fds[0], "rb") as file:
                file.seek(0)
                data = file.read()
        shepherd.serve(json.loads(data), station)
        status = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        # Not by the interpreter's way out: that takes 10 ms.
        os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1:])
