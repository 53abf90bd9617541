"""``qsub -I``: a session at the caller's terminal, run as a request. Loaded only when used. The job sends the
master of a pseudo-terminal over a socket of the owner's; this command passes on keys, output, the window's
size and signals, and ends with the status of the session's shell."""

import _socket
import contextlib
import fcntl
import os
import select
import signal
import socket
import sys
import termios
import threading
import tty
from pathlib import Path
from types import FrameType

from nqspy.cli import fast, terminal_end
from nqspy.cli.application import began, end
from nqspy.cli.fast import DaemonConnection, Failure

_SIGNAL_TERMINAL = 0x40045436
"""Number of TIOCSIG: sends a signal to a terminal's foreground processes (ioctl_tty(2))."""
_OF_THE_KEYS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)
_OF_THE_REQUEST = (signal.SIGUSR1, signal.SIGUSR2)
_ENDS = (signal.SIGTERM, signal.SIGHUP)


def check(own: dict[str, str], user: object) -> None:
    """Raise Failure unless this process can hold a session with qsub's options ``own`` and ``-u user``."""
    for word in ("list", "dry_run", "wait", "json"):
        if word in own:
            raise Failure(f"-I: an interactive session cannot have --{word.replace('_', '-')}", 2)
    if user is not None:
        raise Failure("-I: an interactive session is for yourself; leave -u out", 2)
    if not (os.isatty(0) and os.isatty(1)):
        raise Failure("-I: an interactive session needs a terminal as standard input and output")


def make(item: dict[str, object], words: list[str], place: str) -> None:
    """Turn a script's item into a session's; ``words``: to run instead of the shell; ``place``: its
    socket."""
    text = Path(terminal_end.__file__).read_text(encoding="utf-8")
    item["script"] = f"{text}\n\nmain({place!r}, sys.argv[1:])\n"
    spec = item["spec"]
    assert isinstance(spec, dict)
    if "array" in spec:
        raise Failure("-I: an interactive session cannot be an array; leave -J, -t or --array out", 2)
    words = words or ([spec["shell"]] if "shell" in spec else [])
    spec |= {"shell": sys.executable, "args": words, "rerunnable": False, "session": [os.getpid(), began()]}
    spec["output"] = {"stdout": "/dev/null", "join": True}
    spec["attributes"] = [*spec.get("attributes", ()), "interactive:true"]
    if "TERM" in os.environ:
        item["environment"] = f"{item['environment']}\0TERM={os.environ['TERM']}"


