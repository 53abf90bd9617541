"""Figures of nqspy, each beside a floor or peer measured in the same run: ratios hold where absolute times
do not."""

import argparse
import json
import os
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
from dataclasses import asdict, dataclass
from pathlib import Path

BIN = Path(sys.executable).parent
FLOOR = [sys.executable, "-I", "-S", "-c", "import socket, json"]
BARE = [sys.executable, "-I", "-S", "-c", "pass"]
MANY = 100_000


@dataclass
class Figure:
    """One row: what was measured, the value, its floor with a name, their ratio (value/floor), and the goal
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
    """A row with its ratio."""
    return Figure(name, value, unit, floor, floor_name, value / floor if floor else None, goal, met, note)


# ---------------------------------------------------------------- tools


def spawn(words: list[str], env: dict[str, str]) -> float:
    """Milliseconds that a whole process takes, from spawn to its end; its output goes nowhere."""
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
    """Medians of two commands run in turn."""
    pairs = [(spawn(one, env), spawn(other, env)) for _ in range(runs + 2)][2:]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


class Site:
    """A daemon in a temporary home, site *plain*, on 2 PEs."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="nqspy-bench-"))
        self.home = self.folder / "home"
        self.env = os.environ | {"NQSPY_HOME": str(self.home)}
        self.script = self.folder / "true.sh"
        self.script.write_text("/bin/true\n")
        self.run("nqsd", "init", "--site", "plain")
        with open(self.home / "queues.d" / "10-batch.qmgr", "a") as out:
            out.write("set machine pes=2\n")
        self.run("nqsd", "start")

    def run(self, *words: str) -> str:
        """Output of one of our commands."""
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
        """The daemon's process."""
        return int((self.home / "nqsd.pid").read_text().split()[0])

    def status(self) -> dict[str, object]:
        """What `status` says."""
        return Line(self.home).call({"cmd": "status"})["result"]

    def close(self) -> None:
        """Stops the daemon and clears away."""
        subprocess.run(
            [str(BIN / "nqsd"), "stop", "--requeue"], env=self.env, capture_output=True, check=False
        )
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def site() -> Iterator[Site]:
    """A daemon for the time of a measurement."""
    made = Site()
    try:
        yield made
    finally:
        made.close()


class Line:
    """One connection that asks and waits for the answer."""

    def __init__(self, home: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(home / "nqsd.sock"))
        self.left = b""

    def call(self, message: dict[str, object]) -> dict[str, object]:
        """The decoded answer. Ends the run when it is a refusal."""
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


def item(script: str, folder: Path) -> dict[str, object]:
    """A submission as qsub sends it."""
    spec = {
        "owner": "", "uid": 0, "name": "true", "queue": "batch", "script": "", "environment": "",
        "workdir": str(folder), "shell": "/bin/sh",
    }  # fmt: skip
    return {
        "spec": spec,
        "script": script,
        "environment": "\0".join(f"{k}={v}" for k, v in os.environ.items()),
    }


def fill(home: Path, folder: Path, count: int) -> None:
    """Submits many requests by lists of a thousand."""
    line, each = Line(home), item("/bin/true\n", folder)
    for start in range(0, count, 1000):
        line.call(
            {"cmd": "submit", "key": f"fill{start}-{count}", "items": [each] * min(1000, count - start)}
        )


def wait_for(ready: Callable[[], bool], seconds: float = 300, pause: float = 0.02) -> None:
    """Waits for a condition. Ends the run when it does not come true."""
    limit = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > limit:
            raise SystemExit("what was waited for did not come")
        select.select([], [], [], pause)


def fdatasync_rate(folder: Path) -> float:
    """How many times a second the disk makes 4 kB durable."""
    fd = os.open(folder / "sync", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"x" * (1 << 20), 0)
    os.fsync(fd)
    began, count = time.perf_counter(), 300
    for n in range(count):
        os.pwrite(fd, b"y" * 4096, n % 200 * 4096)
        os.fdatasync(fd)
    os.close(fd)
    return count / (time.perf_counter() - began)


# ---------------------------------------------------------------- commands


