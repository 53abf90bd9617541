"""Memory of this process: gives back what large work has freed (glibc only). By default glibc gives each
thread a heap of its own; and freed blocks of megabytes raise the size from which it asks the kernel for a
separate block, so that later blocks lie in heaps and stay."""

import ctypes
import gc
import time

LARGE = 512 << 10
"""Bytes from which a block comes from the kernel, and returns to it when freed: more than asyncio asks for
with each read (256 KiB), which would cost three system calls a message."""
BIG = 512 << 10
"""Bytes of a message or an answer after which freed memory is given back."""
PAUSE = 0.5
"""Real seconds from large work to that: the answer has been sent by then."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_libc = ctypes.CDLL(None)


def settle() -> None:
    """Have glibc use one heap for all threads and, from `LARGE` bytes on, blocks of their own. Call it before
    there are threads."""
    if hasattr(_libc, "mallopt"):
        for option, value in ((_MMAP_THRESHOLD, LARGE), (_TRIM_THRESHOLD, LARGE), (_ARENA_MAX, 1)):
            _libc.mallopt(ctypes.c_int(option), ctypes.c_int(value))


def calm() -> None:
    """Exclude the loaded objects from garbage collection: searching 100,000 requests stalls the engine."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 5, 400)


class Clearance:
    """Gives freed memory back soon after large work, in the engine's thread; this takes some ms."""

    def __init__(self) -> None:
        self._wanted = self._collect = False
        self._due: float | None = None

    def sent(self, size: int) -> None:
        """Note that so many bytes were sent: after a large answer, memory is given back soon."""
        self._wanted = self._wanted or size >= BIG

    def received(self, size: int) -> None:
        """Note that a message of so many bytes was received: from `BIG` bytes on, garbage is collected soon,
        and then memory is given back."""
        self.sent(size)  # they are freed like sent ones
        self._collect = self._collect or size >= BIG

    def timeout(self) -> float | None:
        """Return the real seconds until `check` has something to do; None: nothing."""
        return None if self._due is None else max(0.0, self._due - time.monotonic())

    def check(self) -> None:
        """Give freed memory back if that is due."""
        now = time.monotonic()
        if self._wanted:  # the pause begins when the turn is over
            self._wanted, self._due = False, now + PAUSE
        elif self._due is not None and now >= self._due:
            self._due = None
            if self._collect:
                self._collect = False
                gc.collect()
            if hasattr(_libc, "malloc_trim"):
                _libc.malloc_trim(ctypes.c_size_t(0))
