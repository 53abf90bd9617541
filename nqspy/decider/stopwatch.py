"""How long a look ahead may take, and other work that somebody waits for."""

import time
from collections.abc import Callable

LOOK_AHEAD = 0.042
"""Seconds of CPU time after which a look ahead is broken off, between two of its passes: 0.05 in all with
what is left to do then."""


def part_of(seconds: float) -> Callable[[], float]:
    """Tells which part of so many seconds this thread has worked since now: its work is bounded, whatever
    else the machine does."""
    began = time.thread_time()
    return lambda: (time.thread_time() - began) / seconds


def part_of_patience(seconds: float, wall: float) -> Callable[[], float]:
    """The same where somebody waits: of so many seconds of work, or of ``wall`` seconds that have gone by,
    whichever part is greater."""
    worked, began = part_of(seconds), time.monotonic()
    return lambda: max(worked(), (time.monotonic() - began) / wall)
