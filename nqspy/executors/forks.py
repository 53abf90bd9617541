"""System calls for parents and children that Python lacks, and descriptors that wake a shepherd."""

import contextlib
import ctypes
import errno
import os
import signal
import struct
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence

from nqspy.executors.proc import Descriptor

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_TIMERSLACK = 30
_IOPRIO_GETS = {"x86_64": 252, "aarch64": 31, "riscv64": 31, "ppc64le": 274, "s390x": 283}
_IOPRIO_GET = _IOPRIO_GETS.get(os.uname().machine)
"""Number of the system call ioprio_get(2), for which the C library has no function."""
_IOPRIO_WHO_PROCESS = 1
_POSIX_SPAWN_SETSIGDEF, _POSIX_SPAWN_SETSIGMASK, _POSIX_SPAWN_SETSID = 0x04, 0x08, 0x80
_ROOM = 1024
"""Bytes for a structure of the C library: more than any has."""
_SIGNALS = 128
"""Bytes of the C library's sets of signals."""
_CLONE3 = 435
_CLONE_INTO_CGROUP = 0x200000000

_libc = ctypes.PyDLL(None, use_errno=True)
_api = ctypes.pythonapi


def become_subreaper() -> None:
    """Make this process the parent of its orphaned descendants from now on. Raises OSError."""
    if _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot become a subreaper")


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when ``parent`` ends, until its user changes. Raises OSError."""
    if _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot be tied to its parent")
    if os.getppid() != parent:
        os._exit(1)


def timer_slack() -> int:
    """Return by how many ns the kernel may delay timers of this thread and its children."""
    return int(_libc.prctl(_PR_GET_TIMERSLACK, 0, 0, 0, 0))


def io_urgency() -> int:
    """Return the I/O class and priority of this thread by ioprio_get(2); -1 if unknown."""
    return int(_libc.syscall(_IOPRIO_GET, _IOPRIO_WHO_PROCESS, 0)) if _IOPRIO_GET is not None else -1


def begin(work: Callable[[], object], fork: Callable[[], int] = os.fork, *, log: bool = False) -> int:
    """Fork a process that calls ``work`` and exits (1 if that raised; ``log``: with a traceback on stderr);
    return its pid. Raises OSError."""
    pid = fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            if log:
                traceback.print_exc()
                sys.stderr.flush()
        finally:
            os._exit(status)  # not by the interpreter's way out: that takes 10 ms
    return pid


def reap() -> bool:
    """Reap all children that have ended, without waiting; return True if no child remains."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return False
    return True


def fork_into(folder: str) -> int:
    """Fork as `os.fork`, with the child born in the cgroup2 ``folder``. Raises OSError if refused."""
    with Descriptor(os.open(folder, os.O_RDONLY | os.O_DIRECTORY)) as fd:
        arguments = struct.pack("11Q", _CLONE_INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, fd)
        buffer = ctypes.create_string_buffer(arguments, len(arguments))
        _api.PyOS_BeforeFork()
        pid = int(_libc.syscall(_CLONE3, buffer, ctypes.c_size_t(len(arguments))))
        if pid == 0:
            _api.PyOS_AfterFork_Child()
        else:
            _api.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno() or errno.ENOSYS, "clone3 into a cgroup")
    return pid


def spawn(path: str, words: Sequence[str], environment: Mapping[bytes, bytes], streams: Sequence[int]) -> int:
    """Start a program by posix_spawn(3) in a new session, with ``streams`` as its first descriptors and all
    signals by default; return its pid. Raises OSError. `os.posix_spawn` cannot reset the two signals that the
    C library reserves: they would stay ignored."""
    attributes, actions = ctypes.create_string_buffer(_ROOM), ctypes.create_string_buffer(_ROOM)
    _libc.posix_spawn_file_actions_init(actions)
    _libc.posix_spawnattr_init(attributes)
    flags = _POSIX_SPAWN_SETSIGDEF | _POSIX_SPAWN_SETSIGMASK | _POSIX_SPAWN_SETSID
    _libc.posix_spawnattr_setflags(attributes, ctypes.c_short(flags))
    _libc.posix_spawnattr_setsigdefault(attributes, b"\xff" * _SIGNALS)
    _libc.posix_spawnattr_setsigmask(attributes, bytes(_SIGNALS))
    try:
        for number, fd in enumerate(streams):
            _libc.posix_spawn_file_actions_adddup2(actions, fd, number)
        pid = ctypes.c_int()
        failed = _libc.posix_spawn(
            ctypes.byref(pid), os.fsencode(path), actions, attributes, _strings(map(os.fsencode, words)),
            _strings(b"%b=%b" % each for each in environment.items()),
        )  # fmt: skip
    finally:
        _libc.posix_spawn_file_actions_destroy(actions)
        _libc.posix_spawnattr_destroy(attributes)
    if failed:
        raise OSError(failed, os.strerror(failed))
    return pid.value


def _strings(found: Iterable[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    """Return texts as C's array of strings. Raises ValueError for one with a NUL."""
    texts = list(found)
    if any(b"\0" in text for text in texts):
        raise ValueError("embedded null byte")
    return (ctypes.c_char_p * (len(texts) + 1))(*texts, None)


def wake_on_children() -> int:
    """Return a descriptor that becomes readable whenever a child has ended."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def silence(fd: int) -> None:
    """Empty a descriptor that has woken this process, so that it can do so again."""
    with contextlib.suppress(OSError):  # an eventfd or a pipe cannot seek
        os.lseek(fd, 0, os.SEEK_SET)
    with contextlib.suppress(OSError):
        os.read(fd, 4096)
