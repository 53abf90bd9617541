"""The owner of a request: finds and becomes that user, and reads what a login sets besides rights: limits
(limits.conf(5)), search path (login.defs(5)), variables (environment(5)). All is read from the files, as root
has no PAM to ask; a file that cannot be read is skipped. Standard library only."""

import contextlib
import ctypes
import grp
import os
import pwd
from functools import lru_cache
from typing import Any, NamedTuple

from nqspy.executors import proc

_libc = ctypes.CDLL(None, use_errno=True)
_KEYCTLS = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}
_KEYCTL = _KEYCTLS.get(os.uname().machine, -1)
_JOIN_SESSION_KEYRING = 1
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


class NotFound(Exception):
    """The user database has no entry for the owner, or does not answer; a later try may succeed."""


class Person(NamedTuple):
    """A user as in the user database. ``primary``: own group; ``gid``: the job's, another after
    ``newgrp``."""

    uid: int
    gid: int
    name: str
    home: str
    shell: str
    primary: int


def warm_up() -> None:
    """Load the user database, and the files of logins, before shepherds are forked."""
    with contextlib.suppress(KeyError):
        pwd.getpwuid(os.geteuid())
    for path in (LIMITS, *_files(LIMITS_MORE), DEFINITIONS, VARIABLES):
        _text(path)
    for name in ("ENV_SUPATH", "ENV_PATH"):
        _definition(_text(DEFINITIONS), name)


def find(order: dict[str, Any]) -> Person:
    """Return the owner named in an order. Raises NotFound; PermissionError with a text for people if the
    daemon may not become that user, or if the uid has another name by now."""
    uid = order["uid"]
    if os.geteuid() not in (0, uid):
        raise PermissionError(f"the daemon runs as uid {os.geteuid()} and cannot run requests of uid {uid}")
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        if uid != os.geteuid():
            raise NotFound(f"the user database has no entry for {order['owner']} (uid {uid})") from None
        own = os.getegid()
        return Person(uid, own, order["owner"], os.environ.get("HOME", "/"), "/bin/sh", own)
    if uid != os.geteuid() and entry.pw_name != order["owner"]:
        other, name, same = entry.pw_name, order["owner"], False  # several names may share a number
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            same = entry.pw_uid == uid
        if not same:
            raise PermissionError(f"uid {uid} was {name} at submission and is {other} now")
    # The group that the request was submitted with if its owner is a member, else the primary one.
    gid = entry.pw_gid
    if order["gid"] != gid and uid != os.geteuid():
        gid = order["gid"] if order["gid"] in os.getgrouplist(entry.pw_name, gid) else gid
    return Person(uid, gid, entry.pw_name, entry.pw_dir, entry.pw_shell or "/bin/sh", entry.pw_gid)


def groups_of(who: Person) -> dict[str, int]:
    """Return the user's groups, number by name; the number as text is the name of an unknown one."""
    found = {}
    for gid in _numbers(who):
        try:
            found[grp.getgrgid(gid).gr_name] = gid
        except KeyError:
            found[str(gid)] = gid
    return found


def _numbers(who: Person) -> set[int]:
    return {*os.getgrouplist(who.name, who.primary), who.gid}


def become(who: Person) -> None:
    """Become that user for good, groups first, and check that it worked. Raises OSError, PermissionError."""
    if who.uid == os.geteuid():
        return
    os.initgroups(who.name, who.primary)
    os.setresgid(who.gid, who.gid, who.gid)
    os.setresuid(who.uid, who.uid, who.uid)
    same = os.getresuid() == (who.uid,) * 3 and os.getresgid() == (who.gid,) * 3
    same = same and {*os.getgroups(), who.gid} == _numbers(who)
    lines = proc.contents("/proc/self/status").split(b"\n")  # its own and inheritable capabilities(7)
    masks = [line.split()[1] for line in lines if line.startswith((b"CapPrm", b"CapEff", b"CapAmb"))]
    way_back = True
    try:
        os.setresuid(-1, 0, -1)
    except OSError:
        way_back = False
    if not same or any(int(mask, 16) for mask in masks) or way_back:
        raise PermissionError(f"could not become {who.name}")
    # Not root's keys: any process with its session keyring may read them. A kernel without keys refuses.
    _libc.syscall(_KEYCTL, _JOIN_SESSION_KEYRING, None, 0, 0, 0)


LIMITS = "/etc/security/limits.conf"
LIMITS_MORE = "/etc/security/limits.d"
DEFINITIONS = "/etc/login.defs"
VARIABLES = "/etc/environment"

