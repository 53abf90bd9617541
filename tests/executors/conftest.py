"""The real executor in a home of its own, and a bench that submits to it and waits for its observations."""

import hashlib
import os
import pwd
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from nqspy.executors import proc, records
from nqspy.executors.cgroups import Cgroups
from nqspy.executors.local import LocalExecutor
from nqspy.executors.proc import Identifier
from nqspy.model.actions import Action, Kill, Start
from nqspy.model.ids import Instant
from nqspy.model.observations import Observation, ObservedEnded, ObservedLost, ObservedRunning
from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, Ending, Request, Spec, State
from nqspy.model.site import Site

PATIENCE = 120.0
S = TypeVar("S", bound=Observation)
IN_CGROUP = Ask(others=(("per_process/corefile_limit", 0),))
"""A limit for each process must be set between fork and exec: such a request is forked into a cgroup, if
there is one; a plain request is spawned."""
BOTH = pytest.mark.parametrize("ask", [Ask(), IN_CGROUP], ids=["spawned", "forked"])
AS_ROOT = [
    pytest.mark.privileged,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root may run requests as another user"),
]
DAEMON = """
import importlib.util, resource, sys
from pathlib import Path
{first}
spec = importlib.util.spec_from_file_location("conftest", sys.argv[1])
conftest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(conftest)
bench = conftest.Bench(Path(sys.argv[2]))
bench.executor.start()
{then}
"""


def begin_daemon(home: Path, *scripts: str, then: str, first: str = "") -> "subprocess.Popen[str]":
    """Begin a process with a bench of its own, in which ``then`` is run."""
    words = [sys.executable, "-c", DAEMON.format(first=first, then=then), __file__, str(home), *scripts]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=os.getcwd())


WAIT = "while [ ! -e go ]; do sleep 0.02; done\n"


def state(pid: int) -> str:
    """Return the kernel's state of a process; "" if it has ended."""
    seen = proc.stat(pid)
    return "" if seen is None else seen.state


def gone(pid: int) -> bool:
    return state(pid) in ("", "Z", "X")


def cgroups_here(kind: str = "") -> Cgroups:
    """Return cgroups of that kind (empty: the best), as far as they can be used here."""
    found = Cgroups(f"test-{os.getpid()}", kind)
    found.remove()
    return found


def enforced(controller: str, kind: str = "") -> bool:
    """True if a controller can be used here, with cgroups of that kind."""
    found = cgroups_here(kind)
    return controller in found.controls.found and kind in ("", found.kind)


def needs(controller: str, kind: str = "") -> pytest.MarkDecorator:
    reason = f"needs a {controller} cgroup that may be written: root, as a rule"
    return pytest.mark.skipif(not enforced(controller, kind), reason=reason)


