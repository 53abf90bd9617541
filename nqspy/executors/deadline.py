"""Wait of a shepherd for a process that works as the request's owner: the start of the job, or the delivery.
The owner may stop that process, or read slowly. So there is a deadline, and the daemon can end the wait."""

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
"""Real seconds from the fork of a job to its exec."""
DELIVERY = 60.0
"""Real seconds that a delivery may take, plus one for each `PACE` bytes."""
PACE = 1 << 20
_SOON = 0.1
"""Real seconds in which the wait is usually over; until then nothing is reported, and nothing can end it."""
_GRACE = 1.0
CONTROL = "control"
_LONGEST = 1 << 17
"""Bytes of the longest message: two paths and two names; a byte may be written as six."""


def listen() -> socket.socket:
    """Make and return the socket in the current folder to which the daemon sends messages."""
    control = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    if os.path.lexists(CONTROL):
        os.unlink(CONTROL)  # of the shepherd before, which was interrupted
    control.bind(CONTROL)
    return control


def messages(control: socket.socket | None) -> list[dict[str, Any]]:
    """Return the messages of the daemon since the last call."""
    found: list[dict[str, Any]] = []
    while control is not None:
        try:
            found.append(json.loads(control.recv(_LONGEST)))
        except BlockingIOError:
            break
    return found


class Wait:
    """A wait for what a child writes. If it takes over 0.1 s, ``hear`` is called, which returns the socket
    for the daemon's messages. ``others``: messages that did not end it; ``kill``: the one that did."""

    def __init__(self, seconds: float, hear: Callable[..., socket.socket], *, at_once: bool = False) -> None:
        """``seconds``: deadline from now on; ``at_once``: an order to kill ends the wait without grace."""
        self.begun = now()
        self.until = self.begun + seconds
        self.others: list[dict[str, Any]] = []
        self.kill: dict[str, Any] | None = None
        self._hear = hear
        self._at_once = at_once

    def read(self, reader: int) -> tuple[bytes, bool]:
        """Return all that the child writes, and True if it closed the pipe before the deadline."""
        data, poll = b"", select.poll()
        poll.register(reader, select.POLLIN)
        control: socket.socket | None = None
        pause = self.begun + _SOON
        while True:
            seconds = (self.until if control is not None else min(pause, self.until)) - now()
            ready = [fd for fd, _ in poll.poll(max(0.0, seconds) * 1000 + 1)] if seconds > 0 else []
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
        """Wait so many real seconds, and extend the deadline by them; report ``why`` first. Return False if
        an order to kill from the daemon ended the wait."""
        until = now() + seconds
        self.until += seconds
        control = self._hear(why)
        poll = select.poll()
        poll.register(control, select.POLLIN)
        while self.kill is None and (remaining := until - now()) > 0:
            if poll.poll(remaining * 1000 + 1):
                self._obey(control)
        return self.kill is None

    def unhandled(self) -> list[dict[str, Any]]:
        """Return the messages received in the wait, to be handled if the child succeeded after all."""
        return [*self.others, self.kill] if self.kill is not None else self.others

    def _obey(self, control: socket.socket) -> None:
        for message in messages(control):
            if message["do"] != "kill":
                self.others.append(message)
                continue
            # A child that has only just begun may finish: it takes a moment unless it hangs.
            self.kill = self.kill or message
            grace = now() if self._at_once else max(now() + message["grace"] / 1000, self.begun + _GRACE)
            self.until = min(self.until, grace)


def end(pid: int) -> None:
    """Kill a child and wait at most 1 s for its end: it may hang in the kernel."""
    proc.send([pid], signal.SIGKILL)
    proc.await_ends([pid], _GRACE)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
