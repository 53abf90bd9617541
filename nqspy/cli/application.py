"""An application as its `mpprun` sees it: submit it, wait, hand over streams and signals. The wait needs few
questions: the job's end (`application_end`) connects to a socket in a folder of the user's; the daemon sends
a signal if the job ended before; and this process sees if the daemon dies. Imports few modules."""

import _signal  # type: ignore[import-not-found]
import _socket
import os
import select
import sys

from nqspy.cli import fast
from nqspy.cli.draft import Surroundings, default_name, own_variables
from nqspy.cli.fast import DaemonConnection, Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

PAST = 124
"""Exit status of an application ended at its limit, like timeout(1)."""
NOT_RUN = 127
"""Exit status of an application that got its PEs, but whose program could not be run."""
CHECK, RETRY = 300, 3
"""Seconds between questions to the daemon during a wait; RETRY once that daemon's process has ended."""
_LIMITS = ("wall_limit", "cpu_limit", "contract")
_OF_LIMITS = (_signal.SIGTERM, _signal.SIGXCPU, _signal.SIGKILL)
"""Signal to an application past a limit; the program may end by it before its leader gets it."""
_ENDS = (_signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGHUP)
_PASSED_ON = (
    *_ENDS, _signal.SIGUSR1, _signal.SIGUSR2, _signal.SIGWINCH, _signal.SIGTSTP, _signal.SIGCONT,
)  # fmt: skip
_NEWS = _signal.SIGURG
"""Signal of the daemon after the application's end."""
_BEGAN = 19


class Door:
    """Socket in a new folder of the user, at ``place``, for the job; both are removed at the block's end."""

    def __init__(self) -> None:
        base = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - a name nobody can tell, made for the owner
        self._folder = os.path.join(base if len(base) < 60 else "/tmp", f"nqspy-m.{os.urandom(8).hex()}")  # noqa: S108
        self.place = f"{self._folder}/s"
        self.listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)

    def __enter__(self) -> "Door":
        os.mkdir(self._folder, 0o700)
        self.listener.bind(self.place)
        self.listener.listen(1)
        return self

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        self.listener.close()
        try:
            os.unlink(self.place)
            os.rmdir(self._folder)
        except OSError:
            pass  # already deleted


