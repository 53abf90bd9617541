"""A daemon inside the test: real store, engine and dispatcher; the test chooses the callers, as if the kernel
had named them."""

import queue
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nqspy.daemon.home import Home, make
from nqspy.daemon.main import Daemon
from nqspy.daemon.starting import StartOptions
from nqspy.model.people import Caller
from nqspy.rpc.server import Asked, Handle

PEOPLE = {
    "root": Caller("root", 0, 0, ("root",), True),
    "home's owner": Caller("oskar", 1000, 1000, ("users",), True),
    "manager": Caller("max", 1001, 100, ("users",)),
    "operator": Caller("olga", 1002, 100, ("users",)),
    "owner": Caller("anne", 1003, 100, ("users",)),
    "other": Caller("ben", 1004, 100, ("users",)),
    "unknown uid": Caller("60001", 60001, 60001, ("60001",)),
}
"""Callers by role."""

SITE = """\
set machine pes=1
create batch_queue batch priority=10
enable queue batch
set default batch_request queue batch
create batch_queue spare priority=1
enable queue spare
set managers = (max:m, olga:o)
define shift night when=("0 21 * * *")
set run_limit=4 batch
end
"""


class Catch(Handle):
    """A handle whose answers the test gets."""

    def __init__(self, id: int) -> None:
        self.id = id
        self.answers: queue.Queue[Any] = queue.Queue()

    closed = False
    stuck = False

    @property
    def place(self) -> object:
        return self

    def deliver(self, answers: Any) -> None:
        for each in answers:
            self.answers.put(msgspec.json.decode(each))


class Inner:
    """The daemon, and questions to it."""

    def __init__(self, folder: Path, site: str = SITE) -> None:
        home = Home(folder)
        make(home)
        (folder / "queues.d" / "10-site.qmgr").write_text(site)
        self.daemon = Daemon(home, StartOptions())
        self.daemon.start()
        self._numbers = iter(range(1, 1_000_000))

    def ask(self, by: str | Caller, cmd: str, **fields: Any) -> dict[str, Any]:
        caller = PEOPLE[by] if isinstance(by, str) else by
        handle = Catch(next(self._numbers))
        message = {"v": 1, "id": handle.id, "cmd": cmd, **fields}
        self.daemon.turn([Asked(handle, caller, message)])
        end = time.monotonic() + 120
        while time.monotonic() < end:
            try:
                found: dict[str, Any] = handle.answers.get(timeout=0.01)
                return found
            except queue.Empty:
                self.daemon.turn(self.daemon.inbox.drain(0.0))
        raise AssertionError(f"{cmd} was not answered")

    def result(self, by: str | Caller, cmd: str, **fields: Any) -> Any:
        answer = self.ask(by, cmd, **fields)
        assert answer["ok"], answer
        return answer.get("result", answer)

    def refusal(self, by: str | Caller, cmd: str, **fields: Any) -> tuple[str, str]:
        answer = self.ask(by, cmd, **fields)
        if answer["ok"] and answer.get("result", {}).get("failed"):
            [first] = answer["result"]["failed"]
            return first["code"], first["text"]
        assert not answer["ok"], answer
        if "error" in answer:
            return answer["error"]["code"], answer["error"]["text"]
        return str(answer["exit"]), answer["err"]

    def submit(self, by: str | Caller, *, count: int = 1, **spec: Any) -> list[str]:
        ids: list[str] = self.result(by, "submit", items=[item(**spec)] * count)["ids"]
        return ids

    def qmgr(self, *lines: str, by: str = "root") -> str:
        out: str = self.result(by, "qmgr", script="\n".join(lines))["out"]
        return out

    def close(self) -> None:
        self.daemon.close()


def item(*, user: str | None = None, script: str = "true\n", environment: str = "", **spec: Any) -> Any:
    """Return one request of a submission."""
    given = {
        **dict.fromkeys(("owner", "script", "environment", "queue"), ""),
        "uid": 0,
        "name": "job",
        "workdir": "/",
    }
    return {"spec": given | spec, "script": script, "environment": environment, "user": user}


@pytest.fixture(scope="module")
def inner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inner]:
    """Yield one daemon for all tests of a file."""
    made = Inner(tmp_path_factory.mktemp("inner"))
    yield made
    made.close()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Inner]:
    made = Inner(tmp_path / "home")
    yield made
    made.close()
