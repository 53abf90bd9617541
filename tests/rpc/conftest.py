"""A real server on a real socket; the tests' own inbox answers its messages."""

import contextlib
import json
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nqspy.rpc import messages
from nqspy.rpc.server import Asked, RpcServer

Answer = Callable[[Asked], bytes]


class Counter:
    """A server whose requests are answered by a thread, group by group as in the daemon."""

    def __init__(self, path: Path, answer: Answer, **options: Any) -> None:
        self.inbox: queue.SimpleQueue[Asked | None] = queue.SimpleQueue()
        self.asked: list[Asked] = []
        options.setdefault("allow_uid", lambda uid: True)
        self.path = path
        self.server = RpcServer(str(path), self.inbox.put, mode=0o600, **options)
        self._answer = answer
        self._thread = threading.Thread(target=self._engine)

    def _engine(self) -> None:
        while (first := self.inbox.get()) is not None:
            group = [first]
            with contextlib.suppress(queue.Empty):
                while (more := self.inbox.get_nowait()) is not None:
                    group.append(more)
                self.inbox.put(None)  # it ends the other loop too
            self.asked += group
            answers = [(asked.handle, self._answer(asked)) for asked in group]
            self.server.reply_many([(handle, data) for handle, data in answers if data])

    def start(self) -> None:
        self.server.start()
        self._thread.start()

    def close(self) -> None:
        self.inbox.put(None)
        self._thread.join()
        self.server.close()


class Peer:
    """A client that sends and reads bytes."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(120)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> Any:
        line = self.file.readline()
        return json.loads(line) if line else None

    def ask(self, id: int, cmd: str, **fields: Any) -> Any:
        self.send(json.dumps({"v": 1, "id": id, "cmd": cmd, **fields}).encode() + b"\n")
        return self.answer()

    def close(self) -> None:
        self.file.close()
        self.socket.close()


def echo(asked: Asked) -> bytes:
    return messages.result_answer(asked.handle.id, asked.message.get("say"))


@pytest.fixture
def counter(tmp_path: Path) -> Iterator[Callable[..., Counter]]:
    running: list[Counter] = []

    def make(answer: Answer = echo, name: str = "nqsd.sock", **options: Any) -> Counter:
        made = Counter(tmp_path / name, answer, **options)
        made.start()
        running.append(made)
        return made

    yield make
    for one in running:
        one.close()


@pytest.fixture
def peer() -> Iterator[Callable[[Counter], Peer]]:
    opened: list[Peer] = []

    def connect(server: Counter) -> Peer:
        opened.append(Peer(server.path))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Counter, Callable[[Counter], Peer]]]:
    """Yield one server for all examples of a property, and a function that connects to it."""
    made = Counter(tmp_path_factory.mktemp("fuzzed") / "nqsd.sock", echo)
    made.start()
    yield made, lambda server: Peer(server.path)
    made.close()
