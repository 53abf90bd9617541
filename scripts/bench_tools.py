"""Shared by the measurements: a daemon in a temporary home, clocks around processes, floors."""

import json
import os
import pwd
import select
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

apply = import_module(f"nqspy.{'engine' if find_spec('nqspy.engine.lifecycle') else 'model'}.lifecycle").apply
"""The measured checkout's `lifecycle.apply`; the checkout may be older."""

BIN = Path(sys.executable).parent
FLOOR = [sys.executable, "-I", "-S", "-c", "import socket, json"]
BARE = [sys.executable, "-I", "-S", "-c", "pass"]
MANY = 100_000


@dataclass
class Figure:
    """A row: name of the measurement, value, its floor with a name, their ratio (value/floor), and the goal
    in words."""

    name: str
    value: float
    unit: str
    floor: float | None
    floor_name: str
    ratio: float | None
    goal: str
    met: bool | None
    note: str = ""


def figure(name: str, value: float, unit: str, floor: float | None, floor_name: str, goal: str,
           met: bool | None, note: str = "") -> Figure:  # fmt: skip
    """Return a row with its ratio."""
    return Figure(name, value, unit, floor, floor_name, value / floor if floor else None, goal, met, note)


# ---------------------------------------------------------------- tools


def spawn(words: list[str], env: dict[str, str]) -> float:
    """Return the ms that a whole process takes, from spawn to its end; its output is dropped."""
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1)]
    began = time.perf_counter()
    pid = os.posix_spawn(words[0], words, env, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    took = (time.perf_counter() - began) * 1000
    os.close(null)
    if status:
        raise SystemExit(f"{' '.join(words)} ended {status}")
    return took


def paired(one: list[str], other: list[str], env: dict[str, str], runs: int) -> tuple[float, float]:
    """Return the median ms of two commands, each run ``runs`` times, in turn."""
    pairs = [(spawn(one, env), spawn(other, env)) for _ in range(runs + 2)][2:]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


class Site:
    """A daemon in a temporary home on 2 PEs, with the shipped site of that name. ``profile``: the
    ``.bash_profile`` of the user that measures, which this daemon alone sees (root only)."""

    def __init__(self, name: str = "plain", profile: str | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="nqspy-bench-"))
        self.home = self.folder / "home"
        self.env = os.environ | {"NQSPY_HOME": str(self.home)}
        self.script = self.folder / "true.sh"
        self.script.write_text("#!/bin/bash\n/bin/true\n")
        self.profile = profile
        self.run("nqsd", "init", "--site", name)
        (self.home / "queues.d" / "90-bench.qmgr").write_text("set machine pes=2\n")
        self.start()

    def start(self) -> None:
        """Start the daemon."""
        if self.profile is None:
            self.run("nqsd", "start")
            return
        login, entry = self.folder / "login", pwd.getpwuid(os.geteuid())
        login.mkdir(exist_ok=True)
        (login / ".bash_profile").write_text(self.profile)
        people = self.folder / "passwd"
        mine = f"{entry.pw_name}:x:{entry.pw_uid}:{entry.pw_gid}::{login}:/bin/bash\n"
        people.write_text(mine + Path("/etc/passwd").read_text())
        apart = 'mount --bind "$1" /etc/passwd && exec "$2" start'
        words = ["unshare", "-m", "--propagation", "private", "sh", "-c", apart, "sh"]
        subprocess.run([*words, people, BIN / "nqsd"], env=self.env, capture_output=True, check=True)

    def set(self, command: str) -> None:
        """Run a qmgr command that changes a setting."""
        self.run("qmgr", "-c", command)

    def run(self, *words: str) -> str:
        """Return the output of one of our commands."""
        done = subprocess.run(
            [str(BIN / words[0]), *words[1:]],
            env=self.env,
            capture_output=True,
            text=True,
            cwd=self.folder,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)} ended {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def pid(self) -> int:
        """Return the pid of the daemon."""
        return int((self.home / "nqsd.pid").read_text().split()[0])

    def status(self) -> dict[str, object]:
        """Return the answer to `status`."""
        return Line(self.home).call({"cmd": "status"})["result"]

    def close(self) -> None:
        """Stop the daemon and remove its files."""
        subprocess.run(
            [str(BIN / "nqsd"), "stop", "--requeue"], env=self.env, capture_output=True, check=False
        )
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def site(profile: str | None = None) -> Iterator[Site]:
    """Yield a daemon for a measurement; ``profile`` as in `Site`."""
    made = Site(profile=profile)
    try:
        yield made
    finally:
        made.close()


class Line:
    """A connection that sends a message and waits for the answer."""

    def __init__(self, home: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(home / "nqsd.sock"))
        self.left = b""

    def call(self, message: dict[str, object]) -> dict[str, object]:
        """Return the decoded answer to a message. Ends the run when it is a refusal."""
        self.socket.sendall(json.dumps({"v": 1, "id": 1, **message}).encode() + b"\n")
        while b"\n" not in self.left:
            more = self.socket.recv(1 << 20)
            if not more:
                raise SystemExit("the daemon hung up")
            self.left += more
        line, _, self.left = self.left.partition(b"\n")
        answer = json.loads(line)
        if not answer.get("ok"):
            raise SystemExit(f"refused: {answer}")
        return answer


def processes(pid: int) -> Iterator[int]:
    """Yield a process and all that descend from it."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from processes(int(child))


def memory_of(pid: int) -> int:
    """Return the bytes of a daemon with all its processes (decider, spawner, shepherds); shared memory counts
    once (PSS)."""
    lines = (Path(f"/proc/{each}/smaps_rollup").read_text() for each in processes(pid))
    return 1024 * sum(int(text.partition("\nPss:")[2].split()[0]) for text in lines)


def item(
    script: str, folder: Path, queue: str = "batch", memory: int | None = None, shell: str | None = "/bin/sh"
) -> dict[str, object]:
    """Return a submission as qsub sends it; ``memory`` in bytes; ``shell`` None: the script names its own."""
    spec: dict[str, object] = {
        "owner": "", "uid": 0, "name": "true", "queue": queue, "script": "", "environment": "",
        "workdir": str(folder), "shell": shell,
    }  # fmt: skip
    if memory is not None:
        spec["ask"] = {"memory": memory}
    return {
        "spec": spec,
        "script": script,
        "environment": "\0".join(f"{k}={v}" for k, v in os.environ.items()),
    }


def fill(home: Path, folder: Path, count: int, queue: str = "batch", memory: int | None = None) -> None:
    """Submit ``count`` requests that all run one script, a thousand in one message."""
    line, each = Line(home), item("/bin/true\n", folder, queue, memory)
    for start in range(0, count, 1000):
        line.call(
            {"cmd": "submit", "key": f"fill{start}-{count}", "items": [each] * min(1000, count - start)}
        )


def wait_for(ready: Callable[[], bool], seconds: float = 300, pause: float = 0.02) -> None:
    """Wait until a condition is true. Ends the run when it does not become true in time."""
    limit = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > limit:
            raise SystemExit("what was waited for did not come")
        select.select([], [], [], pause)


def fdatasync_rate(folder: Path) -> float:
    """Return the number of times a second that a disk makes 4 kB durable, in ``folder``."""
    fd = os.open(folder / "sync", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"x" * (1 << 20), 0)
    os.fsync(fd)
    began, count = time.perf_counter(), 300
    for n in range(count):
        os.pwrite(fd, b"y" * 4096, n % 200 * 4096)
        os.fdatasync(fd)
    os.close(fd)
    return count / (time.perf_counter() - began)
