"""The process's own memory: what big work leaves behind goes back to the system (glibc; nothing elsewhere).
Left alone, glibc gives each thread a heap of its own, and lets freed blocks of megabytes raise the size from
which it asks the kernel for a block alone, so that the next ones lie in heaps and stay."""

import ctypes
import gc
import time

LARGE = 512 << 10
"""Bytes from which a block is the kernel's, and is given back when it is freed: more than what asyncio asks
for with each read (256 KiB), which would cost three calls of the kernel a message."""
BIG = 512 << 10
"""Bytes of a message or an answer after which memory is given back."""
PAUSE = 0.5
"""Real seconds from big work to that: the answer has left by then."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_libc = ctypes.CDLL(None)


def settle() -> None:
    """To be called before there are threads: one heap for all, large blocks apart."""
    if hasattr(_libc, "mallopt"):
        for option, value in ((_MMAP_THRESHOLD, LARGE), (_TRIM_THRESHOLD, LARGE), (_ARENA_MAX, 1)):
            _libc.mallopt(ctypes.c_int(option), ctypes.c_int(value))


def calm() -> None:
    """Keep what was loaded: looking for circles in 100,000 requests would stall the engine."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 5, 400)


class Clearance:
    """Has freed memory given back soon after big work, in the engine's thread: some ms."""

    def __init__(self) -> None:
        self._wanted = self._cluttered = False
        self._due: float | None = None

    def sent(self, size: int) -> None:
        """So many bytes were sent out."""
        self._wanted = self._wanted or size >= BIG

    def taken(self, size: int) -> None:
        """So many bytes were taken in: what was made of them on the way is looked for as well."""
        self.sent(size)  # they go as what is sent out does
        self._cluttered = self._cluttered or size >= BIG

    def patience(self) -> float | None:
        """Real seconds until `look` has something to do."""
        return None if self._due is None else max(0.0, self._due - time.monotonic())

    def look(self) -> None:
        """Does it when it is time."""
        now = time.monotonic()
        if self._wanted:  # its pause begins when the turn is over
            self._wanted, self._due = False, now + PAUSE
        elif self._due is not None and now >= self._due:
            self._due = None
            if self._cluttered:
                self._cluttered = False
                gc.collect()
            if hasattr(_libc, "malloc_trim"):
                _libc.malloc_trim(ctypes.c_size_t(0))
