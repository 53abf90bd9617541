"""A real daemon in a temporary home; commands run as processes of their own.

`Live` is one home. The fixture ``live`` makes a new one, and leaves no process behind, even if a daemon was
killed and its shepherds went on."""

import contextlib
import functools
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import pytest
import typer
from daemon import nursery

from nqspy.daemon import process
from nqspy.daemon.command import app
from nqspy.daemon.home import Home, running_pid
from nqspy.executors import proc
from nqspy.model.errors import NqspyError
from nqspy.rpc.client import Client
from nqspy.rpc.home import connect

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 150.0
"""Seconds until a condition counts as missed: many, for machines on which much else is going on."""
ONE_QUEUE = """\
set machine pes=2
create batch_queue batch priority=10 workdir=submit
enable queue batch
start queue batch
set default batch_request queue batch
"""
T = TypeVar("T")
nqsd = typer.main.get_command(app)


def until(condition: Callable[[], T], what: str, patience: float = PATIENCE) -> T:
    """Return the first true value of a condition; fail with ``what`` when it stays away. What takes long is
    looked at seldom: each look may be a question to a daemon that has work."""
    begin = time.monotonic()
    while (waited := time.monotonic() - begin) < patience:
        if value := condition():
            return value
        time.sleep(0.01)
        if waited > 0.5:
            time.sleep(0.04)
    pytest.fail(f"in vain: {what}")


_SCRIPTS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]


def entry(name: str) -> tuple[str, str]:
    """Return module and function of a command's entry point."""
    module, _, function = _SCRIPTS[name].partition(":")
    return module, function


def program(name: str) -> str:
    module, function = entry(name)
    return f"from {module} import {function}; {function}()"


def command(name: str) -> list[str]:
    """Return the words that call a command: the installed one, else from the sources."""
    installed = Path(sys.executable).parent / name
    if installed.exists():
        return [str(installed)]
    if name == "nqsd":
        return [sys.executable, "-m", "nqspy.daemon.front"]
    return [sys.executable, "-c", program(name)]


class Done:
    """Result of a command: ``status``, ``out``, ``err``."""

    def __init__(self, words: tuple[str, ...], run: subprocess.CompletedProcess[str]) -> None:
        self.words = words
        self.status, self.out, self.err = run.returncode, run.stdout, run.stderr

    def __repr__(self) -> str:
        return f"{' '.join(self.words)}: status {self.status}\n{self.out}{self.err}"

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def data(self) -> Any:
        return json.loads(self.out)

    def ok(self) -> "Done":
        assert self.status == 0, self
        return self

    def refused(self, *words: str) -> "Done":
        """Assert that it failed with one line that has these words and no traceback."""
        assert self.status != 0, self
        assert len(self.err.splitlines()) == 1, self
        assert not self.out, self
        for word in words:
            assert word in self.err, self
        return self


