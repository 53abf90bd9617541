"""The worker's sandbox, entered before any code of the site runs: it gives up descriptors, shared memory,
rights, sockets and other processes.

The kernel refuses sockets and other processes by a filter of system calls (seccomp(2)) and by Landlock
(landlock(7)). A process of any user may put both on itself, for good and for all its children. Standard
modules that site code usually imports are imported before: in a folder that the user without rights cannot
read, they could not be found later."""

import ctypes
import errno
import gc
import importlib
import os
import pwd
import resource
import signal
import struct
import sys
from collections.abc import Collection, Iterator

from msgspec import Struct

_PR_SET_SECCOMP, _FILTER = 22, 2
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_WRITE_FILE, _TRUNCATE, _TRUNCATE_SINCE = 1 << 1, 1 << 14, 3
_CHANGES = _WRITE_FILE | sum(1 << bit for bit in (4, 5, 7, 8, 9, 10, 12))
"""Rights over files: writing, removing a file or folder, making a folder, file, socket, FIFO or link."""
_BENEATH = 1
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1
_SCOPES_SINCE = 6
_UNIX, _STREAM = 1, 1
_libc = ctypes.CDLL(None, use_errno=True)


class _Machine(Struct, frozen=True):
    """Numbers of a machine's kernel: its own (``AUDIT_ARCH_…``), of the calls always refused, of those that
    make memory or queues that others can map (``shared``), of clone(2), of those that make and connect
    sockets; ``other``: from there on numbers belong to another calling convention."""

    arch: int
    reach: tuple[int, ...]
    shared: tuple[int, ...]
    clone: int
    socket: int
    socketpair: int
    join: tuple[int, ...]
    other: int | None = None


# reach: ptrace, process_vm_readv, process_vm_writev, unshare, setns, add_key, request_key, keyctl,
# perf_event_open, bpf, userfaultfd, pidfd_getfd, io_uring_setup
# shared: shmget, msgget, semget, mq_open, memfd_create, memfd_secret; join: connect, bind
_NEW = (438, 425)
_REACH = (117, 270, 271, 97, 268, 217, 218, 219, 241, 280, 282, *_NEW)
_GENERIC = (_REACH, (194, 186, 190, 180, 279, 447), 220, 198, 199, (203, 200))
_REACH_X86 = (101, 310, 311, 272, 308, 248, 249, 250, 298, 321, 323, *_NEW)
_SHARED_X86 = (29, 68, 64, 240, 319, 447)
_CLONE3 = 435
_NAMESPACES = 0x7E02_0000
"""Flags of clone(2) that make namespaces (``CLONE_NEW…``)."""
_MACHINES = {
    "x86_64": _Machine(0xC000003E, _REACH_X86, _SHARED_X86, 56, 41, 53, (42, 49), other=1 << 30),
    "aarch64": _Machine(0xC00000B7, *_GENERIC),
    "riscv64": _Machine(0xC00000F3, *_GENERIC),
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


def _restrict(*, all_sockets: bool, files: bool) -> None:
    """Take from this process and its children: all sockets and memory that others can map, or (without
    ``all_sockets``) only sockets of this machine (``AF_UNIX``), so that those of the network remain.
    ``files``: it can change no file. If the kernel can do none of this, say so on stderr. Needs
    ``PR_SET_NO_NEW_PRIVS``. Raises OSError."""
    _isolate(nodes=all_sockets, files=files)
    machine = _MACHINES.get(os.uname().machine)
    if machine is None:
        os.write(2, b"user exits are not kept from sockets: their numbers on this machine are not known\n")
        return
    code = b"".join(_filter(machine, all_sockets))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    if _libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0) != 0:
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(number, f"no filter of system calls: {os.strerror(number)}")
        os.write(2, b"user exits are not kept from sockets: this kernel has no filter of system calls\n")


def _isolate(*, nodes: bool, files: bool) -> None:
    """Restrict by Landlock: no tracing of outside processes (nor access to their memory by /proc), and no
    signals to them if the kernel can refuse that. ``nodes``: no device nodes either, so that older kernels
    isolate too; renames between folders then fail. ``files``: no file but /dev/null can be changed."""
    version = _libc.syscall(_CREATE_RULESET, None, 0, _VERSION)
    scopes = _ABSTRACT_SOCKETS | _SIGNALS if version >= _SCOPES_SINCE else 0
    given_up = _MAKE_CHAR | _MAKE_BLOCK if nodes else 0
    if files:
        given_up |= _CHANGES | (_TRUNCATE if version >= _TRUNCATE_SINCE else 0)
    rules = _Ruleset(given_up, 0, scopes)
    if version < 1 or not (rules.files or rules.scoped):
        return  # an old kernel, or switched off: only rights and Yama protect
    size = ctypes.sizeof(_Ruleset) if scopes else 8
    fd = _libc.syscall(_CREATE_RULESET, ctypes.byref(rules), size, 0)
    if fd >= 0 and files:
        null = os.open(os.devnull, os.O_PATH | os.O_CLOEXEC)
        allowed = _Beneath(given_up & (_WRITE_FILE | _TRUNCATE), null)
        _libc.syscall(_ADD_RULE, fd, _BENEATH, ctypes.byref(allowed), 0)
        os.close(null)
    if fd < 0 or _libc.syscall(_RESTRICT_SELF, fd, 0) != 0:
        raise OSError(ctypes.get_errno(), f"landlock: {os.strerror(ctypes.get_errno())}")
    os.close(fd)


