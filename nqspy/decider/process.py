"""A worker process, forked in the engine's thread; the pipes to it never block the engine."""

import contextlib
import errno
import gc
import logging
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NoReturn

from msgspec import Struct

from nqspy.decider import messages, sandbox
from nqspy.decider.heartbeat import Heartbeat
from nqspy.decider.orders import Answer
from nqspy.decider.sandbox import Sandbox

LOG = logging.getLogger("nqspy")

PRINTED = 30
"""Lines a minute that the log accepts of what exits print."""


class WorkerEnded(Struct, frozen=True):
    """Message that the worker has ended; ``how``: in words."""

    how: str


class WorkerPipes:
    """The worker's side of the pipes, to receive orders and send answers; ``heartbeat``: shared page."""

    def __init__(self, orders: int, answers: int, heartbeat: Heartbeat) -> None:
        self._orders, self._answers = orders, answers
        self.heartbeat = heartbeat

    def receive(self) -> messages.Order:
        """Wait for the next order and return it. Ends the process when the daemon has ended."""
        return messages.order_of(self._read(int.from_bytes(self._read(4), "big")))

    def _read(self, count: int) -> bytes:
        parts = []
        while count:
            part = os.read(self._orders, min(count, 1 << 20))
            if not part:
                os._exit(0)
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def answer(self, answer: messages.WorkerMessage) -> None:
        """Send an answer to the daemon."""
        body = memoryview(messages.encode(answer))
        while body:
            body = body[os.write(self._answers, body) :]


class WorkerProcess:
    """The daemon's side of a worker. `ask` returns a future for the answer to an order; all other messages go
    to ``hear(process, message)``, in a thread of their own, at the end `WorkerEnded`.

    ``loaded``: future of its first `ExitsLoaded`, None if it ended before; ``why``: reason for which it is
    killed, or empty; ``how``: how it ended, in words; ``dead``: True once it has ended."""

    def __init__(
        self,
        name: str,
        work: Callable[[WorkerPipes], None],
        box: Sandbox,
        hear: Callable[["WorkerProcess", Any], None],
    ) -> None:
        self.name, self.heartbeat, self.began = name, Heartbeat(), time.monotonic()
        self.why = self.how = ""
        self.dead = False
        self.loaded: Future[messages.ExitsLoaded | None] = Future()
        self._asked: dict[int, Answer] = {}
        self._hear = hear
        self._sent = self._heard = 0
        self._lock = threading.Lock()
        self._backlog = bytearray()
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        self._printed, printed = os.pipe()
        parent = os.getpid()
        try:
            self.pid = os.fork()
        except OSError:
            for fd in (orders, answers, printed, self._orders, self._answers, self._printed):
                os.close(fd)
            raise
        if self.pid == 0:
            _live(work, box, WorkerPipes(orders, answers, self.heartbeat), (orders, answers), printed, parent)
        for fd in (orders, answers, printed):
            os.close(fd)
        for fd in (self._orders, self._answers, self._printed):
            os.set_blocking(fd, False)
        self._pidfd = self._wake = -1
        try:
            self._pidfd = os.pidfd_open(self.pid)
            self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        except (OSError, RuntimeError) as error:  # no descriptor or no thread is free
            self._give_up()
            raise OSError(errno.EAGAIN, f"it cannot be listened to: {error}") from error

    def _give_up(self) -> None:
        """End a worker with pipes that cannot be read, and release all of its resources."""
        self.dead = True
        os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        for fd in (self._orders, self._answers, self._printed, self._pidfd, self._wake):
            if fd >= 0:
                os.close(fd)

    # ------------------------------------------------------------ out

    def ask(self, order: messages.Order) -> Answer:
        """Send an order; return its future answer, which is None if the worker ends first."""
        answer: Answer = Future()
        with self._lock:
            if self.dead:
                answer.set_result(None)
            else:
                self._asked[order.id] = answer
        self.send(order)
        return answer

    def send(self, order: messages.Order) -> None:
        """Queue an order for sending; never block. Kill a worker that leaves over `LARGEST` bytes unread."""
        frame = messages.encode(order)
        with self._lock:
            if self.dead:
                return
            self._sent += 1
            if not self._backlog:
                frame = frame[self._write(frame) :]
            self._backlog += frame
            late = len(self._backlog) > messages.LARGEST
            if frame:
                os.eventfd_write(self._wake, 1)
        if late:
            self.kill("it does not read what it is told")

    def _write(self, data: bytes | bytearray) -> int:
        try:
            return os.write(self._orders, data)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            return len(data)

    def kill(self, why: str) -> None:
        """Kill the worker and all processes that it has begun; ``why`` is the reason in words."""
        with self._lock:
            if self.dead:
                return
            self.why = self.why or why
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    # ------------------------------------------------------------ in, in a thread of its own

    def _serve(self) -> None:
        poll = select.poll()
        for fd in (self._answers, self._printed, self._pidfd, self._wake):
            poll.register(fd, select.POLLIN)
        heard, lines = _Frames(), _Lines(self.name)
        ended = False
        while not ended:
            for fd, _ in poll.poll():
                if fd == self._wake:
                    os.eventfd_read(self._wake)
                    poll.register(self._orders, select.POLLOUT)
                elif fd == self._orders:
                    with self._lock:
                        del self._backlog[: self._write(self._backlog)]
                        if not self._backlog:
                            poll.unregister(self._orders)
                elif fd == self._pidfd:
                    ended = True
                elif not self._drain(fd, heard if fd == self._answers else lines):
                    poll.unregister(fd)
        self._drain(self._answers, heard)
        self._drain(self._printed, lines)
        self._end()

    def _drain(self, fd: int, into: "_Frames | _Lines") -> bool:
        """Read all bytes that are there from a pipe, and hand on the messages that ``into`` finds. Return
        False if the pipe is closed, or after a bad message, for which the worker is killed."""
        while True:
            try:
                data = os.read(fd, 1 << 16)
            except BlockingIOError:
                return True
            if not data:
                return False
            try:
                for message in into.add(data):
                    self._heard += 1
                    if self._heard > self._sent + 1:
                        raise messages.BadWorkerMessage("it answers a question that was not asked")
                    if (answer := self._asked.pop(message.id, None)) is not None:
                        answer.set_result(message)
                        continue
                    if isinstance(message, messages.ExitsLoaded) and not self.loaded.done():
                        self.loaded.set_result(message)
                    self._hear(self, message)
            except messages.BadWorkerMessage as error:
                self.kill(str(error))
                return False

    def _end(self) -> None:
        how = "it has ended"
        with self._lock:
            self.dead = True  # while its number cannot be another process's
            with contextlib.suppress(ChildProcessError):
                code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
                how = f"it ended with status {code}"
                if code < 0:
                    name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
                    how = f"it was ended by {name}"
            for fd in (self._orders, self._answers, self._printed, self._wake, self._pidfd):
                os.close(fd)
        self.how = self.why or how
        if not self.loaded.done():
            self.loaded.set_result(None)
        for answer in self._asked.values():
            answer.set_result(None)
        self._hear(self, WorkerEnded(self.how))


