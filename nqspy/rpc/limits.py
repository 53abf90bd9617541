"""Limits of a client, of a user and of all together, so that no client makes the daemon slow or large."""

import resource

from msgspec import Struct, field

from nqspy.model.people import Caller

MIB = 1 << 20


def _most_connections() -> int:
    """Return 1,024, or half the descriptors that this process may open if that is less: others need some."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1024 if soft == resource.RLIM_INFINITY else min(1024, soft // 2)


class Limits(Struct, frozen=True):
    """Limits of the server: times in real seconds, sizes in bytes."""

    message: int = 4 * MIB
    """Longest message that is no submission."""
    submission: int = 256 * MIB
    """Longest submission: a script of 64 MiB, escaped. Its command is in the first 512 bytes of the line."""
    user_connections: int = 64
    """Connections of one user (root and the home's owner have only the limit on all)."""
    nameless_connections: int = 256
    """Connections of all users without a name together."""
    connections: int = field(default_factory=_most_connections)
    """Connections of all users."""
    user_waiting: int = 256
    """Connections of one user that may wait for requests to end without counting in its share."""
    spare: int = field(default_factory=lambda: _most_connections() // 32)
    """Connections beyond the limit on all that root and the home's owner may have."""
    user_bytes: int = 288 * MIB
    """Bytes of one user's messages that have not completely arrived."""
    bytes: int = 1024 * MIB
    """Bytes of all users' messages that have not completely arrived."""
    pending: int = 1_000
    """Questions of one connection that may wait for answers; at this number it is not read."""
    unread: int = 256 * MIB
    """Unread bytes of one user's answers beyond which a connection is closed; a shared answer counts once."""
    idle_time: float = 600.0
    """Idle time after which a connection that waits for nothing is closed."""
    message_time: float = 120.0
    """Time in which a message must have arrived completely after its first byte."""
    unread_time: float = 60.0
    """Time after which a client that reads none of its answers is disconnected."""
    half_open_time: float = 10.0
    """Time for which a client that has closed its sending side still gets answers."""
    user_backlog: int = 500
    """Messages of one user that may wait for the engine; then none is read until half are done."""
    user_backlog_bytes: int = 16 * MIB
    """Bytes of one user's messages that may wait for the engine."""
    backlog: int = 2_000
    """Messages of all users that may wait for the engine; beyond that each user's limit is an eighth."""
    backlog_bytes: int = 64 * MIB
    """Bytes of all users' messages that may wait for the engine."""
    busy_time: float = 10.0
    """Seconds of a full backlog after which messages of users above their part are refused."""
    sweep: float = 5.0
    """Seconds between two checks of these time limits."""


DEFAULTS = Limits()

NAMELESS = -1
"""Number that stands for all users without a name: thousands of them (user namespaces) have one share."""


def person(caller: Caller) -> int:
    """Return the number of the user for the share that a caller uses: its own, or `NAMELESS`."""
    return NAMELESS if caller.nameless else caller.uid


def _add(counts: dict[int, int], who: int, more: int) -> int:
    """Add ``more`` to a user's count; return the new one. A count of 0 is not stored."""
    counts[who] = counts.get(who, 0) + more
    return counts[who] or counts.pop(who)


class ConnectionShares:
    """Use of the server by each user: connections (``waiting``: those on which it only waits for requests to
    end), and bytes of messages that are still arriving."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.connections, self.waiting, self.bytes = dict[int, int](), dict[int, int](), dict[int, int]()
        self.all_connections = self.nameless = self.all_bytes = 0

    def full(self, caller: Caller) -> bool:
        """True if there are as many connections of all users as allowed, so that this caller gets no more."""
        limits = self._limits
        return self.all_connections >= limits.connections + (limits.spare if caller.trusted else 0)

    def refusal(self, caller: Caller) -> str | None:
        """Return the reason to refuse one more connection of a caller; None if it is accepted."""
        limits = self._limits
        if self.full(caller):
            return f"this nqsd is busy: it has {self.all_connections} connections; try again in a moment"
        have = self.connections.get(caller.uid, 0)
        have -= min(self.waiting.get(caller.uid, 0), limits.user_waiting)
        if have >= limits.user_connections and not caller.trusted:
            most = limits.user_connections
            return f"{caller.user} has {have} connections to this nqsd, at most {most} are allowed; try later"
        if person(caller) == NAMELESS and self.nameless >= limits.nameless_connections:
            return f"users without a name have {self.nameless} connections to this nqsd; try again later"
        return None

    def enter(self, caller: Caller, more: int = 1) -> None:
        """Add ``more`` (or subtract, if negative) to a caller's number of connections."""
        self.all_connections += more
        self.nameless += more if person(caller) == NAMELESS else 0
        _add(self.connections, caller.uid, more)

    def wait(self, uid: int, more: int) -> None:
        """Add ``more`` to the number of connections on which a user waits for requests to end."""
        _add(self.waiting, uid, more)

    def hold(self, uid: int, more: int) -> bool:
        """Add ``more`` to the bytes of a user's arriving messages; return True if within the limits."""
        self.all_bytes += more
        size = _add(self.bytes, uid, more)
        return size <= self._limits.user_bytes and self.all_bytes <= self._limits.bytes