def wait_until(condition: Callable[[], Any], what: str) -> Any:
    """Return the first true value of a condition outside our processes (a file, a pid)."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.005)
    pytest.fail(f"in vain: {what}")


class Bench:
    """A home with an executor and one queue ``batch``."""

    def __init__(self, home: Path, speed: float = 1.0, cgroup: str = "", **options: Any) -> None:
        self.home = home
        self.work = home / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.observations: queue.Queue[Observation] = queue.Queue()
        self.seen: list[Observation] = []
        self.blobs: dict[str, bytes] = {}
        blob = self.blobs.__getitem__
        self.executor = LocalExecutor(
            str(home), self.observations.put, blob, speed=speed, cgroup=cgroup, quiet=0.01, **options
        )
        self.site = Site(host="ymp", found=self.executor.found())
        self.queue = self.site.settings.queues["batch"] = Queue("batch", workdir="submit")
        self.site.settings.server.grace = 300
        self.seq = 0
        self.left = False

    def keep(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return digest

    def request(self, script: str, *, env: bytes = b"", **spec: Any) -> Request:
        self.seq += 1
        me = pwd.getpwuid(os.geteuid())
        defaults: dict[str, Any] = {
            "owner": me.pw_name, "uid": me.pw_uid, "gid": me.pw_gid, "name": "job", "queue": "batch",
            "workdir": str(self.work), "shell": "/bin/sh",
        }  # fmt: skip
        fields = defaults | spec | {"script": self.keep(script.encode()), "environment": self.keep(env)}
        return Request(self.seq, Spec(**fields), "batch", State.RUNNING, Instant(0), Instant(0), attempts=1)

    def start(self, script: str, *, pes: tuple[int, ...] = (0,), **spec: Any) -> Request:
        request = self.request(script, **spec)
        self.do(Start(request.seq, 1, pes), request)
        return request

    def again(self, request: Request) -> Request:
        """Start a request's second attempt."""
        self.do(Start(request.seq, 2, (0,)), request)
        return request

    def do(self, action: Action, request: Request | None = None) -> None:
        self.executor.do(action, request, self.site, Instant(0))

    def expect(self, kind: type[S], request: Request) -> S:
        """Return the next observation of that kind about a request."""
        found = self.first(request, kind)
        assert isinstance(found, kind)
        return found

    def first(self, request: Request, *kinds: type[Observation]) -> Observation:
        """Return the next observation of one of these kinds about a request."""
        end = time.monotonic() + PATIENCE
        while True:
            for observation in self.seen:
                if isinstance(observation, kinds) and observation.seq == request.seq:
                    self.seen.remove(observation)
                    return observation
            try:
                self.seen.append(self.observations.get(timeout=max(0.01, end - time.monotonic())))
            except queue.Empty:
                names = " or ".join(kind.__name__ for kind in kinds)
                pytest.fail(f"no {names} of {request.seq}; seen: {self.seen}{self.trouble()}")

    def ending(self, request: Request) -> Ending:
        return self.expect(ObservedEnded, request).ending

    def run(self, script: str, **spec: Any) -> Ending:
        """Start a request and wait for its end; return that observation."""
        return self.ending(self.start(script, **spec))

    def running(self, script: str, **spec: Any) -> Request:
        """Start a request and wait until it runs."""
        request = self.start(script, **spec)
        self.expect(ObservedRunning, request)
        return request

    def kill(self, request: Request, grace: int = 1000, reason: str = "deleted", number: int = 15) -> Ending:
        """End a request; return the observation of its end."""
        self.do(Kill(request.seq, 1, reason, grace, number))
        return self.ending(request)

    def text(self, name: str) -> str:
        """Return the text of a file in the working folder, once it has any."""
        path = self.work / name
        return str(wait_until(lambda: path.exists() and path.read_text(), f"something in {name}"))

    def number(self, name: str) -> int:
        return int(self.text(name))

    def spooled(self, request: Request, name: str = "stdout") -> Path:
        """Return the path of a request's stream in the spool, once it exists."""
        path = self.folder(request) / name
        wait_until(path.exists, f"{name} in the spool")
        return path

    def record(self, request: Request) -> dict[str, Any]:
        """Return the record of a request's processes, once it exists."""
        found = wait_until(lambda: records.read(str(self.folder(request)), "pid"), "its record")
        assert isinstance(found, dict)
        return found

    def scan(self, attempts: int = 1, first: int = 1) -> list[Observation]:
        """Return the observations of a scan for the first ``attempts`` attempts."""
        return list(self.executor.scan(dict.fromkeys(range(first, first + attempts), 1)))

    def go(self) -> None:
        """Let requests go on that wait in `WAIT`."""
        (self.work / "go").touch()

    @property
    def spawner(self) -> int:
        process = self.executor._watch._link._process
        assert process is not None
        return process.pid

    def shepherd(self, request: Request) -> int:
        return proc.Identity.parse(records.holder(str(self.folder(request))) or "").pid

    @property
    def identifier(self) -> Identifier:
        return self.executor._watch.identifier

    def lose(self, request: Request) -> ObservedLost:
        """Kill the request's shepherd; return the observed loss."""
        os.kill(self.shepherd(request), signal.SIGKILL)
        return self.expect(ObservedLost, request)

    def leave(self) -> None:
        """Close the executor, as a stopped daemon does; its requests go on."""
        if not self.left:
            self.left = True
            self.executor.close()

    until = staticmethod(wait_until)

    def trouble(self) -> str:
        log = self.home / "spool" / "starter.log"
        text = log.read_text() if log.exists() else ""
        return f"\n{text}" if text else ""

    def folder(self, request: Request, attempt: int = 1) -> Path:
        return self.home / "spool" / f"{request.seq}.{attempt}"


class User:
    """A real user of this machine, whose entries in the user database come and go; a member of group
    daemon."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.come()
        self.entry = pwd.getpwnam(name)
        self.fields = {"owner": name, "uid": self.entry.pw_uid, "gid": self.entry.pw_gid}

    def come(self, *options: str) -> None:
        make = ["useradd", "-M", "-d", "/", "-s", "/bin/sh", "-U", "-G", "daemon", *options, self.name]
        subprocess.run(make, check=True)

    def go(self) -> None:
        subprocess.run(["userdel", "-f", self.name], check=False, capture_output=True)


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(**options: Any) -> Bench:
        bench = Bench(**{"home": tmp_path, **options})
        bench.executor.start()
        made.append(bench)
        return bench

    yield make
    for bench in made:
        bench.leave()
        log = bench.trouble()
        assert not log, log


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()
