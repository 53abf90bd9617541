"""The user commands against a real server on a real socket, whose answers the test chooses."""

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon import live as stage
from rpc.conftest import Counter

from nqspy.cli import fast
from nqspy.rpc import messages
from nqspy.rpc.server import Asked

make_live, live, office, shared = stage.make_live, stage.live, stage.office, stage.shared
open_folder = stage.open_folder

NOON = 1772449200000  # 2026-03-02 12:00 +01:00


class Desk(Counter):
    """Answers every command in text form and stores the messages; ``answers`` overrides by command."""

    def __init__(self, home: Path) -> None:
        super().__init__(home / "nqsd.sock", self._taken)
        self.home, self.count = home, 0
        self.messages: list[dict[str, Any]] = []
        self.answers: dict[str, Callable[[int, dict[str, Any]], bytes]] = {}

    def start(self) -> "Desk":
        (self.home / "nqsd.pid").write_text("1\n")
        super().start()
        return self

    def _taken(self, asked: Asked) -> bytes:
        self.messages.append(asked.message)
        return self.answers.get(asked.message["cmd"], self._usual)(asked.handle.id, asked.message)

    def _usual(self, id: int, message: dict[str, Any]) -> bytes:
        if message["cmd"] == "now":
            return messages.result_answer(id, {"now": NOON, "zone": "Europe/Paris"})
        if message["cmd"] == "submit":
            first = self.count + 1
            self.count += len(message["items"])
            return messages.text_answer(id, 0, "".join(f"{n}.ymp\n" for n in range(first, self.count + 1)))
        return messages.text_answer(id, 0, f"{message['cmd']} done\n")

    @property
    def submitted(self) -> dict[str, Any]:
        """Return the only item of the last submission."""
        (item,) = self.messages[-1]["items"]
        return item


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """Yield a running server in a home of its own; the current folder is the test's and has ``job.sh``."""
    (tmp_path / "job.sh").write_text("true\n")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("NQSPY_HOME", str(home))
    monkeypatch.delenv("NQSPY_DIALECT", raising=False)
    monkeypatch.delenv("PWD", raising=False)
    monkeypatch.chdir(tmp_path)
    one = Desk(home).start()
    yield one
    one.close()


class Screen:
    """Result of a command: exit status, stdout, stderr."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def run(self, line: str | list[str]) -> tuple[int, str, str]:
        """Run a command line in this process, without the exit of ``main``."""
        command, *words = line.split() if isinstance(line, str) else line
        module, function = ("nqspy.cli.submit", "body") if command == "submit" else stage.entry(command)
        found = getattr(importlib.import_module(module), function)
        body = found.body if isinstance(found, fast.Program) else found
        self._capfd.readouterr()
        status = fast.run(command, body, words)
        out, err = self._capfd.readouterr()
        return status, out, err


@pytest.fixture
def screen(capfd: pytest.CaptureFixture[str]) -> Screen:
    """Return an object that runs command lines."""
    return Screen(capfd)
