"""Waits of a shepherd for a process that works as the request's owner: to begin the job, to deliver output.
The owner may stop it or read slowly: so there is a deadline, and the daemon can end the wait."""

import contextlib
import json
import os
import select
import signal
import socket
from collections.abc import Callable
from typing import Any

from nqspy.executors import proc
from nqspy.executors.proc import now

LAUNCH = 60.0
"""Real seconds from the fork to the exec of a job."""
DELIVERY = 60.0
"""Real seconds that a delivery may take, and one more for each `PACE` bytes that are to be written."""
PACE = 1 << 20
_SOON = 0.1
"""Real seconds in which all of this is usually over: until then nobody is told, and nobody can end it."""
_GONE = 1.0
CONTROL = "control"
_LONGEST = 1 << 17
"""Bytes of a message: two paths and two names, each byte of them written as six at most."""


def listen() -> socket.socket:
    """The socket in the current folder where the daemon speaks to the shepherd."""
    control = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    if os.path.lexists(CONTROL):
        os.unlink(CONTROL)  # of the shepherd before, that was cut off
    control.bind(CONTROL)
    return control


def messages(control: socket.socket | None) -> list[dict[str, Any]]:
    """Return what the daemon has said since it was last asked for."""
    found: list[dict[str, Any]] = []
    while control is not None:
        try:
            found.append(json.loads(control.recv(_LONGEST)))
        except BlockingIOError:
            break
    return found


class Wait:
    """A wait for what a child writes. ``hear`` is called when it takes longer than a moment, and gives the
    socket to listen at; ``told``: what was said that does not end the wait; ``kill``: what ended it."""

    def __init__(self, seconds: float, hear: Callable[..., socket.socket], *, at_once: bool = False) -> None:
        """``seconds``: the deadline, from now on; ``at_once``: an order to end it allows no grace time."""
        self.begun = now()
        self.until = self.begun + seconds
        self.told: list[dict[str, Any]] = []
        self.kill: dict[str, Any] | None = None
        self._hear = hear
        self._at_once = at_once

    def read(self, reader: int) -> tuple[bytes, bool]:
        """All that is written to the pipe until its other end is closed, or so far; and whether it was."""
        data, poll = b"", select.poll()
        poll.register(reader, select.POLLIN)
        control: socket.socket | None = None
        pause = self.begun + _SOON
        while True:
            left = (self.until if control is not None else min(pause, self.until)) - now()
            ready = [fd for fd, _ in poll.poll(max(0.0, left) * 1000 + 1)] if left > 0 else []
            if reader in ready:
                part = os.read(reader, 65536)
                data += part
                if not part:
                    return data, True
            elif now() >= self.until:
                return data, False
            elif control is None:
                control = self._hear()
                poll.register(control, select.POLLIN)
            else:
                self._obey(control)

    def pause(self, seconds: float, why: str) -> bool:
        """Wait beside the deadline, and tell the daemon ``why``; False when the daemon ends the wait."""
        until = now() + seconds
        self.until += seconds
        control = self._hear(why)
        poll = select.poll()
        poll.register(control, select.POLLIN)
        while self.kill is None and (left := until - now()) > 0:
            if poll.poll(left * 1000 + 1):
                self._obey(control)
        return self.kill is None

    def unanswered(self) -> list[dict[str, Any]]:
        """Return what the daemon said meanwhile, to be done where the child went on after all."""
        return [*self.told, self.kill] if self.kill is not None else self.told

    def _obey(self, control: socket.socket) -> None:
        for message in messages(control):
            if message["do"] != "kill":
                self.told.append(message)
                continue
            # What has only just begun is let finish: it is over in a moment unless somebody holds it up.
            self.kill = self.kill or message
            grace = now() if self._at_once else max(now() + message["grace"] / 1000, self.begun + _GONE)
            self.until = min(self.until, grace)


def end(pid: int) -> None:
    """Kills a child and waits for it; not for ever: one that hangs in the kernel is left to itself."""
    proc.send([pid], signal.SIGKILL)
    proc.await_ends([pid], _GONE)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
