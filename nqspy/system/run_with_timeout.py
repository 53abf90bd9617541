"""Commands and connections with a deadline. A command runs in a process group of its own, which is killed at
the deadline; only the end of its output is stored."""

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

OUTPUT = 8_192
"""Bytes of a command's output that are stored: the last ones."""

END = 1.0
"""Seconds to wait for the end of a killed process; it may hang in the kernel."""

_AFTER_END = 1 << 20
"""Bytes to read after a command has ended: as much as a pipe may hold."""

_SETPRIV = shutil.which("setpriv")
_TIED: Sequence[str] = (_SETPRIV, "--pdeathsig", "KILL", "--") if _SETPRIV else ()
"""Words before a command that make it end with its daemon, even if that is killed (util-linux)."""


class NotRun(Exception):
    """A command was not started; the text is the reason in one line."""


@dataclass(slots=True)
class CommandRunner:
    """Runs one command at a time; ``process``: the last one while it exists. Any thread may kill it."""

    process: "subprocess.Popen[bytes] | None" = None
    stopped: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def cut(self) -> None:
        """Kill the running command with its process group."""
        with self.lock:
            if self.process is not None:
                _kill(self.process)

    def stop(self) -> None:
        """Kill the running command, and start no other."""
        self.stopped = True
        self.cut()


class TimedCommand(Struct, frozen=True):
    """Command to run. ``data``: its input; ``errors_only``: only stderr counts as output; ``leave_rest``:
    processes that it started may go on if it ends in time; ``environment``, ``folder``: None is this
    process's."""

    words: Sequence[str]
    data: bytes = b""
    errors_only: bool = False
    leave_rest: bool = False
    environment: Mapping[str, str] | None = None
    folder: str | None = None


def run(command: TimedCommand, runner: CommandRunner, end: float) -> tuple[int, bytes]:
    """Run a command, kill it at ``end`` (monotonic seconds); return exit status (negative: the signal) and
    the last bytes of its output. Raises TimeoutError, NotRun, OSError."""
    process = _start(command, runner)
    exited, ended = -1, False
    try:
        exited = os.pidfd_open(process.pid)
        output = _follow(process, command.data, exited, end)
        ended = True
    finally:
        _finish(process, runner, exited, kill=not (ended and command.leave_rest))
        if exited >= 0:
            os.close(exited)
    return process.returncode, output


def _start(command: TimedCommand, runner: CommandRunner) -> "subprocess.Popen[bytes]":
    with runner.lock:
        if runner.stopped:
            raise NotRun("the daemon stops")
        if runner.process is not None and runner.process.poll() is None:
            raise NotRun("the last try still hangs and cannot be killed")
        urgency.ordinary_children()
        runner.process = subprocess.Popen(
            [*_TIED, *command.words],
            stdin=subprocess.PIPE if command.data else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if command.errors_only else subprocess.PIPE,
            stderr=subprocess.PIPE if command.errors_only else subprocess.STDOUT,
            cwd=command.folder, env=command.environment, start_new_session=True,
        )  # fmt: skip
        return runner.process


def _follow(process: "subprocess.Popen[bytes]", data: bytes, exited: int, end: float) -> bytes:
    """Write the input and return the end of the output; do not wait for children that hold the pipe open."""
    out = process.stdout or process.stderr
    assert out is not None
    pipe, unsent, rest, output = out.fileno(), memoryview(data), _AFTER_END, b""
    os.set_blocking(pipe, False)
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    poll.register(exited, select.POLLIN)
    if process.stdin is not None:
        os.set_blocking(process.stdin.fileno(), False)
        poll.register(process.stdin.fileno(), select.POLLOUT)
    while rest > 0:
        ready = {fd for fd, _ in poll.poll(seconds_until(end) * 1000)}
        if process.stdin is not None and not process.stdin.closed and process.stdin.fileno() in ready:
            try:
                with contextlib.suppress(BlockingIOError):
                    unsent = unsent[os.write(process.stdin.fileno(), unsent[:65_536]) :]
            except BrokenPipeError:
                unsent = unsent[:0]  # it has no reader
            if not unsent:
                poll.unregister(process.stdin.fileno())
                process.stdin.close()
        if pipe in ready:
            piece = b""
            with contextlib.suppress(BlockingIOError):
                piece = os.read(pipe, 65_536)
            if not piece:
                poll.unregister(pipe)
            output = (output + piece)[-OUTPUT:]
            rest -= len(piece) if exited in ready else 0
        elif exited in ready:
            break
    return output


def _finish(process: "subprocess.Popen[bytes]", runner: CommandRunner, exited: int, kill: bool) -> None:
    # The group's number is not reused before its first process is reaped: the lock is held for both.
    if kill:
        with runner.lock:
            _kill(process)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    if exited >= 0:
        poll = select.poll()
        poll.register(exited, select.POLLIN)
        if not poll.poll(END * 1000):
            return
    with runner.lock, contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END)
        runner.process = None


def _kill(process: "subprocess.Popen[bytes]") -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def seconds_until(end: float) -> float:
    """Return the seconds until ``end`` of the monotonic clock. Raises TimeoutError if that is past."""
    seconds = end - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def connection(host: str, port: int, end: float) -> socket.socket:
    """Return a connection to the first address that accepts one before ``end``. Raises OSError."""
    problem: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(seconds_until(end))
            sock.connect(address)
            return sock
        except OSError as error:
            sock.close()
            problem = error
    raise problem


@contextlib.contextmanager
def cut_at(end: float, sock: Callable[[], socket.socket | None]) -> Iterator[None]:
    """Shut down a connection at ``end`` (monotonic seconds) if the block still runs, even while bytes come;
    ``sock`` returns its socket, None without one."""

    def cut() -> None:
        with contextlib.suppress(OSError):
            if (found := sock()) is not None:
                found.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds_until(end), cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
