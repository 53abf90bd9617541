"""What a worker gives up before any code of the site runs in it: descriptors, shared memory, rights.

Standard modules that site code usually imports are imported before: below a folder that the user without
rights cannot read, they could not be found later.
"""

import ctypes
import gc
import importlib
import os
import pwd
import resource
import signal
import sys
from collections.abc import Collection

from msgspec import Struct

from nqspy.decider import syscalls

USERS = ("nqspy", "nobody")
"""As whom exits run where the daemon is root: the first that exists."""

PRELOADED = (
    "re", "json", "math", "datetime", "collections", "itertools", "functools", "statistics", "random",
    "string", "fractions", "decimal", "bisect", "heapq", "textwrap", "fnmatch", "os.path", "operator",
    "dataclasses", "enum", "typing", "time", "calendar", "contextlib", "traceback", "linecache", "grp",
    "unicodedata", "_strptime", "copy", "pathlib", "subprocess", "logging",
)  # fmt: skip
"""Modules that are there whatever the user without rights may read."""

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_libc = ctypes.CDLL(None, use_errno=True)


class Sandbox(Struct, frozen=True):
    """What a worker may have. ``memory``: bytes beyond what it begins with; ``alone``: it may begin neither
    process nor thread, has no sockets (else: none of this machine, AF_UNIX), and under root changes no file;
    ``files``: descriptors;
    ``user``: (name, uid, gid) it becomes, None: it stays who it is."""

    memory: int
    alone: bool
    files: int
    user: tuple[str, int, int] | None


def user() -> tuple[str, int, int] | None:
    """As whom exits run; None: as the daemon, which is not root. Raises OSError where there is nobody."""
    if os.geteuid() != 0:
        return None
    for name in USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return name, entry.pw_uid, entry.pw_gid
    raise OSError(f"user exits do not run as root, and there is no user {' or '.join(USERS)}")


def enter(box: Sandbox, keep: Collection[int], page: int, output: int, parent: int) -> None:
    """Becomes a worker that can do nothing but answer: descriptors ``keep`` stay, ``output`` takes what is
    printed, ``page`` is the address of the shared page. Raises OSError when anything of it fails."""
    os.setsid()
    _forget_signals()
    _close_all_but(keep, output)
    _unmap_shared(page)
    for name in PRELOADED:
        importlib.import_module(name)
    os.chdir("/")
    os.umask(0o077)
    _limit(box)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if box.user is not None:
        _become(*box.user)
    syscalls.restrict(all_sockets=box.alone, files=box.alone and box.user is not None)
    # Asked for last: a change of user takes it back. The parent may have died before.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
    gc.freeze()  # the daemon's objects are here to stay; looking through them would copy their pages


def _forget_signals() -> None:
    signal.set_wakeup_fd(-1)
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _close_all_but(keep: Collection[int], output: int) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for fd in (1, 2):
        os.dup2(output, fd)
    kept = {0, 1, 2, *keep}
    for fd in [int(name) for name in os.listdir("/proc/self/fd")]:
        if fd not in kept:
            try:
                os.close(fd)
            except OSError:
                pass  # the one that listed them
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False, buffering=1)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="replace", closefd=False, buffering=1)  # noqa: SIM115


def _unmap_shared(page: int) -> None:
    """Takes away what is mapped from files and shared, such as the index of the database's log."""
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
