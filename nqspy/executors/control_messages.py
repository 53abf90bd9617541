"""Messages to a shepherd besides kill, suspend and resume: lines for the output, changed settings."""

import contextlib
import os
import signal
from typing import Any

from nqspy.executors import deliver, forks, person, proc

_LINE_SECONDS = 2.0
"""Real seconds in which a line must be written to an output in place."""
_SOON = 0.1
"""Real seconds for the line being written when the job has ended."""
_MOST = 100
"""Most lines that wait to be written to an output in place; more are dropped."""


class ControlMessages:
    """Applies messages ``adjust`` (to the order) and ``write`` for one attempt. A child that becomes the
    owner writes a line to an output in place, as that may block."""

    def __init__(self, order: dict[str, Any], streams: tuple[int, int], home: str) -> None:
        """``streams``: descriptors of both outputs in the spool, -1 for one that is written in place."""
        self._order, self._streams, self._home = order, streams, home
        self._lines: list[tuple[str, str]] = []
        self._until = 0.0
        self._closed = False
        self.writer = 0
        """Pid of the child that writes a line now; 0: none."""

    def apply(self, message: dict[str, Any]) -> None:
        """Apply a message (change settings, write a line), but leave work that may block to `go_on`."""
        if message["do"] == "adjust":  # the meter and the delivery read the order
            self._order["limits"]["wall"] = message["wall"]
            for name, new in message["output"].items():
                stream = self._order["output"][name]
                if not stream["direct"]:
                    clash = {"clash": stream.get("clash", "")} if new["path"] == stream["path"] else {}
                    stream |= new | clash
        elif message["do"] == "write":
            names = ["stdout"] if self._order["output"]["join"] else dict.fromkeys(message["streams"])
            for name in names:
                fd = self._streams[name == "stderr"]
                if fd >= 0:
                    with contextlib.suppress(OSError):  # a full disk must not cost the job its shepherd
                        os.write(fd, message["text"].encode())
                elif not self._closed and len(self._lines) < _MOST:
                    self._lines.append((name, message["text"]))

    def go_on(self, at: float) -> None:
        """Kill a writer that takes too long; start the next line if none is being written."""
        if self.writer and at >= self._until:
            proc.send([self.writer], signal.SIGKILL)
            self._until = at + _LINE_SECONDS
        while self._lines and not self.writer:
            self._until = at + _LINE_SECONDS
            self._begin(*self._lines.pop(0))

    def due(self, at: float) -> float:
        """Return the real seconds until `go_on` must be called (infinite: no line waits); the end of a writer
        wakes the shepherd before."""
        return max(0.0, self._until - at) if self.writer else _LINE_SECONDS if self._lines else float("inf")

    def reaped(self, pid: int) -> bool:
        """True if the process just reaped was the writer, not one of the job; a next line may follow."""
        if pid != self.writer:
            return False
        self.writer = 0
        return True

    def drop(self) -> None:
        """Drop all lines and accept no more: the job is being killed, and nothing may delay that."""
        self._closed = True
        self._lines.clear()
        if self.writer:
            proc.send([self.writer], signal.SIGKILL)

    def close(self) -> dict[str, str]:
        """Stop the writer after the job's end; return the unwritten lines by stream, for the delivery."""
        if self.writer:
            with proc.Descriptor(os.pidfd_open(self.writer)) as fd:
                if not self._closed and not proc.readable(fd, _SOON):
                    proc.send([self.writer], signal.SIGKILL)
                if proc.readable(fd, _SOON):  # it may hang in the kernel
                    os.waitpid(self.writer, 0)
                    self.writer = 0
        names = dict(self._lines)
        return {name: "".join(text for to, text in self._lines if to == name) for name in names}

    def _begin(self, name: str, text: str) -> None:
        order, parent = self._order, os.getpid()

        def write() -> None:
            person.become(person.find(order))
            forks.die_with_parent(parent)
            os.umask(order["umask"])
            deliver.append_line(deliver.destination(order["output"][name], self._home), text)

        with contextlib.suppress(OSError):
            self.writer = forks.begin(write)
