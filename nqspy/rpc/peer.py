"""Clients in the server's thread: their bytes become messages; breaking a limit disconnects a client."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from nqspy.model.people import Caller
from nqspy.rpc import messages, wire
from nqspy.rpc.limits import DEFAULTS, ConnectionShares, Limits, person

_CATCH_UP = 0.02
"""Seconds between two checks whether the engine has caught up."""
_WHILE_FULL = 8
"""Divisor of a user's share while all users together have too many waiting messages."""
_PROGRESS = 65_536
"""Bytes that a client must read between two checks to count as reading."""


class Handle:
    """Address of the answer to one message of a connection. ``id``: the client's number for that message."""

    __slots__ = ("_connection", "id")

    def __init__(self, connection: "ServedConnection", id: int) -> None:
        self._connection = connection
        self.id = id

    @property
    def closed(self) -> bool:
        """True if the connection is closed: no client will read the answer."""
        return self._connection.closed

    @property
    def stuck(self) -> bool:
        """True if the client has stopped reading its answers."""
        return self._connection.stuck_since is not None

    def deliver(self, answers: Sequence[bytes]) -> None:
        """Write answers to the connection; in the server's thread."""
        self._connection.answer(answers)

    @property
    def place(self) -> object:
        """Return the connection: one object for all messages of a client."""
        return self._connection


class Asked(Struct, frozen=True):
    """A client's message: the handle for its answer, the caller, the decoded message, its size in bytes."""

    handle: Handle
    caller: Caller
    message: dict[str, Any]
    size: int = 0


class ConnectionTable:
    """All connections, in the server's thread. ``put`` gets each message; ``backlog`` returns number and
    bytes of the messages of one user (uid; None: of all users) that wait for the engine."""

    _loop: asyncio.AbstractEventLoop

    def __init__(
        self, put: Callable[[Asked], None], limits: Limits = DEFAULTS,
        backlog: Callable[[int | None], tuple[int, int]] = lambda who: (0, 0),
    ) -> None:  # fmt: skip
        self.put = put
        self.limits = limits
        self.shares = ConnectionShares(limits)
        self.connections: set[ServedConnection] = set()
        self._backlog = backlog
        self._full_since: float | None = None
        self._catching_up = False
        self._delayed: set[ServedConnection] = set()

    def time(self) -> float:
        """Return seconds of a monotonic clock."""
        return self._loop.time()

    def forget(self, connection: "ServedConnection") -> None:
        """Remove a closed connection from the table."""
        self.connections.discard(connection)
        self._delayed.discard(connection)
        self.shares.enter(connection.caller, -1)

    def unread(self, caller: Caller) -> int:
        """Return the bytes of answers that a user's clients have not read; a shared answer counts once."""
        who, stored, own = person(caller), dict[int, int](), 0
        for connection in self.connections:
            if person(connection.caller) == who:
                own += connection.buffered()
                stored.update(connection.outbox.stored())
        return own + sum(stored.values())

    def delays(self, connection: "ServedConnection") -> bool:
        """True if a client is not to be read now, because many messages of its user wait; it is read again
        once half are done."""
        if not self._is_ahead(connection.caller, 1.0) or self._is_busy():
            return False
        self._delayed.add(connection)
        self._schedule()
        return True

    def refuses(self, caller: Caller) -> bool:
        """True if a caller's message must be refused: many of this user wait, and the engine is behind for
        long. For root and the home's owner it must be twice as far behind."""
        if not (self._is_ahead(caller, 1.0) and self._is_busy()):
            return False
        return not caller.trusted or self._is_behind(2.0)

    def _is_ahead(self, caller: Caller, part: float) -> bool:
        """True if more messages of a user wait than ``part`` of its limit (by number or bytes); the limit is
        lower while all users together have too many waiting."""
        limits, behind = self.limits, self._is_behind(1.0)
        if behind and self._full_since is None:
            self._full_since = self.time()
        elif not behind and self._full_since is not None and not self._is_behind(0.5):
            self._full_since = None
        part = part / _WHILE_FULL if self._full_since is not None else part
        waiting, size = self._backlog(person(caller))
        return waiting > part * limits.user_backlog or size > part * limits.user_backlog_bytes

    def _is_busy(self) -> bool:
        return self._full_since is not None and self.time() - self._full_since > self.limits.busy_time

    def _is_behind(self, part: float) -> bool:
        waiting, size = self._backlog(None)
        return waiting > part * self.limits.backlog or size > part * self.limits.backlog_bytes

    def _schedule(self) -> None:
        if self._delayed and not self._catching_up:
            self._catching_up = True
            self._loop.call_later(_CATCH_UP, self._catch_up)

    def _catch_up(self) -> None:
        self._catching_up = False
        for connection in tuple(self._delayed):
            if not self._is_ahead(connection.caller, 0.5) or self._is_busy():
                self._delayed.discard(connection)
                connection.read_on()
        self._schedule()


