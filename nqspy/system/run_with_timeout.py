"""Commands and connections that end at an instant, whatever they do. A command runs in a group of its own,
little is kept of what it says, and all it has begun is killed when its time is over."""

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from nqspy.system import urgency

KEPT = 8_192
"""Bytes of a command's output that are kept: the last."""

REAPED = 1.0
"""Seconds a killed process has to vanish; one that hangs in the kernel is left behind."""

_REST = 1 << 20
"""Bytes still read of a command that has ended: as much as a pipe may hold."""

_SETPRIV = shutil.which("setpriv")
_TIED: Sequence[str] = (_SETPRIV, "--pdeathsig", "KILL", "--") if _SETPRIV else ()
"""Runs a command so that it ends with a daemon that is killed and can end nothing itself (util-linux)."""


class NotRun(Exception):
    """A command was not started: one line."""


@dataclass(slots=True)
class Hand:
    """Runner of one command at a time: ``process`` is its last, while it is there. Any thread may end it."""

    process: "subprocess.Popen[bytes] | None" = None
    stopped: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def cut(self) -> None:
        """Kills what runs."""
        with self.lock:
            if self.process is not None:
                _kill(self.process)

    def stop(self) -> None:
        """Kill what runs, and start nothing any more."""
        self.stopped = True
        self.cut()


class TimedCommand(Struct, frozen=True):
    """Command to run. ``data``: what it reads, else nothing. ``errors_only``: of its output only what it
    writes to stderr counts. ``leave_rest``: what it leaves running when it ends in time goes on."""

    words: Sequence[str]
    data: bytes = b""
    errors_only: bool = False
    leave_rest: bool = False
    environment: Mapping[str, str] | None = None
    folder: str | None = None


def run(command: TimedCommand, hand: Hand, end: float) -> tuple[int, bytes]:
    """Run a command: exit status, the last of its output. Raises TimeoutError, NotRun, OSError."""
    process = _start(command, hand)
    exited, ended = -1, False
    try:
        exited = os.pidfd_open(process.pid)
        output = _follow(process, command.data, exited, end)
        ended = True
    finally:
        _finish(process, hand, exited, kill=not (ended and command.leave_rest))
        if exited >= 0:
            os.close(exited)
    return process.returncode, output


def _start(command: TimedCommand, hand: Hand) -> "subprocess.Popen[bytes]":
    with hand.lock:
        if hand.stopped:
            raise NotRun("the daemon stops")
        if hand.process is not None and hand.process.poll() is None:
            raise NotRun("the last try still hangs and cannot be killed")
        urgency.ordinary_children()
        hand.process = subprocess.Popen(
            [*_TIED, *command.words],
            stdin=subprocess.PIPE if command.data else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if command.errors_only else subprocess.PIPE,
            stderr=subprocess.PIPE if command.errors_only else subprocess.STDOUT,
            cwd=command.folder, env=command.environment, start_new_session=True,
        )  # fmt: skip
        return hand.process


def _follow(process: "subprocess.Popen[bytes]", data: bytes, exited: int, end: float) -> bytes:
    """The last of its output; children that keep the pipe open are not waited for."""
    out = process.stdout or process.stderr
    assert out is not None
    pipe, left, rest, output = out.fileno(), memoryview(data), _REST, b""
    os.set_blocking(pipe, False)
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    poll.register(exited, select.POLLIN)
    if process.stdin is not None:
        os.set_blocking(process.stdin.fileno(), False)
        poll.register(process.stdin.fileno(), select.POLLOUT)
    while rest > 0:
        ready = {fd for fd, _ in poll.poll(left_until(end) * 1000)}
        if process.stdin is not None and not process.stdin.closed and process.stdin.fileno() in ready:
            try:
                with contextlib.suppress(BlockingIOError):
                    left = left[os.write(process.stdin.fileno(), left[:65_536]) :]
            except BrokenPipeError:
                left = left[:0]  # it has no reader
            if not left:
                poll.unregister(process.stdin.fileno())
                process.stdin.close()
        if pipe in ready:
            piece = b""
            with contextlib.suppress(BlockingIOError):
                piece = os.read(pipe, 65_536)
            if not piece:
                poll.unregister(pipe)
            output = (output + piece)[-KEPT:]
            rest -= len(piece) if exited in ready else 0
        elif exited in ready:
            break
    return output


def _finish(process: "subprocess.Popen[bytes]", hand: Hand, exited: int, kill: bool) -> None:
    # The group's number is its own as long as nobody has waited for its first process: that is done with the
    # lock held, as is killing.
    if kill:
        with hand.lock:
            _kill(process)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    if exited >= 0:
        poll = select.poll()
        poll.register(exited, select.POLLIN)
        if not poll.poll(REAPED * 1000):
            return
    with hand.lock, contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(REAPED)
        hand.process = None


def _kill(process: "subprocess.Popen[bytes]") -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def left_until(end: float) -> float:
    """Seconds until an instant of the monotonic clock. Raises TimeoutError when it is over."""
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def connection(host: str, port: int, end: float) -> socket.socket:
    """A connection to the first address that takes one. Raises OSError."""
    problem: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(left_until(end))
            sock.connect(address)
            return sock
        except OSError as error:
            sock.close()
            problem = error
    raise problem


@contextlib.contextmanager
def cut_at(end: float, sock: Callable[[], socket.socket | None]) -> Iterator[None]:
    """End a connection at an instant, even if bytes still come; ``sock`` gives its socket as it is then."""

    def cut() -> None:
        with contextlib.suppress(OSError):
            if (found := sock()) is not None:
                found.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(left_until(end), cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