class Live:
    """One home with its daemon. ``work``: the folder in which commands are called."""

    def __init__(self, home: Path, work: Path) -> None:
        self.home = home
        self.work = work
        self.work.mkdir(parents=True, exist_ok=True)
        mark = ("NQSPY_DIALECT", "NQSPY_HOME", "QSUB_REQID")
        self.environment = {name: value for name, value in os.environ.items() if name not in mark}
        self.environment |= {"NQSPY_HOME": str(home), "PYTHONPATH": str(ROOT), "PWD": str(work)}
        self.accepts_trouble = False
        self._client: Client | None = None
        self._former = 0, 0

    # ------------------------------------------------------------ the home and its daemon
    def site(self, text: str = ONE_QUEUE, exits: Mapping[str, str] | None = None) -> "Live":
        for folder in ("queues.d", "exits"):
            (self.home / folder).mkdir(parents=True, exist_ok=True)
        (self.home / "queues.d" / "10-site.qmgr").write_text(text)
        for name, code in (exits or {}).items():
            self.exit(name, code)
        return self

    def exit(self, name: str, code: str) -> None:
        (self.home / "exits" / f"{name}.py").write_text(code)

    def start(self, *options: str) -> "Live":
        """Start the daemon as `nqsd start` does, but forked from the nursery, which is quicker."""
        others = threading.active_count() > 1  # a fork beside threads may never come to its end
        if others or self.environment["PYTHONPATH"] != str(ROOT):  # other sources than the nursery has loaded
            self.run("nqsd", "start", *options).ok()
            return self
        spawn = functools.partial(nursery.spawn, environment=self.environment)
        with mock.patch.object(process, "_spawn", spawn):
            nqsd(["start", "--home", str(self.home), *options], standalone_mode=False)
        return self

    @property
    def pid(self) -> int:
        return int((self.home / "nqsd.pid").read_text().split()[0])

    def stop(self, *options: str) -> None:
        """Stop the daemon; without options by the library, which is quicker than a process."""
        if options:
            self.run("nqsd", "stop", *options).ok()
        else:
            pid = self.pid
            self.client.call("shutdown", mode="leave")
            proc.await_ends([pid], PATIENCE)
        self.hang_up()

    def kill(self) -> None:
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        proc.await_ends([pid], PATIENCE)
        assert not alive(pid), "the process does not end"
        self.hang_up()

    def restart(self, *options: str) -> None:
        self.stop()
        self.start(*options)

    @property
    def log(self) -> str:
        """What this daemon and the former ones have logged, since the last `again`."""
        text = ""
        for number in range(20, 0, -1):  # a start begins a new log
            plain = self.home / "log" / f"nqsd.log.{number}"
            with contextlib.suppress(FileNotFoundError):
                packed = Path(f"{plain}.gz")
                text += plain.read_text() if plain.exists() else gzip.decompress(packed.read_bytes()).decode()
        path = self.home / "log" / "nqsd.log"
        return (text + (path.read_text() if path.exists() else ""))[self._former[1] :]

    # ------------------------------------------------------------ commands
    def run(self, name: str, *words: str, stdin: str = "", **more: Any) -> Done:
        called = [*more.pop("before", ()), *command(name), *words]
        environment = self.environment | more.pop("env", {})
        run = subprocess.run(
            called, input=stdin, capture_output=True, text=True, check=False, cwd=self.work,
            env=environment, timeout=2 * PATIENCE, **more,
        )  # fmt: skip
        return Done((name, *words), run)

    def sh(self, line: str, **env: str) -> Done:
        run = subprocess.run(
            ["sh", "-c", line], capture_output=True, text=True, check=False, cwd=self.work,
            env=self.environment | env, timeout=2 * PATIENCE,
        )  # fmt: skip
        return Done((line,), run)

    def spawn(self, name: str, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*command(name), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd=self.work, env=self.environment,
        )  # fmt: skip

    def write(self, name: str, text: str) -> Path:
        path = self.work / name
        path.write_text(text)
        return path

    def qsub(self, script: str, *options: str) -> str:
        """Submit a script by the command; return the identifier, the only word on stdout."""
        done = self.run("qsub", "-s", "/bin/sh", *options, stdin=script).ok()
        assert len(done.lines) == 1, done
        return done.lines[0]

    def qmgr(self, *commands: str) -> Done:
        return self.run("qmgr", *(word for each in commands for word in ("-c", each)))

    # ------------------------------------------------------------ the client library
    @property
    def client(self) -> Client:
        if self._client is None:
            self._client = Client(self.home)
        return self._client

    def hang_up(self) -> None:
        if self._client is not None:
            self._client.close()

    def submit(self, script: str, *args: str, **options: Any) -> str:
        asked: dict[str, Any] = {"shell": "/bin/sh", "workdir": self.work, **options}
        return self.client.submit(script + "\n", *args, **asked).id

    def set(self, *commands: str) -> None:
        self.client.qmgr("\n".join(commands) + "\n", atomic=False)

    def job(self, id: str) -> dict[str, Any]:
        [found] = self.client.requests(id)
        return dict(found.data)

    def shown(self, script: str) -> Any:
        """Return what ``qmgr --json`` prints, by the library."""
        flags = {"atomic": True, "check": False, "plan": False, "json": True}
        return json.loads(self.client.call("qmgr", source="test", script=script, **flags)["out"])

    def why(self, id: str) -> dict[str, Any]:
        """Return what ``qstat --why --json`` prints, by the library."""
        [found] = json.loads(self.client.call("qstat", text="why", operands=[id], json=True))
        return dict(found)

    def waits(self, id: str, text: str) -> None:
        """Wait until a request's reason has these words: its pass may still be under way."""
        self.until(id, lambda job: text in str((job["reason"] or {}).get("text", "")), f"wait: {text}")
        assert text in self.why(id)["reason"]["text"]

    def ended(self, id: str) -> dict[str, Any]:
        """Return an ended request's object, once it has ended."""
        return dict(self.client.wait(id, PATIENCE))

    def running(self, id: str) -> dict[str, Any]:
        """Wait until it runs and that is reported; return its object."""
        return self.until(id, lambda job: job["state"] == "running" and self.events("started", id), "run")

    def until(
        self, id: str, condition: Callable[[dict[str, Any]], Any], what: str, patience: float = PATIENCE
    ) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            job = self.job(id)
            return job if condition(job) else None

        found = until(look, f"{id} should {what}", patience)
        assert found is not None
        return found

    def events(self, kind: str = "", request: str = "") -> list[Mapping[str, Any]]:
        """Return the journal's events, of that kind or request only."""
        return [
            each
            for each in self.client.events(self._former[0])
            if kind in ("", each["kind"]) and request in ("", each.get("request"))
        ]

    def text(self, name: str) -> str:
        """Return the text of a file in the working folder, once it has a whole line."""
        path = self.work / name
        return until(lambda: path.exists() and path.read_text().endswith("\n") and path.read_text(), name)

    def connect(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        connect(sock, str(self.home / "nqsd.sock"))
        return sock

    def wire(self, *lines: bytes) -> list[dict[str, Any]]:
        """Send raw lines over the socket; return an answer for each."""
        with self.connect() as sock:
            sock.settimeout(PATIENCE)
            sock.sendall(b"".join(line + b"\n" for line in lines))
            with sock.makefile("rb") as answers:
                return [json.loads(answers.readline()) for _ in lines]

    # ------------------------------------------------------------ afterwards
    def again(self, work: Path) -> "Live":
        """Give the daemon to another test, without the requests, events and log of those before."""
        self._look_for_trouble()
        (self.home / "spool" / "starter.log").write_text("")
        work.mkdir()
        self.work, self.environment["PWD"], self.accepts_trouble = work, str(work), False
        if running_pid(Home(self.home)) is None:
            self.hang_up()
            self.start()
        while left := self.client.requests():
            with contextlib.suppress(NqspyError):  # one has just ended
                self.client.delete(*left, kill=True)
        self.set("start queue batch")
        last = [each["n"] for each in self.events()][-1:]
        self._former = max(self._former[0], *last, 0), self._former[1] + len(self.log)
        return self

    def leftovers(self) -> list[int]:
        """Return the processes of this home: daemon, spawner, shepherds, jobs, commands."""
        mark = os.fsencode(f"NQSPY_HOME={self.home}")
        return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and _has(entry, mark)]

    def close(self) -> None:
        """End all processes and check the log for what must not be in it."""
        self.hang_up()
        end = time.monotonic() + PATIENCE
        while (pids := self.leftovers()) and time.monotonic() < end:
            proc.send(pids, signal.SIGKILL)
        assert not pids, f"still there: {pids}"
        (self.home / "spool" / "reserve").unlink(missing_ok=True)  # homes of many tests are kept
        self._look_for_trouble()

    def _look_for_trouble(self) -> None:
        log = self.log
        assert self.accepts_trouble or "Traceback" not in log, log
        spawner = self.home / "spool" / "starter.log"
        assert self.accepts_trouble or not spawner.exists() or not spawner.read_text(), spawner.read_text()


def _has(pid: str, mark: bytes) -> bool:
    try:
        found = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return mark in found and int(pid) != os.getpid() and alive(int(pid))
    except OSError:
        return False


def alive(pid: int) -> bool:
    """True if a process is there and has not ended (nobody may have waited for it yet)."""
    seen = proc.stat(pid)
    return seen is not None and seen.state not in "ZX"


@pytest.fixture
def make_live(tmp_path: Path) -> Iterator[Callable[..., Live]]:
    made: list[Live] = []

    def make(name: str = "home") -> Live:
        made.append(Live(tmp_path / name, tmp_path / f"{name}-work"))
        return made[-1]

    yield make
    for live in made:
        live.close()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that all users may write to, as exits without rights need one."""
    with tempfile.TemporaryDirectory(prefix="nqspy-open-") as name:
        os.chmod(name, 0o777)
        yield Path(name)


@pytest.fixture
def live(make_live: Callable[..., Live]) -> Live:
    """Return a started daemon with one queue, ``batch``, on two PEs."""
    return make_live().site().start()


def of_a_file(factory: pytest.TempPathFactory, *site: Any) -> Iterator[Live]:
    """Yield one started daemon for all tests of a file, with these settings and exits (see `Live.site`)."""
    folder = factory.mktemp("office")
    live = Live(folder / "home", folder / "work").site(*site).start()
    yield live
    live.close()


@pytest.fixture(scope="module")
def office(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Yield one started daemon for all tests of a file, which leave it as they found it; ``OFFICE``: its
    site."""
    yield from of_a_file(tmp_path_factory, getattr(request.module, "OFFICE", ONE_QUEUE))


@pytest.fixture
def shared(office: Live, tmp_path: Path) -> Live:
    """Yield the office with a folder of its own for each test, which may kill the daemon and leave
    requests."""
    return office.again(tmp_path / "work")
