"""How fast people get memory while a batch request holds nearly all of it, without and with swap control.

Everything runs in a memory cgroup of its own with a limit and a temporary swap file, so that the machine
itself is not in danger. A request holds most of the limit and keeps using all of it; then somebody types at a
terminal and touches memory of his own. ``off``: swap control off; ``at once``: on, and he begins with his
first key; ``given way``: on, and the request has given way before he begins. The daemon, its readings and
marks are the real ones; the marks are set around what the machine has in use, for the limit is smaller.

Needs root, a cgroup1 memory hierarchy and swapon; where one is missing it says so and measures nothing.
"""

import argparse
import json
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench_tools import Site, site, wait_for

MB = 1 << 20
GROUPS = Path("/sys/fs/cgroup/memory")
LIMIT = 1536 * MB
HOG = 1300
"""MB that the request holds."""
WANTED = 400
"""MB that the person touches."""
ALLOCATIONS = 1000
HOG_CODE = f"""
import os, random
held = bytearray(b'x') * ({HOG} << 20)
open(os.environ['MARK'], 'w').write('holds')
pages = len(held) // 4096
step = 7919
at = 0
while True:
    at = (at + step) % pages
    held[at * 4096] = 1
"""


@dataclass
class Row:
    """One way: seconds to touch the memory, then ms of small allocations (median, 99th, longest)."""

    way: str
    touch_s: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    left_mb: int


def person() -> None:
    """Somebody's process in the cgroup: touches memory, makes small allocations, prints what it took."""
    began = time.perf_counter()
    held = mmap.mmap(-1, WANTED * MB)
    for at in range(0, WANTED * MB, 4096):
        held[at] = 1
    touch = time.perf_counter() - began
    taken = []
    for _ in range(ALLOCATIONS):
        time.sleep(0.002)
        began = time.perf_counter()
        small = mmap.mmap(-1, MB)
        for at in range(0, MB, 4096):
            small[at] = 1
        small.close()
        taken.append((time.perf_counter() - began) * 1000)
    taken.sort()
    print(json.dumps([touch, statistics.median(taken), taken[int(len(taken) * 0.99)], taken[-1]]))


# ---------------------------------------------------------------- the stage


@contextmanager
def cgroup() -> Iterator[Path]:
    """A memory cgroup with the limit, and a swap file."""
    folder = GROUPS / f"nqspy-bench-{os.getpid()}"
    swap = Path(f"/var/tmp/nqspy-bench-{os.getpid()}.swap")
    folder.mkdir()
    try:
        (folder / "memory.limit_in_bytes").write_text(str(LIMIT))
        with swap.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 2 * LIMIT)
        swap.chmod(0o600)
        subprocess.run(["mkswap", swap], check=True, capture_output=True)
        subprocess.run(["swapon", swap], check=True, capture_output=True)
        try:
            yield folder
        finally:
            subprocess.run(["swapoff", swap], check=True)
    finally:
        swap.unlink(missing_ok=True)
        wait_for(lambda: _removed(folder))


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """What is started meanwhile is born in the cgroup."""
    (folder / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        (GROUPS / "cgroup.procs").write_text(str(os.getpid()))


class Terminal:
    """A terminal at which somebody types."""

    def __init__(self) -> None:
        self.master, self.slave = os.openpty()

    def key(self) -> None:
        """A key is pressed, and read by a program."""
        os.write(self.master, b"x\n")
        os.read(self.slave, 10)

    def close(self) -> None:
        """He leaves."""
        os.close(self.master)
        os.close(self.slave)


def used() -> float:
    """Per cent of the machine's memory in use."""
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    total, free = (int(lines[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
    return 100 * (total - free) / total


def marks() -> str:
    """Swap control with its upper mark a little under what is in use with the request, its lower one a third
    of the limit under that."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    now, share = used(), 100 * LIMIT / total
    return f"set swap_control on high={now - share / 8:.2f} low={now - share / 3:.2f} min_resident=1 psi=100"


# ---------------------------------------------------------------- measuring


def measure(way: str, folder: Path) -> Row:
    """One way, with a daemon and a request of its own."""
    with inside(folder), site() as here:
        mark = here.folder / "mark"
        (here.folder / "hog.sh").write_text(f'MARK={mark} exec {sys.executable} -c "{HOG_CODE}"\n')
        here.run("qsub", "-s", "/bin/sh", "-o", "/dev/null", "-e", "/dev/null", str(here.folder / "hog.sh"))
        wait_for(mark.exists)
        time.sleep(3)
        here.run("qmgr", "-c", "set swap_control off" if way == "off" else marks())
        terminal = Terminal()
        try:
            found = _one(way, here, terminal)
        finally:
            terminal.close()
            here.run("qdel", "-k", "1")
            wait_for(lambda: not here.status()["requests"])
    return found


def _one(way: str, here: Site, terminal: Terminal) -> Row:
    terminal.key()
    if way == "given way":
        wait_for(lambda: "is away" in here.run("qmgr", "-c", "show swap_control"))
        wait_for(lambda: "left the memory" in _log(here))
    command = [sys.executable, __file__, "--person"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    words = [line for line in _log(here).splitlines() if "left the memory" in line]
    left = int(words[-1].split(": ")[-1].split()[0]) if words else 0
    return Row(way, *json.loads(told), left)


def _log(here: Site) -> str:
    return (here.home / "log" / "nqsd.log").read_text()


def missing() -> str:
    """What is not there that it needs, "" when all is."""
    if os.geteuid() != 0:
        return "needs root: only root makes cgroups and adds swap"
    if not (GROUPS / "memory.limit_in_bytes").exists() and not (GROUPS / "cgroup.procs").exists():
        return "needs a cgroup1 memory hierarchy"
    return "" if shutil.which("swapon") and shutil.which("mkswap") else "needs mkswap and swapon"


def main() -> None:
    """Measures each way ``--runs`` times and prints the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--person", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.person:
        person()
        return
    if problem := missing():
        raise SystemExit(f"bench swap: {problem}")
    rows = []
    with cgroup() as folder:
        for way in ("off", "at once", "given way"):
            taken = [measure(way, folder) for _ in range(options.runs)]
            names = ("touch_s", "p50_ms", "p99_ms", "max_ms", "left_mb")
            rows.append(
                Row(way, *(statistics.median(getattr(each, name) for each in taken) for name in names))
            )
    if options.json:
        print(json.dumps([vars(row) for row in rows]))
        return
    print(f"{WANTED} MB touched, then {ALLOCATIONS} x 1 MB; a request uses {HOG} of {LIMIT // MB} MB")
    print(f"{'swap control':<14}{'touch s':>9}{'p50 ms':>9}{'p99 ms':>9}{'max ms':>9}{'MB that left':>14}")
    for row in rows:
        print(
            f"{row.way:<14}{row.touch_s:>9.2f}{row.p50_ms:>9.2f}{row.p99_ms:>9.1f}{row.max_ms:>9.1f}{row.left_mb:>14}"
        )


if __name__ == "__main__":
    main()
