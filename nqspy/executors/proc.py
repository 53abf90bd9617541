"""Processes as the kernel shows them: identities, descendants, use. Standard library only, for shepherds."""

import contextlib
import errno
import os
import select
import signal
import time
from typing import NamedTuple

TICK = 1.0 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
_KERNEL = 0x0020_0000
"""Flag of the kernel's own threads (PF_KTHREAD in sched.h)."""
SHORT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Error numbers of a caller without free descriptors or memory: they show nothing about the process."""


class Descriptor:
    """A file descriptor that is closed at the end of a ``with``."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __enter__(self) -> int:
        return self.fd

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


def contents(path: "str | os.PathLike[str]") -> bytes:
    """Return the bytes of a file. Raises OSError."""
    with Descriptor(os.open(path, os.O_RDONLY)) as fd:
        data = b""
        while part := os.read(fd, 65536):
            data += part
        return data


def write(fd: int, data: bytes) -> None:
    """Write all bytes to a descriptor. Raises OSError."""
    while data:
        data = data[os.write(fd, data) :]


def replace(path: str, data: bytes, *, durable: bool = False) -> None:
    """Write a file that only its owner reads, whole or not at all, and durably if asked. Raises OSError."""
    draft = f"{path}.{os.getpid()}"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with Descriptor(os.open(draft, flags, 0o600)) as fd:
            write(fd, data)
            if durable:
                os.fsync(fd)
        os.rename(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise


def text(path: "str | os.PathLike[str]") -> str:
    """Return the text of a file without the space around it, "" when it cannot be read."""
    try:
        return contents(path).decode("utf-8", "surrogateescape").strip()
    except OSError:
        return ""


def now() -> float:
    """Return real seconds of a clock that is never set (monotonic)."""
    return time.monotonic()  # noqa: TID251 - processes of their own measure real durations


def _inode(pid: int) -> int:
    with Descriptor(os.pidfd_open(pid)) as fd:
        return os.fstat(fd).st_ino


class Identity(NamedTuple):
    """Identity of a process while the machine is up: a pid and a start time (10 ms ticks) may come again, the
    inode of its pidfd does not (0: this kernel has none). A pid of another boot means nothing."""

    boot: str
    pid: int
    start: int
    inode: int

    def text(self) -> str:
        """Return the identity as a line for records: ``BOOT PID START INODE``."""
        return f"{self.boot} {self.pid} {self.start} {self.inode}"

    @classmethod
    def parse(cls, text: str) -> "Identity":
        """Return the identity written by `text`. Raises ValueError."""
        boot, pid, start, inode = text.split()
        return cls(boot, int(pid), int(start), int(inode))


class Identifier:
    """Finds identities of processes; reads only once what does not change during a boot."""

    __slots__ = ("boot", "distinct")

    def __init__(self) -> None:
        self.boot = contents("/proc/sys/kernel/random/boot_id").decode("ascii").strip()
        # From Linux 6.9 each process has a pidfd inode of its own; before that all share one.
        self.distinct = _inode(os.getpid()) != _inode(1)

    def of(self, pid: int) -> Identity:
        """Return the identity of a living process. Raises OSError if there is none."""
        with Descriptor(os.pidfd_open(pid)) as fd:
            return self._identity(pid, fd)

    def reopen(self, identity: Identity) -> int | None:
        """Return a pidfd of the process with this identity; None: it has ended. Raises OSError (`SHORT`)."""
        if identity.boot != self.boot:
            return None
        fd, same = -1, False
        try:
            fd = os.pidfd_open(identity.pid)
            found = self._identity(identity.pid, fd)
            same = found == identity and Stat(identity.pid).state not in "ZX"
        except OSError as error:
            if error.errno in SHORT:
                raise
        finally:
            if fd >= 0 and not same:
                os.close(fd)
        return fd if same else None

    def _identity(self, pid: int, fd: int) -> Identity:
        inode = os.fstat(fd).st_ino if self.distinct else 0
        return Identity(self.boot, pid, Stat(pid).start, inode)


class Stat:
    """A reading of ``/proc/PID/stat``. ``cpu``: seconds; ``reaped``: CPU seconds of its children waited for;
    ``rss``: bytes; ``start``: ticks after boot; ``code``: how it ended; ``stack``: address; ``processor``:
    the CPU on which it ran last; ``kernel``: True for a thread of the kernel. 0: not shown."""

    __slots__ = (
        "code", "cpu", "kernel", "parent", "processor", "reaped", "rss", "session", "stack", "start", "state",
        "threads",
    )  # fmt: skip

    def __init__(self, pid: int, thread: str = "") -> None:
        """Read the file of a process or (``task/17/``) thread. Raises OSError if it does not exist."""
        with Descriptor(os.open(f"/proc/{pid}/{thread}stat", os.O_RDONLY)) as fd:
            data = os.read(fd, 4096)
        # The command name stands in brackets and may hold anything, brackets too.
        field = data[data.rindex(b")") + 2 :].split()
        self.state = field[0].decode("ascii")
        self.parent = int(field[1])
        self.session = int(field[3])
        self.kernel = bool(int(field[6]) & _KERNEL)
        self.cpu = (int(field[11]) + int(field[12])) * TICK
        self.reaped = (int(field[13]) + int(field[14])) * TICK
        self.threads = int(field[17])
        self.start = int(field[19])
        self.rss = int(field[21]) * PAGE
        self.stack = int(field[25])
        self.processor = int(field[36]) if len(field) > 36 else 0
        self.code = int(field[49]) if len(field) > 49 else 0

    @property
    def dead(self) -> bool:
        """True if the process has ended with all its threads, and was not reaped yet."""
        return self.state in "ZX" and self.threads <= 1

    @property
    def still(self) -> bool:
        """True if the process was stopped, or a tracer stops it."""
        return self.state in "Tt"


def stat(pid: int, *, sure: bool = False) -> Stat | None:
    """Return a reading of a process; None if it has ended. ``sure``: OSError if no descriptor is free."""
    try:
        return Stat(pid)
    except OSError as error:
        if sure and error.errno in SHORT:
            raise
        return None


def stopped(pids: list[int]) -> set[int]:
    """Return those of these processes that have stopped with all their threads, or have ended: none of them
    can fork. A parent that waits for its child between vfork and exec counts as stopped."""
    found = {pid: reading for pid in pids if (reading := stat(pid)) is not None}
    lenders = {one.parent for one in found.values() if _borrows(one, found)}
    moving = [
        pid
        for pid, reading in found.items()
        if any(state not in ("TtZXD" if pid in lenders else "TtZX") for state in _states(pid, reading))
    ]
    return {*pids}.difference(moving)


def all_pids() -> list[int]:
    """Return the pids of all processes visible in /proc."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(root: int) -> list[int]:
    """Return the pids of all processes below ``root`` (a pid), without itself."""
    found: list[int] = []
    level = children(root)
    while level:
        found += level
        level = [child for pid in level for child in children(pid)]
    return found


def threads(pid: int) -> list[int]:
    """Return the numbers of a process's threads; empty: it has ended."""
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def children(pid: int) -> list[int]:
    """Return the pids of a process's children; one may be missing while another ends."""
    found: list[int] = []
    for task in threads(pid):
        try:
            found += map(int, contents(f"/proc/{pid}/task/{task}/children").split())
        except FileNotFoundError:
            if os.path.isdir(f"/proc/{pid}/task/{task}"):  # a kernel without that file
                return [each for each in all_pids() if (one := stat(each)) is not None and one.parent == pid]
        except OSError:
            continue
    return found


def _sum(path: str, names: tuple[bytes, ...]) -> int:
    try:
        with open(path, "rb") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(names))
    except OSError:
        return 0


