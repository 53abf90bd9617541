"""Measures the memory of the daemon's processes: empty, after one list of 10,000, after listings of them."""

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench_tools import Figure, figure, memory_of, wait_for

HERE = Path(os.environ.get("NQSPY_BENCH_ROOT") or Path(__file__).resolve().parents[1])
COUNT = 10_000
TOGETHER = "all processes (PSS)"
REST = 2.0
"""Seconds from the work to the measurement: an operator is not quicker."""
SITE = """\
set machine pes=2
create batch_queue batch priority=10
enable queue batch
set default batch_request queue batch
"""
_COMMAND = "import sys; from nqspy.cli.{0} import main; sys.exit(main())"


class House:
    """A daemon of a checkout, in a home of its own, with the shipped exits."""

    def __init__(self, root: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="nqspy-bench-"))
        self.home = self.folder / "home"
        (self.home / "queues.d").mkdir(parents=True)
        (self.home / "queues.d" / "10-site.qmgr").write_text(SITE)
        shutil.copytree(root / "exits", self.home / "exits")
        for file in (self.home / "exits").iterdir():
            file.chmod(0o644)
        self.env = os.environ | {"PYTHONPATH": str(root), "NQSPY_HOME": str(self.home)}
        words = [sys.executable, "-m", "nqspy.daemon.command", "run", "--home", str(self.home)]
        self.daemon = subprocess.Popen(words, env=self.env, cwd="/", stderr=subprocess.DEVNULL)
        wait_for((self.home / "nqsd.sock").exists)

    def run(self, name: str, *words: str) -> int:
        """Run one of the commands; return the bytes that it printed."""
        called = [sys.executable, "-c", _COMMAND.format(name), *words]
        done = subprocess.run(called, env=self.env, cwd=self.folder, capture_output=True, check=True)
        return len(done.stdout)

    def resident(self) -> dict[str, float]:
        """Return the RSS of each process, and the PSS of all with shepherds, in MB."""
        select.select([], [], [], REST)
        mine = _words(self.daemon.pid)
        found = {"the daemon": _rss(self.daemon.pid)}
        for pid in _children(self.daemon.pid):
            found["the exits' process" if _words(pid) == mine else "the spawner"] = _rss(pid)
        found[TOGETHER] = memory_of(self.daemon.pid) / 1024**2
        return found

    def close(self) -> None:
        """Stop the daemon and remove its files."""
        self.daemon.send_signal(signal.SIGTERM)
        self.daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def _rss(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024**2


def _words(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(word) for each in tasks for word in each.read_text().split()]


def measure() -> Iterator[Figure]:
    """Yield a figure for each process and state."""
    house = House(HERE)
    try:
        empty = house.resident()
        yield from _rows("empty", empty, {})
        lines = (f"-N job{n} -lT 600 -lM 8mb job.sh {n}" for n in range(COUNT))
        (house.folder / "list").write_text("\n".join(lines) + "\n")
        (house.folder / "job.sh").write_text("true\n")
        house.run("qsub", "--list", "list")
        full = house.resident()
        yield from _rows(f"after qsub --list of {COUNT}", full, empty, ("the daemon", 90.0))
        for name, words in (("qstat --json", ("--json",)), ("qstat", ())):
            house.run("qstat", *words)
            after = house.resident()
            yield from _rows(f"after {name}", after, full, ("the daemon", full["the daemon"] + 10))
    finally:
        house.close()


def _rows(
    when: str, now: dict[str, float], before: dict[str, float], goal: tuple[str, float] = ("", 0.0)
) -> Iterator[Figure]:
    for name, value in now.items():
        wanted = f"<= {goal[1]:.0f} MB" if name == goal[0] else "shown"
        met = value <= goal[1] if name == goal[0] else None
        yield figure(f"{name}, {when}", value, "MB", before.get(name), "before", wanted, met)