_UNITS = {
    "core": 1024, "data": 1024, "fsize": 1024, "memlock": 1024, "nofile": 1, "rss": 1024, "stack": 1024,
    "cpu": 60, "nproc": 1, "as": 1024, "sigpending": 1, "msgqueue": 1,
    "rtprio": 1,
}  # fmt: skip
Limits = dict[str, tuple[int | None, int | None]]
"""Soft and hard limit by name of the rlimit (``NOFILE``); -1: unlimited; None: not set here."""


def limits_of(who: Person, groups: dict[str, int], root: str = "") -> Limits:
    """Return the limits in limits.conf and limits.d/*.conf: a line for the user counts before a group's, that
    before ``*``; of equal ones the last. For root only lines with its name count. ``groups``: those of
    `groups_of`; ``root``: folder in which the files are looked for."""
    lines: list[tuple[int, str, str, int]] = []
    for path in (root + LIMITS, *_files(root + LIMITS_MORE)):
        for line in _text(path).splitlines():
            words = line.partition("#")[0].split()
            if len(words) != 4 or words[1] not in ("soft", "hard", "-") or words[2] not in _UNITS:
                continue  # an item of the login itself (maxlogins, priority), or not known to this kernel
            domain, kind, item, text = words
            endless = text in ("unlimited", "infinity", "-1")
            if endless or text.isdigit():
                value, rank = -1 if endless else int(text) * _UNITS[item], _rank(domain, who, groups)
                sides = ("soft", "hard") if kind == "-" else (kind,)
                lines += [(rank, side, item.upper(), value) for side in sides if rank]
    found: Limits = {}
    for _, side, item, value in sorted(lines, key=lambda line: line[0]):
        soft, hard = found.get(item, (None, None))
        found[item] = (value, hard) if side == "soft" else (soft, value)
    return found


def _rank(domain: str, who: Person, groups: dict[str, int]) -> int:
    """Return how closely a domain of limits.conf names the user: 3 name, 2 group, 1 all users, 0 not."""
    if domain == "*":
        return 1 if who.uid else 0
    if domain.startswith("@"):
        name = domain[1:]
        named = name in groups or any(_within(name, gid) for gid in groups.values())
        return 2 if named and who.uid else 0
    return 3 if domain == who.name or _within(domain, who.uid) else 0


def _within(text: str, number: int) -> bool:
    """True if a number is in a range: ``1000:2000``, ``1000:``, ``:2000``."""
    low, colon, high = text.partition(":")
    if not colon or not (low or high) or not (low + high).isdigit():
        return False
    return int(low or 0) <= number <= (int(high) if high else number)


def smaller(asked: dict[str, tuple[int, int]], login: Limits) -> dict[str, tuple[int, int]]:
    """Return the smaller limit for each name of rlimits, of a request's and a login's; -1: unlimited."""
    found = dict(asked)
    for name, (soft, hard) in login.items():
        own = asked.get(name, (-1, -1))
        most = least(own[1], -1 if hard is None else hard)
        found[name] = (least(least(own[0], most if soft is None else soft), most), most)
    return found


def least(one: int, other: int) -> int:
    """Return the smaller of two limits; -1 is unlimited, as in the kernel."""
    return max(one, other) if min(one, other) < 0 else min(one, other)


def pair(name: str, limits: tuple[int, int]) -> tuple[int, int]:
    """Return soft and hard limit as the kernel accepts them: the number of files cannot be unlimited."""
    if name != "NOFILE" or -1 not in limits:
        return limits
    most = int(proc.contents("/proc/sys/fs/nr_open"))
    return (most if limits[0] < 0 else limits[0]), (most if limits[1] < 0 else limits[1])


def variables(who: Person, root: str = "") -> dict[str, str]:
    """Return the variables of a login: /etc/environment, the path of login.defs, those of the user. ``root``:
    folder in which the files are looked for."""
    name = "ENV_SUPATH" if who.uid == 0 else "ENV_PATH"
    found = {"PATH": _definition(_text(root + DEFINITIONS), name).removeprefix("PATH=") or DEFAULT_PATH}
    for line in _text(root + VARIABLES).splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and name.isidentifier():
            found[name] = value.strip().strip("\"'")
    return found | {"HOME": who.home, "USER": who.name, "LOGNAME": who.name, "SHELL": who.shell}


@lru_cache(8)
def _definition(text: str, name: str) -> str:
    """Return the value of a name in login.defs; the last line counts."""
    lines = [line.split(None, 1) for line in text.splitlines()]
    return next((words[1].strip() for words in lines[::-1] if words[:1] == [name] and len(words) == 2), "")


def _files(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [f"{folder}/{name}" for name in names if name.endswith(".conf") and name[0] != "."]


_read = lru_cache(64)(lambda path, changed, size: proc.text(path))
"""Contents of files read by the spawner, for its shepherds, as long as the files do not change."""


def _text(path: str) -> str:
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return _read(path, found.st_mtime_ns, found.st_size)
    return ""
