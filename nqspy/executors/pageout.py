"""Pages out the memory of stopped processes: MADV_PAGEOUT on each mapping, in slices. It needs CAP_SYS_NICE,
else the cgroup is asked (``memory.reclaim``). Without swap nothing is freed. Standard library only."""

import ctypes
import errno
import os
from collections.abc import Iterator

from nqspy.executors import cgroups, proc, records
from nqspy.executors.control import write

_PROCESS_MADVISE = 440
_MADV_PAGEOUT = 21
_SLICE = 64 << 20
"""Bytes in one call: it takes about 30 ms, so that a shepherd reacts soon."""

_libc = ctypes.CDLL(None, use_errno=True)


class _Range(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("length", ctypes.c_size_t))


class PageOut:
    """Pages out the memory of stopped processes: call `step` until it returns False. ``refused``: True if the
    kernel does not permit it; ``before``, ``after``: bytes that the processes have in memory."""

    def __init__(self, pids: list[int], folder: str = "") -> None:
        """``folder``: of the job's cgroup, "" without one."""
        self._pids = pids
        self._folder = folder
        self.before = resident(pids)
        self.after = self.before
        self.refused = False
        self._work = self._slices()

    def step(self) -> bool:
        """Page out one slice; return False when all is done."""
        for _ in self._work:
            return True
        self.after = resident(self._pids)
        return False

    def _slices(self) -> Iterator[None]:
        for pid in self._pids:
            try:
                with proc.Descriptor(os.pidfd_open(pid)) as fd:
                    for start, end in _mappings(pid):
                        _advise(fd, start, end)
                        yield
            except PermissionError:  # the job's cgroup is asked; freed memory is measured anyway
                path = f"{self._folder}/memory.reclaim"
                self.refused = not os.access(path, os.W_OK)
                write(path, str(self.before))
                return
            except OSError:
                continue  # it has ended


def resident(pids: list[int]) -> int:
    """Return the bytes of memory of these processes, without pages of files."""
    return proc.together({pid: reading for pid in pids if (reading := proc.stat(pid)) is not None})


def may() -> bool:
    """True if this process has CAP_SYS_NICE, which paging others out needs."""
    lines = proc.text("/proc/self/status").split("\n")
    return any(int(line.split()[1], 16) >> 23 & 1 for line in lines if line.startswith("CapEff:"))


def _mappings(pid: int) -> Iterator[tuple[int, int]]:
    """Yield readable mappings in slices; none of a process that has ended."""
    for line in filter(None, proc.text(f"/proc/{pid}/maps").split("\n")):
        where, rights = line.split(None, 2)[:2]
        if rights[0] == "r" and not line.endswith(("[vvar]", "[vdso]", "[vsyscall]")):
            start, end = (int(part, 16) for part in where.split("-"))
            for at in range(start, end, _SLICE):
                yield at, min(end, at + _SLICE)


def _advise(pidfd: int, start: int, end: int) -> None:
    """Page out a mapping if the kernel can. Raises PermissionError, ProcessLookupError."""
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
    """Measures the memory of attempts, in the daemon: processes below each shepherd and in its cgroup."""

    def __init__(self) -> None:
        self._cache: dict[str, tuple[int, str]] = {}

    def of(self, folder: str) -> int | None:
        """Return the bytes of memory of an attempt's processes; None if it has not begun or has ended."""
        if folder not in self._cache:
            record, holder = records.read(folder, "pid"), records.holder(folder)
            if record is None or holder is None:
                return None
            try:
                found = proc.Identity.parse(holder).pid, str(record["cage"][1])
            except (ValueError, KeyError, IndexError):
                return None
            if len(self._cache) >= _REMEMBERED:
                self._cache.clear()
            self._cache[folder] = found
        shepherd, group = self._cache[folder]
        pids = {*proc.descendants(shepherd), *(cgroups.members(group) if group else ())} - {shepherd}
        if not pids:
            self._cache.pop(folder, None)
            return None
        return resident(sorted(pids))
