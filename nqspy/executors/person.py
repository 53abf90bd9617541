"""The owner of a request: looking him up, and becoming him."""

from __future__ import annotations

import contextlib
import ctypes
import grp
import os
import pwd
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}.get(
    os.uname().machine, -1
)
_JOIN_SESSION_KEYRING = 1
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


class NotFound(Exception):
    """The user database has no entry for the owner. A database that does not answer says the same, so this is
    no verdict on the request: it is tried again."""


class Person:
    """A user as the user database has them. ``gid``: the group to run with; ``primary``: the group of the
    database entry, which differs after ``newgrp`` or ``sg``."""

    __slots__ = ("gid", "home", "name", "primary", "shell", "uid")

    def __init__(
        self, uid: int, gid: int, name: str, home: str, shell: str, primary: int | None = None
    ) -> None:
        self.uid = uid
        self.gid = gid
        self.primary = gid if primary is None else primary
        self.name = name
        self.home = home
        self.shell = shell or "/bin/sh"


def warm_up() -> None:
    """Has the C library load what it needs to look people up, before shepherds are forked."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        pass


def find(order: dict[str, Any]) -> Person:
    """Return the owner named in an order. Raises NotFound when the user database has no entry, and
    PermissionError with a text for people when another user has the uid by now or this process may not."""
    uid = order["uid"]
    if os.geteuid() not in (0, uid):
        raise PermissionError(f"the daemon runs as uid {os.geteuid()} and cannot run requests of uid {uid}")
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        if uid != os.geteuid():
            raise NotFound(f"the user database has no entry for {order['owner']} (uid {uid})") from None
        return Person(uid, os.getegid(), order["owner"], os.environ.get("HOME", "/"), "/bin/sh")
    if uid != os.geteuid() and entry.pw_name != order["owner"]:
        entry = _by_name(order["owner"], uid, entry.pw_name)
    gid = _group(order, entry)
    return Person(uid, gid, entry.pw_name, entry.pw_dir, entry.pw_shell, entry.pw_gid)


def _by_name(name: str, uid: int, now: str) -> pwd.struct_passwd:
    """An owner who shares his number with another name."""
    with contextlib.suppress(KeyError):
        entry = pwd.getpwnam(name)
        if entry.pw_uid == uid:
            return entry
    raise PermissionError(f"uid {uid} was {name} when it was submitted and is {now} now")


def _group(order: dict[str, Any], entry: pwd.struct_passwd) -> int:
    """Return the group that the request was submitted with if its owner is a member, else the primary one."""
    if order["gid"] == entry.pw_gid or entry.pw_uid == os.geteuid():
        return entry.pw_gid
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    return int(order["gid"]) if order["gid"] in groups else entry.pw_gid


def groups_of(who: Person) -> dict[str, int]:
    """Return names and numbers of a user's groups."""
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
    """Become that user for good, groups first, and check the result. Raises OSError, PermissionError."""
    if who.uid == os.geteuid():
        return
    os.initgroups(who.name, who.primary)
    os.setresgid(who.gid, who.gid, who.gid)
    os.setresuid(who.uid, who.uid, who.uid)
    if not _become(who):
        raise PermissionError(f"could not become {who.name}")
    # Not root's keys: who has a session keyring may read what is in it. A kernel without keys refuses.
    _libc.syscall(_KEYCTL, _JOIN_SESSION_KEYRING, None, 0, 0, 0)


def _become(who: Person) -> bool:
    """True if this process has the user's identity in every respect, no right of root, and no way back."""
    same = os.getresuid() == (who.uid,) * 3 and os.getresgid() == (who.gid,) * 3
    groups = {*os.getgroups(), who.gid}
    return same and groups == _numbers(who) and not _capabilities() and not _may_return()


def _capabilities() -> int:
    """What it may do or hand on (capabilities(7)): permitted, effective and ambient."""
    found = 0
    with open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith((b"CapPrm", b"CapEff", b"CapAmb")):
                found |= int(line.split()[1], 16)
    return found


def _may_return() -> bool:
    try:
        os.setresuid(-1, 0, -1)
    except OSError:
        return False
    return True