class Application:
    """Application from its submission to its end. ``words``: program and arguments; ``wanted``: fields of
    `model.requests.Spec` that the user asks for."""

    def __init__(
        self, daemon: DaemonConnection, door: Door, words: "list[str]", wanted: "dict[str, object]"
    ) -> None:
        self._daemon, self._door, self._words, self._wanted = daemon, door, words, wanted
        self._here = Surroundings()
        self._id = ""
        self._link: _socket.socket | None = None
        self._early = b""  # signals of the time before it began
        self._daemon_fd, self._patience = -1, CHECK  # the pidfd of the daemon that answered last
        self._rung, ring = os.pipe()
        os.set_blocking(ring, False)
        _signal.signal(_NEWS, _nothing)
        _signal.set_wakeup_fd(ring, warn_on_full_buffer=False)

    def hold(self) -> int:
        """Submit the application, serve it to its end, and return its exit status. Raises Failure."""
        here = self._here
        spec: dict[str, object] = {
            "owner": "", "uid": 0, "queue": "", "script": "", "environment": "", "workdir": here.workdir,
            "start_in": here.workdir, "host": here.host, "umask": here.umask, "shell": sys.executable,
            "name": default_name(self._words[0], False), "rerunnable": False,
            "caller": [os.getpid(), began()], "within": os.environ.get("QSUB_REQID", ""),
            "output": {"stdout": "/dev/null", "join": True}, **self._wanted,
        }  # fmt: skip
        with open(os.path.join(os.path.dirname(__file__), "application_end.py"), encoding="utf-8") as file:
            script = f"{file.read()}\n\nmain({self._door.place!r})\n"
        item = {"spec": spec, "script": script, "environment": here.environment(False, [], "", [])}
        key = f"mpprun-{os.getpid()}-{os.urandom(16).hex()}"
        message = {"cmd": "submit", "text": "id", "items": [item], "key": key, "dry_run": False}
        answer = self._daemon.call(message, keyed=True, repeat=True)
        if answer.status:
            raise Failure(answer.err.strip())
        self._id = answer.out.strip()
        self._watch()
        for number in _PASSED_ON:
            if _signal.getsignal(number) is not _signal.SIG_IGN:
                _signal.signal(number, _nothing)
        status = None
        while status is None:
            status = self._wait()
        return status

    def _wait(self) -> "int | None":
        """Handle the next event; return the exit status once it is known, else None."""
        poll = select.poll()
        there = self._door.listener if self._link is None else self._link
        for fd in (there.fileno(), self._rung, self._daemon_fd):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        found = [fd for fd, _ in poll.poll(self._patience * 1000 if self._link is None else None)]
        if self._rung in found:
            for number in os.read(self._rung, 64):
                status = self._signalled(number)
                if status is not None:
                    return status
        elif there.fileno() in found:
            if self._link is not None:
                return self._over()
            self._begin()
        elif self._daemon_fd in found:
            self._forget(RETRY)
        elif not found and self._link is None:
            return self._check()
        return None

    def _watch(self) -> None:
        """Watch the process of the daemon that has just answered."""
        self._forget(CHECK)
        try:
            self._daemon_fd = os.pidfd_open(self._daemon.pid)
        except ProcessLookupError:
            self._patience = RETRY
        except OSError:
            pass  # it has no number here (a container), or too many files are open

    def _forget(self, patience: int) -> None:
        if self._daemon_fd >= 0:
            os.close(self._daemon_fd)
        self._daemon_fd, self._patience = -1, patience

    def _signalled(self, number: int) -> "int | None":
        if number == _NEWS:
            return self._check() if self._link is None else None
        if self._link is None and number in _ENDS:
            end(self._daemon, self._id)  # without a daemon: the next one does it
            return 128 + number
        if self._link is not None:
            _send(self._link, bytes((number,)))
        elif number not in (_signal.SIGTSTP, _signal.SIGCONT, _signal.SIGWINCH):
            self._early += bytes((number,))
        if number == _signal.SIGTSTP:
            os.kill(os.getpid(), _signal.SIGSTOP)
        return None

    def _begin(self) -> None:
        """Send the job that has connected all that the program needs: streams, words, variables."""
        fd, _ = self._door.listener._accept()  # type: ignore[attr-defined]
        self._link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fd)
        words = [os.fsencode(word) for word in self._words]
        # The caller outlives the program, and so does the caller's TMPDIR.
        variables = [b"%b=%b" % pair for pair in own_variables(stays="TMPDIR").items()]
        body = b"\0".join([os.fsencode(os.getcwd()), b"%d" % len(words), *words, *variables])
        streams = b"".join([_open(number).to_bytes(4, sys.byteorder) for number in range(3)])
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)
        try:
            self._link.sendmsg([len(body).to_bytes(8, "big")], [rights])
        except OSError:
            return  # it has ended again; its link reports that
        _send(self._link, body)
        _send(self._link, self._early)

    def _over(self) -> int:
        """Handle the program's status from the job's end, or its end without one; return the exit status."""
        assert self._link is not None
        try:
            reply = self._link.recv(64).split()
        except OSError:
            reply = []
        code, doubtful = (os.waitstatus_to_exitcode(int(reply[0])), reply[1] == b"1") if reply else (1, True)
        status = code if code >= 0 else 128 - code
        if not doubtful and -code not in _OF_LIMITS:
            return status
        row = self._row("wait", {})
        if row is not None and row["end_reason"] in _LIMITS:
            self._print(f"application {self._id} was ended at its limit ({row['end_reason']})")
            return PAST
        if reply or row is None:
            return status
        self._print(f"application {self._id} ended: {row['end_reason']}")
        return 128 + row["exit_signal"] if row["exit_signal"] else row["exit_status"] or 1

    def _check(self) -> "int | None":
        """Ask the daemon; return the exit status if the application ended before it began, else None."""
        row = self._row("list_requests", {"ended": False}, keyed=False)
        if row is None:
            return None
        self._watch()
        if row["state"] != "ended" or select.select([self._door.listener], [], [], 0)[0]:
            return None
        why = (row["reason"] or {}).get("text") or row["end_reason"]
        self._print(f"application {self._id} ended before it began: {why}")
        return NOT_RUN if row["end_reason"] == "not_started" else 1

    def _row(self, cmd: str, more: "dict[str, object]", keyed: bool = True) -> "dict[str, Any] | None":
        """Return the daemon's record of the application; None if no daemon answers. ``keyed``: see
        `DaemonConnection.send`."""
        import json

        try:
            line = self._daemon.send({"cmd": cmd, "ids": [self._id], **more}, keyed, True, False)
        except Failure:
            return None
        answer = json.loads(line)
        return answer["result"][0] if answer["ok"] and answer["result"] else None

    def _print(self, text: str) -> None:
        fast.complain("mpprun", text)


def _nothing(number: int, frame: object) -> None:
    """Do nothing: the signal is read from the pipe that it has written to."""


def end(daemon: DaemonConnection, id: str, signal: "int | None" = None) -> None:
    """Delete a request, or send it the signal with this number; errors are not shown."""
    message: dict[str, object] = {"cmd": "delete", "text": "qdel", "ids": [id], "owner": None, "kill": False,
                                  "force": signal is None, "signal": signal}  # fmt: skip
    try:
        daemon.call(message)
    except Failure:
        pass


def began() -> int:
    """Return the start of this process, in ticks since boot (proc(5)): with its pid that identifies it."""
    with open("/proc/self/stat", encoding="latin-1") as file:
        return int(file.read().rpartition(")")[2].split()[_BEGAN])


def _open(number: int) -> int:
    """Return the number of a stream of this process; that of a new empty stream if it is closed."""
    try:
        os.fstat(number)
        return number
    except OSError:
        return os.open(os.devnull, os.O_RDWR)


def _send(link: _socket.socket, data: bytes) -> None:
    try:
        link.sendall(data)
    except OSError:
        pass  # it has ended; its link reports that
