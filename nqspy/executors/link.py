"""The daemon's side of the spawner: its lock, its process, orders to it and answers from it."""

import contextlib
import fcntl
import os
import resource
import signal
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from nqspy.executors import proc
from nqspy.executors.pool import IDLE_SECONDS
from nqspy.executors.spawner import STAYS

Key = tuple[int, int]
"""Request and attempt numbers."""

_INLINE = 1 << 16
_LOCK_TRIES = 200
_LOCK_PAUSE = 0.05
_LEAVE = 5.0
_staying: list[subprocess.Popen[bytes]] = []
"""Spawners that have left their socket and stay for their shepherds: children that this process must reap."""


class SpawnerLink:
    """The daemon's connection to its spawner, of which there is one at a time. `send` may be called from any
    thread, the rest from one only."""

    def __init__(self, home: str, spool: str, python: str, cgroup: str, idle: float = IDLE_SECONDS) -> None:
        """``python``: interpreter that runs the spawner; ``cgroup``: kind of cgroups to use, empty: the best
        that works; ``idle``: real seconds that a shepherd without an attempt waits for one."""
        self._spool = spool
        self._idle = idle
        self._python = python
        self._cgroup = cgroup
        found = os.stat(home)
        self._name = f"nqspy-{found.st_dev:x}-{found.st_ino}"
        self._lock: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._outbox: deque[tuple[bytes, int | None]] = deque()
        self._guard = threading.Lock()

    @property
    def up(self) -> bool:
        """True if a spawner process is connected to this daemon."""
        return self._socket is not None

    def fileno(self) -> int:
        """Return the descriptor of the connection; -1 without one."""
        return self._socket.fileno() if self._socket is not None else -1

    def pids(self) -> set[int]:
        """Return the pids of the spawner, and of former ones that stay for their shepherds."""
        spawners = (*_staying, *filter(None, (self._process,)))
        return {each.pid for each in spawners if each.returncode is None}

    def lock(self) -> None:
        """Get the spawner's lock: then no earlier spawner has it, and each order sent to an earlier one was
        claimed by its shepherd or never will be. Raises OSError if an earlier spawner keeps the lock."""
        _open_files()  # from here on there is a descriptor for each shepherd
        if self._lock is not None or self.up:
            return
        path = f"{self._spool}/starter.lock"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for _ in range(_LOCK_TRIES):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._lock = fd
                return
            threading.Event().wait(_LOCK_PAUSE)
        os.close(fd)
        raise OSError(f"the spawner of another nqsd still uses {path}; stop that nqsd first")

    def spawn(self) -> None:
        """Start a spawner that holds the lock; `lock` first if the lock is not held yet. Raises OSError."""
        self.lock()
        assert self._lock is not None
        _staying[:] = [each for each in _staying if each.poll() is None]
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        spawner = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spawner.py")
        descriptors = (theirs.fileno(), self._lock)
        # Without the mark of a job's processes, in case the daemon was started by a job.
        environment = {name: value for name, value in os.environ.items() if name != "QSUB_REQID"}
        # Else each shepherd resolves its symbols again (and copies a page of the spawner's for each).
        environment["LD_BIND_NOW"] = "1"
        try:
            with open(f"{self._spool}/starter.log", "ab") as log:
                self._process = subprocess.Popen(
                    [self._python, "-I", "-S", "-E", "-X", "utf8", spawner, *map(str, descriptors),
                     self._spool, self._name, self._cgroup, str(_open_files()), str(self._idle)],
                    pass_fds=descriptors, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    start_new_session=True, cwd="/", env=environment,
                )  # fmt: skip
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        os.close(self._lock)
        self._lock = None
        ours.setblocking(False)
        self._socket = ours

    def resume(self) -> bool:
        """Continue the spawner if it was stopped; return True if it was."""
        if self._process is not None and self.up:
            found = proc.stat(self._process.pid)
            if found is not None and found.still:
                self._process.send_signal(signal.SIGCONT)
                return True
        return False

    def down(self) -> None:
        """Disconnect from the spawner: wait for its end (KILL after 5 s) unless it stays for its shepherds,
        and drop unsent orders."""
        if self._socket is not None:
            stays = _disconnect(self._socket)
            self._socket.close()
            self._socket = None
            if stays and self._process is not None:
                _staying.append(self._process)
                self._process = None
        if self._process is not None:
            try:
                self._process.wait(_LEAVE)
            except subprocess.TimeoutExpired:
                self._process.kill()  # it was stopped
                self._process.wait()
            self._process = None
        with self._guard:
            while self._outbox:
                _, fd = self._outbox.popleft()
                if fd is not None:
                    os.close(fd)

    def send(self, key: Key, order: dict[str, Any]) -> bool:
        """Send an order to the spawner; return False if it waits here because the socket is full (call
        `flush` when that is writable)."""
        head = f"{key[0]}.{key[1]}\n".encode("ascii")
        data = msgspec.json.encode(order)
        fd = None
        if len(data) > _INLINE:
            fd = os.memfd_create("order", os.MFD_CLOEXEC)
            proc.write(fd, data)
            data = b""
        with self._guard:
            self._outbox.append((head + data, fd))
        return self.flush()

    def flush(self) -> bool:
        """Send the orders that wait for room in the socket; return False if some still wait."""
        with self._guard:
            while self._outbox and self._socket is not None:
                message, fd = self._outbox[0]
                try:
                    socket.send_fds(self._socket, [message], [] if fd is None else [fd])
                except BlockingIOError:
                    return False
                except OSError:
                    return True  # the spawner has ended: the reader notices
                self._outbox.popleft()
                if fd is not None:
                    os.close(fd)
        return True

    def answers(self) -> Iterator[tuple[Key, int | None] | None]:
        """Yield each answer of the spawner that has arrived: an attempt with the pidfd of its shepherd (None:
        that has ended already). Yield None instead if the spawner has ended."""
        while self._socket is not None:
            try:
                message, fds, _, _ = socket.recv_fds(self._socket, 256, 1, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return
            except OSError:
                message, fds = b"", []
            if not message:
                yield None
                return
            seq, attempt = message.split(b".")
            yield (int(seq), int(attempt)), (fds[0] if fds else None)

    def close(self) -> None:
        """Disconnect from the spawner; shepherds stay."""
        self.down()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _disconnect(connection: socket.socket) -> bool:
    """End the connection; return True if the spawner stays for its shepherds, without the lock."""
    try:
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(_LEAVE)
        while True:
            message, fds, _, _ = socket.recv_fds(connection, 256, 1, socket.MSG_CMSG_CLOEXEC)
            for fd in fds:
                os.close(fd)
            if not message or message == STAYS:
                return bool(message)
    except OSError:
        return False


@cache
def _open_files() -> int:
    """Raise the limit of open files as far as possible; return the former limit, for requests."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft
