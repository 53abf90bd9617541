"""A connection of the client library: sends a message, waits for its answer, repeats it where it may."""

import json
import select
import socket
import time
from typing import Any

from nqspy.model.errors import BadValue, Refusal, Unreachable
from nqspy.rpc.home import STOPPED, connect, nobody_there, socket_path, standing
from nqspy.rpc.submission import need
from nqspy.rpc.wire import VERSION

PATIENCE = 30.0
"""Seconds over which a message is repeated while the daemon is away."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class Connection:
    """A connection to the daemon of ``home``; opened when needed, opened again after a break. ``patient``:
    it asks for what is to come, also of a daemon that was stopped meanwhile and may come back."""

    def __init__(self, home: str, timeout: float | None, *, patient: bool = False) -> None:
        if timeout is not None:
            need("timeout", timeout, (int, float), "seconds, or None")
        self.home = home
        self._patient = patient
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._buffer = b""
        self._number = 0

    def call(self, message: dict[str, Any], *, repeat: bool) -> Any:
        """Return the ``result`` of one command, or the text where ``text`` asks for that form. ``repeat``:
        over a restart of the daemon; while it is busy (and has done nothing) in any case. For up to 30 s.

        Raises Refusal with the daemon's text, Unreachable when nothing answers.
        """
        waited, pause = 0.0, _FIRST_PAUSE
        while True:
            try:
                return self._once(message)
            except Refusal as refusal:
                if refusal.code != "busy" or waited >= PATIENCE:
                    raise
            except Unreachable as error:
                silent = isinstance(error.__cause__, TimeoutError)
                missed = isinstance(error.__cause__, (FileNotFoundError, ConnectionRefusedError))
                stopped = missed and not self._patient and standing(self.home) == STOPPED
                if not repeat or silent or waited >= PATIENCE or stopped:
                    raise
            time.sleep(pause)
            waited += pause
            pause = min(2 * pause, _LONGEST_PAUSE)

    def close(self) -> None:
        """Hangs up."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._buffer = None, b""

    def _once(self, message: dict[str, Any]) -> Any:
        self._number += 1
        try:
            line = json.dumps({"v": VERSION, "id": self._number, **message}).encode() + b"\n"
        except (TypeError, ValueError) as error:
            raise BadValue(f"the fields of {message['cmd']!r} must be JSON: {error}") from None
        try:
            answer = self._exchange(line)
        except (TimeoutError, OSError, EOFError, ValueError) as error:
            self.close()
            said = f"the nqsd in {self.home} gave no answer ({error or type(error).__name__})"
            if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
                said = nobody_there(self.home)
            elif isinstance(error, PermissionError):
                said = f"no access to {socket_path(self.home)}"
            raise Unreachable(said) from error
        if answer["ok"]:
            return answer.get("result", answer.get("out"))
        if answer["id"] is None:
            self.close()  # it was about the connection, which the daemon closes then
        if "error" in answer:
            raise Refusal.told(answer["error"])
        text, status = answer["err"].rstrip("\n"), answer["exit"]  # the text form
        said = text or f"it ended with status {status}"
        raise Refusal.told({"text": said, "code": "refused", "status": status})

    def _exchange(self, line: bytes) -> dict[str, Any]:
        if self._socket is not None and _is_closed(self._socket):
            self.close()
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(self._timeout)
            connect(self._socket, socket_path(self.home))
        try:
            self._socket.sendall(line)
        except (BrokenPipeError, ConnectionResetError):
            pass  # turned away before we had said all: the reason can still be read
        while True:
            answer: dict[str, Any] = json.loads(self._read_line(self._socket))
            if answer["id"] in (self._number, None):
                return answer

    def _read_line(self, connection: socket.socket) -> bytes:
        parts = [self._buffer]
        while b"\n" not in parts[-1]:
            piece = connection.recv(1 << 18)
            if not piece:
                raise EOFError("the connection was closed")
            parts.append(piece)
        line, _, self._buffer = b"".join(parts).partition(b"\n")
        return line


def _is_closed(connection: socket.socket) -> bool:
    """True if the daemon has hung up on a connection that asked nothing for long."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    try:
        return bool(poll.poll(0)) and not connection.recv(1, socket.MSG_PEEK)
    except OSError:
        return True