def together(found: dict[int, Stat]) -> int:
    """Return the bytes of memory of these processes; shared pages count once, pages of files not."""
    each = {
        pid: (len(found) > 1 and _sum(f"/proc/{pid}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:")))
        or _sum(f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:"))
        for pid in found
    }
    borrowed = [min(each[pid], each[one.parent]) for pid, one in found.items() if _borrows(one, found)]
    return sum(each.values()) - sum(borrowed)


def _borrows(child: Stat, found: dict[int, Stat]) -> bool:
    """True if a child is between vfork and exec (most programs start others so): it uses its parent's memory,
    the calling thread waits in state D, and each of the two shows all of that memory as its own."""
    parent = found.get(child.parent)
    return parent is not None and child.stack == parent.stack and "D" in _states(child.parent, parent)


def _states(pid: int, reading: Stat) -> list[str]:
    """Return the states of a process's threads."""
    if reading.threads <= 1:
        return [reading.state]
    found = []
    for thread in threads(pid):
        with contextlib.suppress(OSError):
            found.append(Stat(pid, f"task/{thread}/").state)
    return found


def readable(fd: int, seconds: float = 0.0) -> bool:
    """True if a descriptor becomes readable within so many seconds; a pidfd does when its process ends."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def field(text: str, name: str) -> int:
    """Return the number behind a name in the text of a file; 0 without that name."""
    words = text.split()
    return int(words[words.index(name) + 1]) if name in words else 0


def pid_of(pidfd: int) -> int:
    """Return the pid of a pidfd's process; 0 or less if it has ended and was reaped."""
    return field(text(f"/proc/self/fdinfo/{pidfd}"), "Pid:")


def send_by(pidfd: int, number: int) -> None:
    """Send a signal to a pidfd's process, if it still exists."""
    with contextlib.suppress(OSError):
        signal.pidfd_send_signal(pidfd, number)


def await_ends(pids: list[int], seconds: float) -> None:
    """Wait until these processes have ended, at most so many seconds for all of them."""
    until = now() + seconds
    for pid in pids:
        with contextlib.suppress(OSError), Descriptor(os.pidfd_open(pid)) as fd:
            readable(fd, max(0.0, until - now()))


def send(pids: list[int], number: int, still: list[int] | None = None) -> None:
    """Send a signal to these processes, in order; of them only to those also in ``still``, a second list made
    afterwards, so that a pid reused in between gets none."""
    there = set(pids if still is None else still)
    for pid in [pid for pid in pids if pid in there]:
        with contextlib.suppress(OSError), Descriptor(os.pidfd_open(pid)) as fd:
            signal.pidfd_send_signal(fd, number)
