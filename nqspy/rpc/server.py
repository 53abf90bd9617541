"""The daemon's counter: one thread with one asyncio loop serves all connections; it decodes, never decides.

What arrives goes through ``put`` into the daemon's inbox; answers come back by `Server.reply`.
"""

import asyncio
import contextlib
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nqspy.model.people import Caller
from nqspy.rpc import messages, wire
from nqspy.rpc.auth import Callers
from nqspy.rpc.home import with_short_path

MOST_PENDING = 1_000
"""Requests of one connection that may wait for their answers; beyond, it is not read from."""

MOST_UNREAD = 256 * 1024 * 1024
"""Bytes of answers that a client may leave unread before it is cut off."""

PIECE = 256 * 1024
"""Bytes of a long answer that are written at a time: what a client does not read yet is not copied for it."""

_BACKLOG = 1_024


class Handle:
    """Where an answer goes: one request of one connection. ``id`` is the number the client gave it."""

    __slots__ = ("_connection", "id")

    def __init__(self, connection: "Connection", id: int) -> None:
        self._connection = connection
        self.id = id

    @property
    def gone(self) -> bool:
        """Whether the client has hung up: nobody will read the answer."""
        return self._connection.gone


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came from the wire: where to answer, who asks, and the decoded message."""

    handle: Handle
    caller: Caller
    message: dict[str, Any]


Put = Callable[[Asked], None]
Replies = Sequence[tuple[Handle, bytes]]


class Connection(asyncio.Protocol):
    """One client. Lives in the server's thread; several requests may be under way at once."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._lines = wire.Lines(server.max_line)
        self._transport: asyncio.Transport
        self._caller: Caller
        self._pending = 0
        self._stuck = False
        self._outbox: deque[memoryview] = deque()
        self.gone = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asks the kernel who it is, and turns away who may not."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        try:
            self._caller = self._server.callers.of(transport.get_extra_info("socket"))
        except OSError as error:
            self._turn_away(f"the kernel does not say who asks ({error})")
            return
        if not self._server.allow_uid(self._caller.uid):
            self._turn_away(
                f"this nqsd does not serve {self._caller.user}; it serves the owner of its home alone"
            )
            return
        self.gone = False
        self._server.connections.add(self)

    def _turn_away(self, text: str) -> None:
        self._transport.write(messages.error_answer(None, text, "not_allowed"))
        self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has hung up, or was cut off."""
        self.gone = True
        self._outbox.clear()
        self._server.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        """Each whole line is a request; what is no message is answered with one error."""
        if self.gone:
            return
        for line in self._lines.feed(data):
            if line is None:
                self._refuse(f"a message may have at most {self._server.max_line} bytes", "too_big", None)
            else:
                self._ask(line)
        self._throttle()

    def _ask(self, line: bytes) -> None:
        try:
            message = wire.read_message(line)
        except wire.WireError as error:
            self._refuse(error.text, error.code, error.id)
            return
        self._pending += 1
        self._server.put(Asked(Handle(self, message["id"]), self._caller, message))

    def _refuse(self, text: str, code: str, id: int | None) -> None:
        self._pending += 1
        self.answer([messages.error_answer(id, text, code)])

    def answer(self, answers: Sequence[bytes]) -> None:
        """Writes answers; cuts the client off when it reads none of them."""
        if self.gone:
            return
        self._pending -= len(answers)
        self._send(answers[0] if len(answers) == 1 else b"".join(answers))

    def answer_alike(self, head: bytes, rest: memoryview) -> None:
        """Writes one answer of which others get the ``rest`` too."""
        if not self.gone:
            self._pending -= 1
            self._send(head)
            self._send(rest)

    def _send(self, data: bytes | memoryview) -> None:
        if self._outbox or len(data) > PIECE:
            self._outbox.append(memoryview(data))
            self._pump()
        else:
            self._transport.write(data)
        if self._transport.get_write_buffer_size() + sum(map(len, self._outbox)) > MOST_UNREAD:
            self.cut_off()
        else:
            self._throttle()

    def _pump(self) -> None:
        """Writes of what is long as much as the client reads."""
        while self._outbox and not self._stuck:
            first = self._outbox.popleft()
            if len(first) > PIECE:
                self._outbox.appendleft(first[PIECE:])
            self._transport.write(first[:PIECE])

    def _throttle(self) -> None:
        """Reads on only while the client reads its answers and not too many of them are due."""
        if self._stuck or self._pending >= MOST_PENDING:
            self._transport.pause_reading()
        elif not self._transport.is_reading() and not self._transport.is_closing():
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """The client does not read: take no more requests from it."""
        self._stuck = True
        self._throttle()

    def resume_writing(self) -> None:
        """It reads again."""
        self._stuck = False
        self._pump()
        self._throttle()

    def cut_off(self) -> None:
        """Closes without waiting for the client."""
        self.gone = True
        self._transport.abort()

    def finish(self) -> None:
        """Writes what is left and closes."""
        while self._outbox:
            self._transport.write(self._outbox.popleft())
        self._transport.close()


class Server:
    """Serves the socket ``path`` in a thread of its own.

    ``put`` takes each request (called in the server's thread; it must not block); ``allow_uid`` says whom to
    serve; ``mode``: permissions of the socket file. The owner of the socket's folder, and root, are trusted.
    """

    def __init__(
        self,
        path: str,
        put: Put,
        *,
        allow_uid: Callable[[int], bool],
        mode: int,
        max_line: int = wire.MAX_LINE,
    ) -> None:
        self._path = path
        self._mode = mode
        self._inode = -1
        self._loop: asyncio.AbstractEventLoop
        self._thread = threading.Thread(target=self._run, name="nqsd-rpc", daemon=True)
        self._listening = threading.Event()
        self._closing = False
        self.put = put
        self.allow_uid = allow_uid
        self.max_line = max_line
        self.callers = Callers(os.stat(os.path.dirname(os.path.abspath(path))).st_uid)
        self.connections: set[Connection] = set()

    def start(self) -> None:
        """Binds the socket (a left-over one is replaced) and serves. Raises OSError when it cannot."""
        self._socket = self._bind()
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        self._listening.wait()

    def reply(self, handle: Handle, data: bytes) -> None:
        """Sends one answer (a whole line, see `messages`). From any thread."""
        self.reply_many([(handle, data)])

    def reply_many(self, replies: Replies) -> None:
        """Sends the answers of a whole group with one call into the server's thread. From any thread."""
        try:
            if not self._closing:
                self._loop.call_soon_threadsafe(self._deliver, replies)
        except RuntimeError:  # closed at this very moment: nobody is there to read
            pass

    def reply_alike(self, handles: Sequence[Handle], data: bytes) -> None:
        """Sends one answer to all who asked the same: ``data`` is the first one's, the others get it under
        their own numbers. From any thread."""
        try:
            if not self._closing:
                self._loop.call_soon_threadsafe(self._deliver_alike, handles, data)
        except RuntimeError:
            pass

    def close(self) -> None:
        """Takes no more clients, sends the answers handed over so far, hangs up and ends the thread."""
        if self._closing:
            return
        self._closing = True
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop)
            self._thread.join(timeout=10)
        self._unlink()

    def _bind(self) -> socket.socket:
        """A listening socket, renamed into place once its permissions are right: a client sees the old one
        or the new one, never none."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        fresh = f"{self._path}.{os.getpid()}"
        try:
            name, folder = with_short_path(fresh)
            try:
                listener.bind(name)
            finally:
                if folder >= 0:
                    os.close(folder)
            os.chmod(fresh, self._mode)
            listener.listen(_BACKLOG)
            os.rename(fresh, self._path)
        except OSError:
            listener.close()
            with contextlib.suppress(OSError):
                os.unlink(fresh)
            raise
        self._inode = os.stat(self._path).st_ino
        return listener

    def _unlink(self) -> None:
        """Removes the socket file unless another daemon has put its own there."""
        try:
            if os.stat(self._path).st_ino == self._inode:
                os.unlink(self._path)
        except OSError:
            pass

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        made = self._loop.create_unix_server(lambda: Connection(self), sock=self._socket, backlog=_BACKLOG)
        self._server = self._loop.run_until_complete(made)
        self._listening.set()
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _deliver(self, replies: Replies) -> None:
        by_connection: dict[Connection, list[bytes]] = {}
        for handle, data in replies:
            by_connection.setdefault(handle._connection, []).append(data)
        for connection, answers in by_connection.items():
            connection.answer(answers)

    def _deliver_alike(self, handles: Sequence[Handle], data: bytes) -> None:
        rest = memoryview(data)[data.index(b",") :]
        for handle in handles:
            handle._connection.answer_alike(b'{"id":%d' % handle.id, rest)

    def _stop(self) -> None:
        self._server.close()
        for connection in tuple(self.connections):
            connection.finish()
        self._wait_for_hangups(tries=100)

    def _wait_for_hangups(self, tries: int) -> None:
        """Ends the loop when every client has its answers; after two seconds the rest is cut off."""
        if self.connections and tries:
            self._loop.call_later(0.02, self._wait_for_hangups, tries - 1)
            return
        for connection in tuple(self.connections):
            connection.cut_off()
        self._loop.call_soon(self._loop.stop)
