"""One try of a probe: a command, a connection, a URL, a file. It ends at its timeout, whatever it tries."""

import contextlib
import http.client
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from nqspy.executors import urgency
from nqspy.model.health import Probe, address_of, kind_of
from nqspy.model.units import format_seconds

SHOWN = 200
"""Characters of output that become the text."""

KEPT = 8_192
"""Bytes of a command's output that are kept: the last."""

REAPED = 1.0
"""Seconds a killed process has to vanish; one that hangs in the kernel is left behind."""

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Result:
    """What a try found: whether the resource is well, and a line about it."""

    good: bool
    text: str = ""


@dataclass(slots=True)
class Hand:
    """What tries one probe: the process it started last, as long as that is there. Other threads may end that
    by `cut` and `stop`."""

    process: "subprocess.Popen[bytes] | None" = None
    stopped: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def cut(self) -> None:
        """Kills what runs."""
        with self.lock:
            if self.process is not None:
                _kill(self.process)

    def stop(self) -> None:
        """The same, and nothing is started any more."""
        self.stopped = True
        self.cut()


def attempt(probe: Probe, hand: Hand) -> Result:
    """Tries once. Never raises for what is wrong with the resource: that is what it finds."""
    kind, value = kind_of(probe)
    end = time.monotonic() + probe.timeout / 1000
    late = f"no answer within {format_seconds(probe.timeout)}"
    try:
        if kind == "tcp":
            return _connect(value, end)
        if kind == "http":
            return _fetch(value, end)
        if kind == "file":
            return _run(
                [shutil.which("head") or "head", "-c", "1", "--", value], probe, hand, end, late, False
            )
        return _run(["/bin/sh", "-c", value], probe, hand, end, late, True)
    except TimeoutError:
        return Result(False, late)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return Result(
            False, late if time.monotonic() >= end else printable(str(error)) or repr(error)[:SHOWN]
        )


def printable(text: str) -> str:
    """The last line that says something, without what would upset a terminal, at most SHOWN characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(c if c.isprintable() else "?" for c in lines[-1])[:SHOWN] if lines else ""


# ---------------------------------------------------------------- connections


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _open(host: str, port: int, end: float) -> socket.socket:
    """A connection to the first address that takes one. Raises OSError."""
    problem: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(_left(end))
            sock.connect(address)
            return sock
        except OSError as error:
            sock.close()
            problem = error
    raise problem


def _connect(value: str, end: float) -> Result:
    host, port = address_of(value) or ("", 0)
    _open(host, port, end).close()
    return Result(True, "it takes a connection")


@contextlib.contextmanager
def _cut_at(connection: http.client.HTTPConnection, end: float) -> Iterator[None]:
    """Ends a connection at an instant, also where the other side sends a byte now and then."""

    def cut() -> None:
        with contextlib.suppress(OSError, AttributeError):
            connection.sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(_left(end), cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _fetch(url: str, end: float) -> Result:
    """The status that a URL answers with; redirections are not followed, proxies not used."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    host = parts.hostname or ""
    port = parts.port or (443 if secure else 80)
    made = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = made(host, port, timeout=_left(end))
    # So that the timeout holds for all addresses of the host together.
    connection._create_connection = lambda *_: _open(host, port, end)  # type: ignore[attr-defined]
    with contextlib.closing(connection), _cut_at(connection, end):
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("GET", target, headers={"User-Agent": "nqspy-probe", "Connection": "close"})
        answer = connection.getresponse()
        _left(end)  # cut off in the middle of its head it would look whole
        return Result(answer.status < 400, printable(f"status {answer.status} {answer.reason}"))


# ---------------------------------------------------------------- processes


def environment(name: str) -> Mapping[str, str]:
    """The clean environment of a probe's command."""
    try:
        user = pwd.getpwuid(os.geteuid())
        who, home = user.pw_name, user.pw_dir
    except KeyError:
        who, home = str(os.geteuid()), "/"
    return {
        "PATH": _PATH, "HOME": home, "LOGNAME": who, "USER": who, "SHELL": "/bin/sh", "LANG": "C.UTF-8",
        "NQSPY_PROBE": name,
    }  # fmt: skip


def _run(command: Sequence[str], probe: Probe, hand: Hand, end: float, late: str, telling: bool) -> Result:
    """Runs a process in a group of its own to its end or the timeout, then kills what is left of the group.
    ``telling``: its output is for people."""
    if hand.process is not None and hand.process.poll() is None:
        return Result(False, "the last try still hangs and cannot be killed")
    process = _start(command, probe, hand)
    if process is None:
        return Result(False, "the daemon stops")
    try:
        output, ended = _follow(process, end)
    finally:
        _finish(process, hand)
    if not ended:
        return Result(False, late)
    said = printable(output.decode(errors="replace"))
    status = process.returncode
    if status == 0:
        return Result(True, said if telling else "it can be read")
    how = f"killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return Result(False, said or how)


def _start(command: Sequence[str], probe: Probe, hand: Hand) -> "subprocess.Popen[bytes] | None":
    with hand.lock:
        if hand.stopped:
            return None
        urgency.ordinary_children()
        hand.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/",
            env=environment(probe.name), start_new_session=True,
        )  # fmt: skip
        return hand.process


def _follow(process: "subprocess.Popen[bytes]", end: float) -> tuple[bytes, bool]:
    """The last of its output, and whether it ended in time; children that keep the pipe open are not waited
    for."""
    assert process.stdout is not None
    pipe, output = process.stdout.fileno(), b""
    os.set_blocking(pipe, False)
    exited = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        poll.register(exited, select.POLLIN)
        while (left := end - time.monotonic()) > 0:
            ready = {fd for fd, _ in poll.poll(left * 1000)}
            if pipe in ready:
                piece = _read(pipe)
                if not piece:
                    poll.unregister(pipe)
                output = (output + piece)[-KEPT:]
            elif exited in ready:
                return output, True
        return output, False
    finally:
        os.close(exited)


def _read(pipe: int) -> bytes:
    try:
        return os.read(pipe, 65_536)
    except BlockingIOError:
        return b""


def _finish(process: "subprocess.Popen[bytes]", hand: Hand) -> None:
    # The group's number is its own as long as nobody has waited for its first process.
    with hand.lock:
        _kill(process)
    assert process.stdout is not None
    process.stdout.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(REAPED)
        with hand.lock:
            hand.process = None


def _kill(process: "subprocess.Popen[bytes]") -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
