"""The caller of a command: the peer of a Unix socket as the kernel named it when it connected."""

import grp
import os
import pwd
import socket
import struct
from collections.abc import Callable

from nqspy.model.people import Caller

_SO_PEERGROUPS = 59
"""Number of the option in <asm-generic/socket.h>; Python has no name for it."""

_MOST_GROUP_BYTES = 1024
"""Bytes of the longest answer of Python's getsockopt: 256 groups; for more, the group database is asked."""

_KNOWN = 3600.0
"""Seconds for which names from the user database are valid: users are renamed, and numbers reused."""
_GUESSED = 10.0
"""Seconds for which a number without a name is valid: perhaps the database did not answer."""


class Callers:
    """Names the peers of connections, and caches names of users and groups. ``now``: monotonic seconds."""

    def __init__(self, owner_uid: int, now: Callable[[], float] = lambda: 0.0) -> None:
        self._owner = owner_uid
        self._now = now
        self._known: dict[tuple[int, int, tuple[int, ...]], tuple[float, Caller]] = {}

    def of(self, connection: socket.socket) -> Caller:
        """Return a connection's peer, ``trusted`` if root or the home's owner. Raises OSError."""
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        _pid, uid, gid = struct.unpack("3i", credentials)
        key = (uid, gid, _peer_groups(connection, uid, gid))
        until, known = self._known.get(key, (0.0, None))
        if known is not None and self._now() <= until:
            return known
        names = dict.fromkeys(_name(lambda n: grp.getgrgid(n).gr_name, number) for number in (gid, *key[2]))
        user = _name(lambda n: pwd.getpwuid(n).pw_name, uid)
        found = Caller(user, uid, gid, tuple(names), uid in (0, self._owner))
        if found.user == str(uid):
            return known or found  # the database does not answer: the former name stays valid
        whole = not any(name.isdigit() for name in found.groups)
        self._known[key] = self._now() + (_KNOWN if whole else _GUESSED), found
        return found


def _peer_groups(connection: socket.socket, uid: int, gid: int) -> tuple[int, ...]:
    """Return the numbers of the peer's supplementary groups."""
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MOST_GROUP_BYTES)
        return tuple(struct.unpack(f"{len(raw) // 4}I", raw))
    except OSError:  # too many for one answer
        pass
    try:
        entry = pwd.getpwuid(uid)
        return tuple({*os.getgrouplist(entry.pw_name, entry.pw_gid), gid})
    except (KeyError, OSError):
        return ()


def _name(look_up: Callable[[int], str], number: int) -> str:
    """Return the name that ``look_up`` finds for a number, or the number as text if there is none."""
    try:
        return look_up(number)
    except (KeyError, OverflowError, OSError):
        return str(number)
