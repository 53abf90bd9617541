"""Server of the daemon: one thread with an asyncio loop serves all connections. It decides nothing."""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable, Sequence

from nqspy.model.people import Caller
from nqspy.rpc import messages
from nqspy.rpc.auth import Callers
from nqspy.rpc.home import with_short_path
from nqspy.rpc.limits import DEFAULTS, Limits, person
from nqspy.rpc.peer import Asked, ConnectionTable, Handle, ServedConnection

__all__ = ["Asked", "Handle", "RpcServer"]

_BACKLOG = 1_024
_AT_ONCE = 64
"""Most clients accepted in a row before others are served."""
_IDLE = 2.0
"""Seconds after which an idle connection may be closed for a new client."""
_EVICTED = 8
"""Idle connections that are closed when no descriptor is free."""
_PAUSE = 0.2
"""Seconds in which no client is accepted after no descriptor was free."""
Replies = Sequence[tuple[Handle, bytes]]


class RpcServer(ConnectionTable):
    """Serves the socket ``path`` in a thread of its own. ``put`` gets each message in that thread and must
    not block; ``allow_uid``: True for users that are served; ``mode``: permissions of the socket;
    ``backlog``: as in `ConnectionTable`; ``report`` gets texts for managers. Root and the owner of the
    socket's folder are trusted."""

    def __init__(
        self, path: str, put: Callable[[Asked], None], *, allow_uid: Callable[[int], bool], mode: int,
        limits: Limits = DEFAULTS, backlog: Callable[[int | None], tuple[int, int]] = lambda who: (0, 0),
        report: Callable[[str], None] = lambda text: None,
    ) -> None:  # fmt: skip
        super().__init__(put, limits, backlog)
        self._path, self._mode, self._inode = path, mode, -1
        self._thread = threading.Thread(target=self._run, name="nqsd-rpc", daemon=True)
        self._listening = threading.Event()
        self._closing = self._full = self._lost = False
        self.allow_uid, self._report = allow_uid, report
        self._connecting: set[asyncio.Task[object]] = set()
        self.callers = Callers(os.stat(os.path.dirname(os.path.abspath(path))).st_uid, self.time)

    def start(self) -> None:
        """Bind the socket (replace an old one) and begin to serve. Raises OSError."""
        self._socket = self._bind()
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        self._listening.wait()

    def reply(self, handle: Handle, data: bytes) -> None:
        """Have the server's thread send one answer (a whole line, see `messages`). From any thread."""
        self.reply_many([(handle, data)])

    def reply_many(self, replies: Replies) -> None:
        """Send the answers of a whole group with one call of the server's thread. From any thread."""

        def deliver() -> None:
            by_connection: dict[object, tuple[Handle, list[bytes]]] = {}
            for handle, data in replies:
                by_connection.setdefault(handle.place, (handle, []))[1].append(data)
            for handle, answers in by_connection.values():
                handle.deliver(answers)

        self._soon(deliver)

    def reply_alike(self, handles: Sequence[Handle], data: bytes) -> None:
        """Send one answer to many handles, each with the id of its own call; ``data``: the line for one of
        them, which begins with its id. May be called from any thread."""

        def deliver() -> None:
            rest = memoryview(data)[data.index(b",") :]
            for handle in handles:
                handle._connection.answer((b'{"id":%d' % handle.id, rest), 1)

        self._soon(deliver)

    def _soon(self, work: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # just closed: no client reads
            if not self._closing:
                self._loop.call_soon_threadsafe(work)

    def close(self) -> None:
        """Accept no more clients, send the answers given so far, hang up and stop the thread."""
        if self._closing:
            return
        self._closing = True
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop)
            self._thread.join(timeout=10)
        with contextlib.suppress(OSError):  # another daemon may have put its own socket there
            if os.stat(self._path).st_ino == self._inode:
                os.unlink(self._path)

    def _bind(self) -> socket.socket:
        """Return a listening socket that was renamed into place: clients find the old one or the new one."""
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

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._socket.setblocking(False)
        self._listen()
        self._loop.call_later(self.limits.sweep, self._sweep)
        self._listening.set()
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _listen(self) -> None:
        if not self._closing:
            self._loop.add_reader(self._socket.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                client, _address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if not self._full:
                    self._report(f"no more clients are let in for now: {error.strerror or error}")
                self._full = True  # new clients wait in the kernel until a descriptor is free
                for _ in range(_EVICTED):
                    self._make_room()
                self._loop.remove_reader(self._socket.fileno())
                self._loop.call_later(_PAUSE, self._listen)
                return
            self._full = False
            self._admit(client)

    def _admit(self, client: socket.socket) -> None:
        """Ask the kernel for the peer's identity, and refuse it if it may not be served."""
        try:
            caller = self.callers.of(client)
        except OSError as error:
            _refuse(client, f"the kernel does not name the caller ({error})", "not_allowed")
            return
        if not self.allow_uid(caller.uid):
            refusal = f"this nqsd does not serve {caller.user}; it serves only the owner of its home"
            _refuse(client, refusal, "not_allowed")
        elif (busy := self.shares.refusal(caller)) and not self._make_room(caller):
            _refuse(client, busy, "busy")
        else:
            client.setblocking(False)
            self.shares.enter(caller)
            made = self._loop.connect_accepted_socket(lambda: ServedConnection(self, caller), client)
            task = self._loop.create_task(made)
            self._connecting.add(task)
            task.add_done_callback(lambda done: self._connected(done, client, caller))

    def _make_room(self, newcomer: Caller | None = None) -> bool:
        """Close the connection that is idle longest, and return True; False: none is idle. If only the share
        of the newcomer's user is used up, one of that user is closed."""
        own = newcomer is not None and not self.shares.full(newcomer)
        found = [
            (since, id(connection), connection)
            for connection in self.connections
            if (since := connection.idle_since()) is not None
            and self.time() - since > _IDLE
            and not (own and newcomer is not None and person(connection.caller) != person(newcomer))
        ]
        if not found:
            return False
        min(found)[2].finish()
        return True

    def _connected(self, task: "asyncio.Task[object]", client: socket.socket, caller: Caller) -> None:
        self._connecting.discard(task)
        if task.cancelled() or task.exception() is not None:
            self.shares.enter(caller, -1)
            client.close()

    def _sweep(self) -> None:
        now = self.time()
        for connection in tuple(self.connections):
            connection.check(now)
        if not self._closing and not os.path.lexists(self._path):
            self._bind_again()
        self._loop.call_later(self.limits.sweep, self._sweep)

    def _bind_again(self) -> None:
        """Make the socket again for new clients, if it was removed. Connected clients notice nothing."""
        try:
            fresh = self._bind()
        except OSError as error:
            if not self._lost:
                self._report(f"the socket was removed and cannot be made again: {error.strerror or error}")
            self._lost = True
            return
        self._report("the socket was removed; it is there again")
        self._lost = False
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        self._socket = fresh
        fresh.setblocking(False)
        self._listen()

    def _stop(self) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        for connection in tuple(self.connections):
            connection.finish()
        self._wait_for_hangups(tries=100)

    def _wait_for_hangups(self, tries: int) -> None:
        """Stop the loop when every client has its answers; after two seconds disconnect the others."""
        if self.connections and tries:
            self._loop.call_later(0.02, self._wait_for_hangups, tries - 1)
            return
        for connection in tuple(self.connections):
            connection.cut_off()
        self._loop.call_soon(self._loop.stop)


def _refuse(client: socket.socket, text: str, code: str) -> None:
    """Send one line as far as the client's buffer has room, and close."""
    with client, contextlib.suppress(OSError):
        client.setblocking(False)
        client.send(messages.error_answer(None, text, code))