def bench_commands(runs: int) -> Iterator[Figure]:
    """qsub and qstat as whole processes."""
    with site() as here:
        here.run("qmgr", "-c", "stop queue batch")
        qsub = [str(BIN / "qsub"), "-s", "/bin/sh", str(here.script)]
        ours, floor = paired(qsub, FLOOR, here.env, runs)
        name = "python3 -I -S -c 'import socket, json'"
        yield figure("one qsub of a script", ours, "ms", floor, name, "<= 1.0 x", ours <= floor)
        have = int(here.status()["requests"])
        fill(here.home, here.folder, 1000 - have)
        ours, floor = paired([str(BIN / "qstat")], FLOOR, here.env, runs)
        yield figure("one qstat, 1,000 requests", ours, "ms", floor, name, "<= 1.5 x", ours <= 1.5 * floor)


def bench_latency(runs: int) -> Iterator[Figure]:
    """From qsub's end to the job's first instruction: the job writes into a pipe that we watch."""
    with site() as here:
        fifo = here.folder / "fifo"
        os.mkfifo(fifo)
        (here.folder / "mark.sh").write_text(f": > {fifo}\n")
        taken = [_one_latency(here, fifo) for _ in range(runs + 2)][2:]
        floor = statistics.median(spawn(BARE, here.env) for _ in range(runs))
        ours = statistics.median(taken)
        goal = "<= 10 ms or 1 x"
        yield figure("qsub's return to first instruction", ours, "ms", floor, "python3 -I -S -c pass", goal,
                     ours <= max(10, floor), "a job that begins before qsub has ended counts 0")  # fmt: skip


def _one_latency(here: Site, fifo: Path) -> float:
    read = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    poll = select.poll()
    poll.register(read, select.POLLIN | select.POLLHUP)
    words = ["-s", "/bin/sh", "-o", "/dev/null", "-e", "/dev/null", str(here.folder / "mark.sh")]
    spawn([str(BIN / "qsub"), *words], here.env)
    began = time.perf_counter()
    if not poll.poll(10_000):
        raise SystemExit("the job did not begin")
    took = (time.perf_counter() - began) * 1000
    os.close(read)
    wait_for(lambda: not here.status()["requests"])
    return took


# ---------------------------------------------------------------- throughput


def bench_submits(seconds: float) -> Iterator[Figure]:
    """Eight clients, one connection each, every submission durable when acknowledged."""
    with site() as here:
        here.run("qmgr", "-c", "stop queue batch")
        syncs = fdatasync_rate(here.folder)
        message = json.dumps(
            {"v": 1, "id": 1, "cmd": "submit", "text": "id", "items": [item("/bin/true\n", here.folder)]}
        )
        counts = [
            subprocess.Popen(_client(here, message, n, seconds), stdout=subprocess.PIPE, text=True)
            for n in range(8)
        ]
        total = sum(float(each.communicate()[0]) for each in counts)
        known = int(here.status()["requests"])
        note = f"{known} requests known afterwards"
        yield figure(
            "durable submits, 8 clients",
            total,
            "/s",
            syncs,
            "fdatasync of 4 kB",
            ">= 1500/s",
            total >= 1500,
            note,
        )


_CLIENT = """
import socket, sys, time
home, head, seconds, who = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
s = socket.socket(socket.AF_UNIX); s.connect(home + "/nqsd.sock")
head = head[:-1] + ',"key":"' + who + "-"
n, began = 0, time.perf_counter()
while time.perf_counter() - began < seconds:
    s.sendall((head + str(n) + '"}\\n').encode())
    answer = s.recv(65536)
    assert b'"ok":true' in answer, answer
    n += 1
print(n / (time.perf_counter() - began))
"""


def _client(here: Site, message: str, number: int, seconds: float) -> list[str]:
    return [
        sys.executable,
        "-I",
        "-S",
        "-c",
        _CLIENT,
        str(here.home),
        message,
        str(seconds),
        f"client{number}",
    ]


def bench_jobs(count: int) -> Iterator[Figure]:
    """Many short jobs that were submitted beforehand, a shepherd each, on 2 PEs."""
    with site() as here:
        here.run("qmgr", "-c", "stop queue batch")
        fill(here.home, here.folder, count)
        before = here.status()
        line = Line(here.home)
        here.run("qmgr", "-c", "start queue batch")
        wait_for(lambda: not line.call({"cmd": "status"})["result"]["requests"], pause=0.1)
        times = _span(here, int(before["events"]))
        rate, floor = count / times, _bare_spawns(here, count)
        met = rate >= 250 and rate >= floor / 8
        peer = "posix_spawn + wait of the same, 2 at a time"
        yield figure(f"{count} x /bin/true, 2 PEs", rate, "/s", floor, peer,
                     ">= 250/s and 1/8", met)  # fmt: skip
        after = here.status()
        spent = (int(after["commits"]) - int(before["commits"])) / count
        yield figure(
            "commits a job costs (start to end)",
            spent,
            "",
            fdatasync_rate(here.folder),
            "fdatasync/s of the disk",
            "shown",
            None,
        )