PIECE = 128 << 10
"""Bytes given to the transport at once: it copies what the socket does not accept."""


class Outbox:
    """Answers that a client has not read yet, written piece by piece; a shared answer is stored once.
    ``size``: bytes of all answers."""

    def __init__(self) -> None:
        self._answers: deque[memoryview] = deque()
        self.size = 0

    def add(self, answer: bytes | memoryview) -> None:
        """Queue an answer, or a part of one, for the client."""
        if answer:
            self._answers.append(memoryview(answer))
            self.size += len(answer)

    def next_piece(self) -> bytes | memoryview:
        """Remove and return the next piece: several small answers, or a part of a long one."""
        first = self._answers.popleft()
        if len(first) > PIECE:
            self._answers.appendleft(first[PIECE:])
            first = first[:PIECE]
        self.size -= len(first)
        small = [first]
        room = PIECE - len(first)
        while self._answers and len(self._answers[0]) <= room:
            small.append(self._answers.popleft())
            room -= len(small[-1])
            self.size -= len(small[-1])
        return first if len(small) == 1 else b"".join(small)

    def clear(self) -> None:
        """Drop all answers: no client will read them."""
        self._answers.clear()
        self.size = 0

    def stored(self) -> Iterable[tuple[int, int]]:
        """Yield an identity and the bytes of each stored answer; parts of one answer share both."""
        for answer in self._answers:
            with memoryview(answer.obj) as whole:
                yield id(answer.obj), len(whole)


