"""Descriptors that wake a shepherd."""

from __future__ import annotations

import os
import signal


def wake_on_children() -> int:
    """A descriptor that becomes readable whenever a child has ended."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def silence(fd: int) -> None:
    """Reads what a bell has to say, so that it can ring again."""
    try:
        os.lseek(fd, 0, os.SEEK_SET)
    except OSError:
        pass  # an eventfd
    try:
        os.read(fd, 4096)
    except OSError:
        pass


def drain(fd: int) -> None:
    """Reads what has woken us."""
    try:
        while os.read(fd, 512):
            pass
    except BlockingIOError:
        pass