class Session:
    """A session from its submission to its end; ``listener``: the socket to which its job connects."""

    def __init__(self, daemon: DaemonConnection, id: str, listener: "_socket.socket") -> None:
        self._daemon, self._id, self._listener = daemon, id, listener
        self._status: int | None = None
        self._failure: Failure | None = None
        self._over, self._ring = os.pipe()
        self._master = -1
        self._waiter = threading.Thread(target=self._wait, daemon=True)

    def hold(self) -> int:
        """Serve the session to its end; return the exit status. Raises Failure if the daemon is gone."""
        self._waiter.start()
        known = (*_OF_THE_KEYS, *_OF_THE_REQUEST, *_ENDS, signal.SIGWINCH)
        before = {number: signal.signal(number, self._signalled) for number in known}
        try:
            self._print(f"waiting for job {self._id} to start")
            if self._connected():
                termios.tcflush(0, termios.TCIFLUSH)  # keys typed while it waited were not meant for the job
                self._print(f"job {self._id} ready")
                keys = termios.tcgetattr(0)
                try:
                    tty.setraw(0, termios.TCSADRAIN)
                    self._link.sendall(b"g")
                    self._carry()
                finally:
                    termios.tcsetattr(0, termios.TCSADRAIN, keys)
                    os.close(self._master)
                self._print(f"job {self._id} completed")
            self._waiter.join()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if self._failure is not None:
            raise self._failure
        if self._master < 0:
            self._print(f"job {self._id} ended before it started")
        if self._status != 0:
            import json

            answer = json.loads(self._daemon.send({"cmd": "wait", "ids": [self._id]}, True, True, True))
            for row in answer["result"] if answer["ok"] else ():
                # A limit or a fault ended the job, not the session's shell.
                if row["end_reason"] not in ("exit", "signal", "deleted"):
                    why = row["reason"]["text"] if row["reason"] else row["end_reason"]
                    self._print(f"job {self._id} was ended: {why or row['end_reason']}")
        return self._status if self._status is not None else 1

    def _print(self, text: str) -> None:
        fast.complain("qsub", text)

    def _wait(self) -> None:
        """Wait in a thread for the end of the request, even while no daemon answers."""
        try:
            message: dict[str, object] = {"cmd": "wait", "text": "wait", "ids": [self._id]}
            self._status = self._daemon.call(message, keyed=True, repeat=True, patient=True).status
        except Failure as failure:
            self._failure = failure
        finally:
            os.write(self._ring, b"x")

    def _connected(self) -> bool:
        """Wait for the job and receive its terminal; return False if the request ended before."""
        door = self._listener.fileno()
        if door not in select.select([door, self._over], [], [])[0]:
            return False
        fd, _ = self._listener._accept()  # type: ignore[attr-defined]
        self._link = socket.socket(fileno=fd)
        _, fds, _, _ = socket.recv_fds(self._link, 1, 1)
        if not fds:
            return False
        self._master = fds[0]
        self._resize()
        return True

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGWINCH:
            self._resize()
        elif number in _ENDS or self._master < 0:
            end(self._daemon, self._id)
        elif number in _OF_THE_KEYS:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._master, _SIGNAL_TERMINAL, number)
        else:
            end(self._daemon, self._id, number)

    def _resize(self) -> None:
        if self._master >= 0:
            with contextlib.suppress(OSError):
                size = fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8))
                fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def _carry(self) -> None:
        """Pass keys and output on until the job has ended or the terminal is gone. Output is shown even while
        the job reads no keys: it may wait until its output is read."""
        os.set_blocking(self._master, False)
        keys = b""  # typed, and not taken by the job yet
        while True:
            wanted = {self._master: select.POLLIN | (select.POLLOUT if keys else 0)}
            wanted |= {self._link.fileno(): select.POLLIN} | ({} if keys else {0: select.POLLIN})
            found = _ready(wanted)
            output = found.get(self._master, 0) & ~select.POLLOUT
            if output and not _pass_on(self._master, 1):
                return self._await_its_end()
            if 0 in found and not (keys := _read(0)):
                return end(self._daemon, self._id)
            try:
                keys = keys[os.write(self._master, keys) if keys else 0 :]
            except BlockingIOError:
                pass
            except OSError:  # the other end is closed; its output reports that
                keys = b""
            if self._link.fileno() in found and not output:
                return None  # its first process has ended, and all that was written has been shown

    def _await_its_end(self) -> None:
        """Keep the job's terminal open, which no process has open any more, until the job's first process has
        ended: a process that closes its files before it exits, like `cat`, would get a hang-up."""
        wanted = {self._link.fileno(): select.POLLIN, 0: select.POLLIN}
        while self._link.fileno() not in (found := _ready(wanted)):
            if 0 in found and not _read(0):
                end(self._daemon, self._id)
                return


def _ready(wanted: dict[int, int]) -> dict[int, int]:
    poll = select.poll()
    for fd, events in wanted.items():
        poll.register(fd, events)
    return dict(poll.poll())


def _read(source: int) -> bytes:
    """Read a piece from a descriptor; return empty bytes at the end."""
    try:
        return os.read(source, 65536)
    except OSError:
        return b""


def _pass_on(source: int, target: int) -> bool:
    """Copy a piece from one descriptor to the other; return False if either is closed."""
    data = _read(source)
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(target, view) :]
    except OSError:
        return False
    return bool(data)