class ServedConnection(asyncio.Protocol):
    """A connected client, perhaps with several messages at a time. ``outbox``: its unread answers;
    ``stuck_since``: monotonic seconds since which it reads none (None: it reads)."""

    def __init__(self, server: ConnectionTable, caller: Caller) -> None:
        self._server = server
        self.caller = caller
        limits = server.limits
        self._lines = wire.Lines(limits.submission, limits.message)
        self.outbox = Outbox()
        self._full = False
        self._transport: asyncio.Transport
        self._pending = 0
        self._held = 0
        self._unread = 0
        self._active_at = self._begun = server.time()
        self._half_open: float | None = None
        self._closing_since: float | None = None
        self._refusals: list[bytes] = []
        self._arrived: deque[bytes | None] = deque()
        self._handling = False
        self._arrived_bytes = 0
        self._counted_waiting = False
        self.stuck_since: float | None = None
        self.closed = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve the client that has just connected."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.closed = False
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after a client that has disconnected or was disconnected."""
        self.closed = True
        self.outbox.clear()
        self._arrived.clear()
        self._hold(0)
        self._waiting(False)
        self._server.forget(self)

    # ------------------------------------------------------------ coming in

    def data_received(self, data: bytes) -> None:
        """Handle each complete line as a message; answer a line that is none with an error."""
        if self.closed:
            return
        now, begun = self._server.time(), self._lines.begun
        self._active_at = now
        found = self._lines.feed(data)
        if found or not begun:
            self._begun = now
        self._arrived += found
        self._arrived_bytes += sum(len(line) for line in found if line is not None)
        self._handle_lines()
        if not self._hold(self._lines.size + self._arrived_bytes):
            self._close_with("too much data is on its way to this nqsd; try again in a moment", "busy")
        self.read_on()

    def _handle_lines(self) -> None:
        """Handle the lines that have arrived, as many as are allowed now; store the others."""
        self._handling = True
        while self._arrived and not self.closed and not self._is_full():
            line = self._arrived.popleft()
            if line is None:
                most = self._server.limits
                text = f"a message may have at most {most.message} bytes, a submission {most.submission}"
                self._close_with(text, "too_big")
            else:
                self._arrived_bytes -= len(line)
                self._ask(line)
        self._handling = False
        self._hold(self._lines.size + self._arrived_bytes)
        if self._half_open is not None and not self._arrived:
            self._half_open = self._server.time()
        if self._refusals:
            # One write: from Python 3.12 on a transport stores, and counts, each piece.
            refusals, self._refusals = self._refusals, []
            self.answer(refusals)

    def _hold(self, size: int) -> bool:
        more, self._held = size - self._held, size
        return self._server.shares.hold(person(self.caller), more)

    def _ask(self, line: bytes) -> None:
        try:
            message = wire.read_message(line, self._server.limits.message)
        except wire.WireError as error:
            self._refuse(error.text, error.code, error.id)
            return
        if self._server.refuses(self.caller):
            self._refuse("this nqsd is busy: too many messages wait; try again", "busy", message["id"])
            return
        self._pending += 1
        if message["cmd"] == "wait":
            self._waiting(True)
        self._server.put(Asked(Handle(self, message["id"]), self.caller, message, len(line)))

    def _refuse(self, text: str, code: str, id: int | None) -> None:
        self._pending += 1
        self._refusals.append(messages.error_answer(id, text, code))

    def _close_with(self, text: str, code: str) -> None:
        """Send one error and close the connection."""
        if not self.closed:
            self.outbox.add(messages.error_answer(None, text, code))
            self.finish()

    def eof_received(self) -> bool:
        """Note that the client sends no more; return True (keep the connection open) if answers are due."""
        if (self._pending or self._arrived) and not self.closed:
            self._half_open = self._server.time()
        return self._half_open is not None

    # ------------------------------------------------------------ going out

    def answer(self, parts: Sequence[bytes | memoryview], count: int | None = None) -> None:
        """Write answers: each part is one, or ``count`` answers lie in all parts. A client with too many
        unread bytes is cut off."""
        if self.closed:
            return
        self._pending -= len(parts) if count is None else count
        if not self._pending:
            self._waiting(False)
        self._active_at = self._server.time()
        for part in parts:
            self.outbox.add(part)
        self._write_on()
        if self.unread() and self._server.unread(self.caller) > self._server.limits.unread:
            self.cut_off()
        elif self._half_open is not None and not (self._pending or self._arrived):
            self.finish()
        else:
            self.read_on()

    def _write_on(self) -> None:
        """Give the transport as many bytes as the client reads."""
        while self.outbox.size and not self._full:
            self._transport.write(self.outbox.next_piece())

    def idle_since(self) -> float | None:
        """Return since when (monotonic seconds) the connection has been idle; None if it is busy."""
        busy = self.closed or self._pending or self._arrived or self._lines.begun
        return None if busy or self.stuck_since is not None else self._active_at

    def _waiting(self, waits: bool) -> None:
        if waits != self._counted_waiting:
            self._counted_waiting = waits
            self._server.shares.wait(self.caller.uid, 1 if waits else -1)

    def unread(self) -> int:
        """Return the bytes of unread answers, except those in the kernel."""
        return self.outbox.size + self.buffered()

    def buffered(self) -> int:
        """Return the unread bytes in the transport."""
        return self._transport.get_write_buffer_size()

    def pause_writing(self) -> None:
        """Stop reading messages: asyncio calls this when the client does not read its answers."""
        self._full = True
        if self.stuck_since is None:
            self.stuck_since, self._unread = self._server.time(), self.unread()
        self.read_on()

    def resume_writing(self) -> None:
        """Write on and read messages: asyncio calls this when the client reads its answers again."""
        self._full = False
        self._write_on()
        if not self._full:
            self.stuck_since = None
            self._close_if_done()
        self.read_on()

    # ------------------------------------------------------------ reading on, or not

    def read_on(self) -> None:
        """Read messages only while the client reads its answers, few are due and the engine keeps up."""
        if self.closed or self._handling:
            return
        if self._arrived and not self._is_full():
            self._handle_lines()
        if self.closed or self._half_open is not None:
            return
        if self._arrived or self._is_full():
            self._transport.pause_reading()
        elif not self._transport.is_reading() and not self._transport.is_closing():
            self._begun = self._active_at = self._server.time()  # the server made it wait
            self._transport.resume_reading()

    def _is_full(self) -> bool:
        due = self._pending - len(self._refusals)
        own = self.stuck_since is not None or due >= self._server.limits.pending
        return own or self._server.delays(self)

    def check(self, now: float) -> None:
        """Close the connection if a time limit is exceeded at ``now`` (monotonic seconds)."""
        limits = self._server.limits
        if self._closing_since is not None and now - self._closing_since > limits.unread_time:
            self.cut_off()
        elif self.closed:
            return
        elif self.stuck_since is not None:
            unread = self.unread()
            if unread < self._unread - _PROGRESS:
                self.stuck_since = now
            elif now - self.stuck_since > limits.unread_time:
                self.cut_off()
            self._unread = unread
        elif self._half_open is not None:
            if not self._arrived and now - self._half_open > limits.half_open_time:
                self.finish()
        elif self._lines.begun:
            if self._transport.is_reading() and now - self._begun > limits.message_time:
                text = f"the message did not arrive completely within {limits.message_time:g} s"
                self._close_with(text, "too_slow")
        elif not (self._pending or self._arrived) and now - self._active_at > limits.idle_time:
            self.finish()

    def cut_off(self) -> None:
        """Close the connection at once; unsent answers are lost."""
        self.closed = True
        self.outbox.clear()
        self._transport.abort()

    def finish(self) -> None:
        """Write the remaining answers, then close."""
        self.closed, self._closing_since = True, self._server.time()
        self._write_on()
        self._close_if_done()

    def _close_if_done(self) -> None:
        """Close the connection if no answer is due or unsent."""
        if self._closing_since is not None and not self.outbox.size:
            self._transport.close()