class FromWorker(Struct, frozen=True):
    """Message ``what`` of a worker, as an input for the daemon's inbox; ``process`` None: no answer to the
    order ``id`` will come."""

    process: WorkerProcess | None
    what: Any
    id: int = 0


class _Frames:
    """Splits the bytes from a worker into messages."""

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, data: bytes) -> list[messages.WorkerMessage]:
        """Add bytes, and return the messages that are complete now. Raises BadWorkerMessage."""
        self._data += data
        found = []
        while len(self._data) >= 4:
            length = int.from_bytes(self._data[:4], "big")
            if length > messages.LARGEST_ANSWER:
                raise messages.BadWorkerMessage("its answer is larger than any answer")
            if len(self._data) < 4 + length:
                break
            body = bytes(self._data[4 : 4 + length])
            del self._data[: 4 + length]
            found.append(messages.message_of(body))
        return found


class _Lines:
    """Splits what the worker prints into lines for the log, at most `PRINTED` a minute."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._partial = b""
        self._minute = 0.0
        self._count = 0

    def add(self, data: bytes) -> list[messages.WorkerMessage]:
        """Add printed bytes, and log the lines that are complete."""
        *lines, rest = (self._partial + data).split(b"\n")
        self._partial = rest[-4096:]
        for line in lines:
            now = time.monotonic()
            if now - self._minute >= 60:
                self._minute, self._count = now, 0
            self._count += 1
            if self._count <= PRINTED:
                LOG.info("%s: %s", self._name, line[:1000].decode("utf-8", "replace"))
            elif self._count == PRINTED + 1:
                most = "%s: it prints more than %d lines a minute; the rest is not logged"
                LOG.info(most, self._name, PRINTED)
        return []


# ---------------------------------------------------------------- in the worker


def _live(
    work: Callable[[WorkerPipes], None],
    box: Sandbox,
    pipes: WorkerPipes,
    open_fds: tuple[int, int],
    printed: int,
    parent: int,
) -> NoReturn:
    """Enter the sandbox, run ``work`` and end this process; called in the child just after the fork."""
    status = 70
    try:
        # The frames below are the daemon's: they stay, so that none of its objects is finalised here.
        sandbox.enter(box, open_fds, pipes.heartbeat.address, printed, parent)
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        LOG.handlers[:] = [handler]
        work(pipes)
        status = 0
    except BaseException as error:
        if not (isinstance(error, OSError) and error.errno == errno.EPIPE):
            with contextlib.suppress(BaseException):
                traceback.print_exc(file=sys.stderr)
    finally:
        gc.disable()
        os._exit(status)