def _span(here: Site, after: int) -> float:
    """Seconds from the first start to the last end, by the journal."""
    line, first, last = Line(here.home), None, None
    while True:
        result = line.call({"cmd": "events", "after": after, "limit": 5000})["result"]
        if not result["events"]:
            break
        after = result["last"]
        for each in result["events"]:
            if each["kind"] == "starting" and first is None:
                first = each["at"]
            elif each["kind"] == "ended":
                last = each["at"]
    from datetime import datetime

    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def _bare_spawns(here: Site, count: int) -> float:
    words = ["/bin/sh", str(here.script)]
    began, running = time.perf_counter(), 0
    for _ in range(count):
        if running == 2:
            os.wait()
            running -= 1
        os.posix_spawn(words[0], words, here.env)
        running += 1
    while running:
        os.wait()
        running -= 1
    return count / (time.perf_counter() - began)


# ---------------------------------------------------------------- the daemon with many


def bench_many(count: int) -> Iterator[Figure]:
    """Memory, idle CPU and start-up with many waiting."""
    with site() as here:
        here.run("qmgr", "-c", "stop queue batch")
        empty = _rss(here.pid())
        fill(here.home, here.folder, count)
        each = (_rss(here.pid()) - empty) / count
        floor, name = empty / 1024**2, "MB of the empty daemon"
        yield figure(f"daemon's memory, {count} waiting", each / 1024, "KB a request", floor, name,
                     "<= 4 KB", each <= 4096)  # fmt: skip
        idle = _idle(here.pid(), 10.0)
        yield figure(
            "daemon's CPU while idle", idle * 100, "%", None, "", "<= 0.1 %", idle <= 0.001, "over 10 s"
        )
        here.run("nqsd", "stop")
        began = time.perf_counter()
        here.run("nqsd", "start")
        took = time.perf_counter() - began
        imports = statistics.median(
            spawn([sys.executable, "-c", "import nqspy.daemon.main"], here.env) for _ in range(3)
        )
        yield figure(
            f"start-up, {count} waiting",
            took,
            "s",
            imports / 1000,
            "importing the daemon",
            "<= 3 s",
            took <= 3,
        )


def _rss(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _cpu(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _idle(pid: int, seconds: float) -> float:
    select.select([], [], [], 2)
    before = _cpu(pid)
    select.select([], [], [], seconds)
    return (_cpu(pid) - before) / seconds


# ---------------------------------------------------------------- all


def table(figures: list[Figure]) -> str:
    """The figures as text."""
    lines = [
        f"{'figure':<38} {'value':>12} {'':<12} {'floor':>10}  {'ratio':>6}  {'goal':<17} met  what floor"
    ]
    for f in figures:
        floor = f"{f.floor:10.2f}" if f.floor is not None else " " * 10
        ratio = f"{f.ratio:6.2f}" if f.ratio is not None else " " * 6
        met = {True: "yes", False: "NO", None: "-"}[f.met]
        note = f" ({f.note})" if f.note else ""
        lines.append(
            f"{f.name:<38} {f.value:12.2f} {f.unit:<12} {floor}  {ratio}  "
            f"{f.goal:<17} {met:<4} {f.floor_name}{note}"
        )
    return "\n".join(lines)


def groups(quick: bool) -> dict[str, Callable[[], Iterator[Figure]]]:
    """What can be measured, by name."""
    from bench_passes import bench_passes

    return {
        "commands": lambda: bench_commands(10 if quick else 40),
        "latency": lambda: bench_latency(10 if quick else 40),
        "submits": lambda: bench_submits(2 if quick else 5),
        "jobs": lambda: bench_jobs(200 if quick else 1000),
        "passes": lambda: bench_passes(figure, 10_000 if quick else MANY),
        "many": lambda: bench_many(10_000 if quick else MANY),
    }


def main() -> int:
    """Prints the table, or JSON."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("names", nargs="*", help="commands latency submits jobs passes many; none: all")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--quick", action="store_true", help="smaller numbers, for a look")
    options = parser.parse_args()
    known = groups(options.quick)
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"there is no figure {unknown[0]}; there are {', '.join(known)}")
    found = [each for name in options.names or known for each in known[name]()]
    print(json.dumps([asdict(each) for each in found], indent=1) if options.json else table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