def _filter(machine: _Machine, all_sockets: bool) -> Iterator[bytes]:
    """Yield the instructions of the filter of system calls (see `_restrict`) in classic BPF (struct
    sock_filter). Refused calls fail with EPERM."""
    yield _load(4)
    yield _op(0x15, machine.arch, 1, 0)
    yield _refuse()
    yield _load(0)
    if machine.other is not None:
        yield _op(0x35, machine.other, 0, 1)  # numbers from there on
        yield _refuse()
    sockets = (machine.socket, machine.socketpair) if all_sockets else ()
    for number in (*machine.reach, *(*machine.join, *machine.shared) * all_sockets, *sockets):
        yield _op(0x15, number, 0, 1)
        yield _refuse()
    yield _op(0x15, _CLONE3, 0, 1)
    yield _refuse(errno.ENOSYS)  # its flags are out of reach; the library calls clone then
    yield _op(0x15, machine.clone, 0, 4)
    yield _load(16)
    yield _op(0x45, _NAMESPACES, 0, 1)
    yield _refuse()
    yield _allow()
    if not all_sockets:
        yield _op(0x15, machine.socket, 0, 4)
        yield _load(16)
        yield _op(0x15, _UNIX, 0, 1)
        yield _refuse()
        yield _allow()
        yield _op(0x15, machine.socketpair, 0, 4)  # a datagram socket could be turned to another address
        yield _load(24)
        yield _op(0x54, 0xF)
        yield _op(0x15, _STREAM, 1, 0)
        yield _refuse()
    yield _allow()


def _load(offset: int) -> bytes:
    """Return the instruction that loads a word of ``struct seccomp_data``: 0 the call's number, 4 the
    machine, 16 the first argument."""
    return _op(0x20, offset)


def _refuse(number: int = errno.EPERM) -> bytes:
    return _op(0x06, 0x0005_0000 | number)


def _allow() -> bytes:
    return _op(0x06, 0x7FFF_0000)


def _op(code: int, k: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, k)


USERS = ("nqspy", "nobody")
"""Users as whom exits run if the daemon is root: the first that exists."""

PRELOADED = (
    "re", "json", "math", "datetime", "collections", "itertools", "functools", "statistics", "random",
    "string", "fractions", "decimal", "bisect", "heapq", "textwrap", "fnmatch", "os.path", "operator",
    "dataclasses", "enum", "typing", "time", "calendar", "contextlib", "traceback", "linecache", "grp",
    "unicodedata", "_strptime", "copy", "pathlib", "subprocess", "logging",
)  # fmt: skip
"""Modules that are imported before the sandbox: the user without rights may be unable to read them."""

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38


class Sandbox(Struct, frozen=True):
    """Limits of a worker. ``memory``: bytes beyond what it begins with; ``alone``: True: no other process or
    thread, no sockets, and under root no file can be changed; False: only no sockets of this machine
    (AF_UNIX); ``files``: most open descriptors; ``user``: (name, uid, gid) to become, None: the same."""

    memory: int
    alone: bool
    files: int
    user: tuple[str, int, int] | None


def user() -> tuple[str, int, int] | None:
    """Return the user that exits run as; None: the daemon's own, which is not root. Raises OSError if it is
    root and none of `USERS` exists."""
    if os.geteuid() != 0:
        return None
    for name in USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return name, entry.pw_uid, entry.pw_gid
    raise OSError(f"user exits do not run as root, and there is no user {' or '.join(USERS)}")


def enter(box: Sandbox, open_fds: Collection[int], page: int, output: int, parent: int) -> None:
    """Enter the sandbox, where this process can only answer: descriptors ``open_fds`` stay, printed text goes
    to ``output``, ``page`` is the address of the shared page. The process ends with process ``parent``.
    Raises OSError if any step fails."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _close_all_but(open_fds, output)
    _unmap_shared(page)
    for name in PRELOADED:
        importlib.import_module(name)
    os.chdir("/")
    os.umask(0o077)
    _limit(box)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if box.user is not None:
        _become(*box.user)
    _restrict(all_sockets=box.alone, files=box.alone and box.user is not None)
    # Asked for last: a change of user undoes it. The parent may have died before.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
    gc.freeze()  # the daemon's objects stay; looking through them for cycles would copy their pages


def _close_all_but(open_fds: Collection[int], output: int) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for fd in (1, 2):
        os.dup2(output, fd)
    stays = {0, 1, 2, *open_fds}
    for fd in [int(name) for name in os.listdir("/proc/self/fd")]:
        if fd not in stays:
            try:
                os.close(fd)
            except OSError:
                pass  # the descriptor that listed the others
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False, buffering=1)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="replace", closefd=False, buffering=1)  # noqa: SIM115


def _unmap_shared(page: int) -> None:
    """Unmap memory shared with files, like the index of the database's log, except the page."""
    with open("/proc/self/maps") as maps:
        found = [line.split() for line in maps]
    for words in found:
        if words[1].endswith("s") and len(words) > 5 and words[5].startswith("/"):
            first, last = (int(answer, 16) for answer in words[0].split("-"))
            if not first <= page < last and words[5] != "/dev/zero":
                _libc.munmap(ctypes.c_void_p(first), ctypes.c_size_t(last - first))


def _limit(box: Sandbox) -> None:
    with open("/proc/self/statm") as statm:
        size = int(statm.read().split()[0]) * resource.getpagesize()
    limits = [
        (resource.RLIMIT_AS, size + box.memory),
        (resource.RLIMIT_NOFILE, box.files),
        (resource.RLIMIT_CORE, 0),
    ]
    if box.alone:
        limits.append((resource.RLIMIT_NPROC, 0))
    for kind, most in limits:
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(kind, (most, most))


def _become(name: str, uid: int, gid: int) -> None:
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if os.getresuid() != (uid,) * 3 or os.getresgid() != (gid,) * 3 or os.getgroups():
        raise OSError(f"could not become {name}")
    try:
        os.setresuid(0, 0, 0)
    except PermissionError:
        return
    raise OSError(f"could become root again after {name}")


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")
