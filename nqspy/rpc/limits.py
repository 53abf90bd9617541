"""Limits of a client, a user and all together, so that none makes the daemon slow or large."""

import resource

from msgspec import Struct, field

from nqspy.model.people import Caller

MIB = 1 << 20


def _most_connections() -> int:
    """1,024, but no more than half the descriptors this process may open: others need some too."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1024 if soft == resource.RLIM_INFINITY else min(1024, soft // 2)


class Limits(Struct, frozen=True):
    """Times are real seconds, sizes bytes."""

    message: int = 4 * MIB
    """A message that is no submission."""
    submission: int = 256 * MIB
    """A submission: a script of 64 MiB, escaped. Its command stands in the first 512 bytes of the line."""
    user_connections: int = 64
    """Connections of one user; of root and the home's owner only the whole counts."""
    nameless_connections: int = 256
    """Connections of all users without a name together."""
    connections: int = field(default_factory=_most_connections)
    """Connections in all."""
    user_waiting: int = 256
    """Connections of one user that wait for requests to end: so many do not count in its share."""
    spare: int = field(default_factory=lambda: _most_connections() // 32)
    """Connections beyond that for root and the home's owner."""
    user_bytes: int = 288 * MIB
    """Bytes of a user's messages that have not arrived whole."""
    bytes: int = 1024 * MIB
    """The same of all users."""
    pending: int = 1_000
    """Questions of one connection that wait for their answers; beyond, it is not read from."""
    unread: int = 256 * MIB
    """Unread bytes of a user's answers before a connection is cut off; a shared answer counts once."""
    idle_time: float = 600.0
    """A connection that asks nothing and waits for nothing is closed after this."""
    message_time: float = 120.0
    """A message must have arrived whole this long after its first byte."""
    unread_time: float = 60.0
    """A client that reads nothing of its answers is cut off after this."""
    half_open_time: float = 10.0
    """A client that has closed its sending side still gets answers within this time."""
    user_backlog: int = 500
    """Messages of a user that wait for the engine; beyond, none is read until half are done."""
    user_backlog_bytes: int = 16 * MIB
    """The same in bytes."""
    backlog: int = 2_000
    """Messages of all users that wait for the engine; beyond, of a user at most an eighth of the above."""
    backlog_bytes: int = 64 * MIB
    """The same in bytes."""
    busy_time: float = 10.0
    """Seconds of a full backlog after which users with more than their part are refused: busy, try again."""
    sweep: float = 5.0
    """Seconds between two checks of these times."""


DEFAULTS = Limits()

NAMELESS = -1
"""All users without a name: thousands of them (user namespaces) have one share."""


def person(caller: Caller) -> int:
    """Return the number of the user with the share: the caller's, or `NAMELESS`."""
    return NAMELESS if caller.nameless else caller.uid


def _add(counts: dict[int, int], who: int, more: int) -> int:
    """Return the new count of a user; a count of 0 is not stored."""
    counts[who] = counts.get(who, 0) + more
    return counts[who] or counts.pop(who)


class ConnectionShares:
    """Shares of the users: connections, and bytes of messages that are still arriving."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.connections, self.waiting, self.bytes = dict[int, int](), dict[int, int](), dict[int, int]()
        self.all_connections = self.nameless = self.all_bytes = 0

    def full(self, caller: Caller) -> bool:
        """True if there are as many connections in all as a caller may share in."""
        limits = self._limits
        return self.all_connections >= limits.connections + (limits.spare if caller.trusted else 0)

    def refusal(self, caller: Caller) -> str | None:
        """Return the reason to refuse one more connection of a caller; None: it is accepted."""
        limits = self._limits
        if self.full(caller):
            return f"this nqsd is busy: it has {self.all_connections} connections; try again in a moment"
        have = self.connections.get(caller.uid, 0)
        have -= min(self.waiting.get(caller.uid, 0), limits.user_waiting)
        if have >= limits.user_connections and not caller.trusted:
            most = limits.user_connections
            return (
                f"{caller.user} has {have} connections to this nqsd, a user may have {most}; try again later"
            )
        if person(caller) == NAMELESS and self.nameless >= limits.nameless_connections:
            return f"users without a name have {self.nameless} connections to this nqsd; try again later"
        return None

    def enter(self, caller: Caller, more: int = 1) -> None:
        """Count one more connection of a caller (-1: one less)."""
        self.all_connections += more
        self.nameless += more if person(caller) == NAMELESS else 0
        _add(self.connections, caller.uid, more)

    def wait(self, uid: int, more: int) -> None:
        """Count one more connection (-1: one less) on which a user waits for requests to end."""
        _add(self.waiting, uid, more)

    def hold(self, uid: int, more: int) -> bool:
        """Count ``more`` bytes (less: negative) stored for a user; true if that is within the limits."""
        self.all_bytes += more
        size = _add(self.bytes, uid, more)
        return size <= self._limits.user_bytes and self.all_bytes <= self._limits.bytes
