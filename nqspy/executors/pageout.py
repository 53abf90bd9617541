"""Gives the memory of stopped processes back to the system: MADV_PAGEOUT on each mapping, in slices.

The call succeeds where there is no swap and nothing moves: what really left is measured, before and after.
It needs CAP_SYS_NICE; where that is refused the cgroup may be asked instead (``memory.reclaim``, cgroup2 with
the memory controller delegated), which is not for every user either. Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from collections.abc import Iterator

from nqspy.executors import cage, proc, records

_PROCESS_MADVISE = 440
_MADV_PAGEOUT = 21
_SLICE = 64 << 20
"""Bytes in one call: some 30 ms, so that a shepherd never is deaf for long."""

_libc = ctypes.CDLL(None, use_errno=True)


class _Range(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("length", ctypes.c_size_t))


class PageOut:
    """The memory of some processes on its way out: `step` until it returns False.

    ``before`` and ``after``: bytes in memory at the beginning and the end; ``refused``: the kernel does not
    allow it to us.
    """

    def __init__(self, pids: list[int], folder: str = "") -> None:
        """``folder``: of the job's cgroup, "" when it has none."""
        self._pids = pids
        self._folder = folder
        self.before = resident(pids)
        self.after = self.before
        self.refused = False
        self._work = self._slices()

    def step(self) -> bool:
        """Does a slice; False when all is done."""
        try:
            next(self._work)
        except StopIteration:
            self.after = resident(self._pids)
            return False
        return True

    def _slices(self) -> Iterator[None]:
        for pid in self._pids:
            try:
                fd = os.pidfd_open(pid)
            except OSError:
                continue
            try:
                for start, end in _mappings(pid):
                    _advise(fd, start, end)
                    yield
            except PermissionError:
                self.refused = not self._reclaim()
                return
            except ProcessLookupError:
                pass
            finally:
                os.close(fd)

    def _reclaim(self) -> bool:
        """Asks the job's cgroup; whether that could be asked."""
        try:
            fd = os.open(f"{self._folder}/memory.reclaim", os.O_WRONLY)
        except OSError:
            return False
        # An error: less than that could be taken. What left is measured.
        with contextlib.suppress(OSError), proc.Descriptor(fd):
            os.write(fd, str(self.before).encode("ascii"))
        return True


def resident(pids: list[int]) -> int:
    """Return the bytes that these processes hold in memory, without pages of files."""
    return proc.together({pid: reading for pid in pids if (reading := proc.stat(pid)) is not None})


def may() -> bool:
    """True if this process has CAP_SYS_NICE, which paging others out needs."""
    with open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"CapEff:"):
                return bool(int(line.split()[1], 16) >> 23 & 1)
    return False


def _mappings(pid: int) -> Iterator[tuple[int, int]]:
    """Readable mappings in slices. Raises ProcessLookupError when there is no such process."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            lines = file.readlines()
    except OSError:
        raise ProcessLookupError(errno.ESRCH, "it has ended") from None
    for line in lines:
        where, rights = line.split(None, 2)[:2]
        if rights[:1] == b"r" and not line.rstrip().endswith((b"[vvar]", b"[vdso]", b"[vsyscall]")):
            start, end = (int(part, 16) for part in where.split(b"-"))
            for at in range(start, end, _SLICE):
                yield at, min(end, at + _SLICE)


def _advise(pidfd: int, start: int, end: int) -> None:
    """Raises PermissionError, ProcessLookupError; a mapping that cannot be paged out stays."""
    part = _Range(start, end - start)
    done = _libc.syscall(
        _PROCESS_MADVISE, pidfd, ctypes.byref(part), ctypes.c_size_t(1), _MADV_PAGEOUT, ctypes.c_uint(0)
    )
    if done < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        raise PermissionError(errno.EPERM, "paging out is refused")
    if done < 0 and ctypes.get_errno() == errno.ESRCH:
        raise ProcessLookupError(errno.ESRCH, "it has ended")


_REMEMBERED = 10_000


class Residents:
    """Measures the memory that attempts hold, seen from the daemon: that of the processes below each shepherd
    and in its cage. Remembers their shepherds by folder."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, str]] = {}

    def of(self, folder: str) -> int | None:
        """Return the bytes that the processes of an attempt hold, None when it has not begun or has ended."""
        found = self._known.get(folder) or self._look(folder)
        if found is None:
            return None
        shepherd, group = found
        pids = {*proc.descendants(shepherd), *(cage.members(group) if group else ())} - {shepherd}
        if not pids:
            self._known.pop(folder, None)
            return None
        return resident(sorted(pids))

    def _look(self, folder: str) -> tuple[int, str] | None:
        record, holder = records.read(folder, "pid"), records.holder(folder)
        if record is None or holder is None:
            return None
        try:
            found = proc.Identity.parse(holder).pid, str(record["cage"][1])
        except (ValueError, KeyError, IndexError):
            return None
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[folder] = found
        return found
