"""Processes that a run of the tests has left behind: whoever stands in its temporary folder, names it, or has
a file of it open. Jobs have clean environments and sessions of their own, so the folder is what tells."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

PATIENCE = 30.0
"""Seconds for what was killed last to vanish."""


def of(folder: Path) -> dict[int, str]:
    """Number and command of each process that is still there after a while."""
    end = time.monotonic() + PATIENCE
    while (found := dict(_look(os.fsencode(folder)))) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def end(pids: dict[int, str]) -> None:
    """Kills them, so that the next run does not meet them."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def _look(folder: bytes) -> Iterator[tuple[int, str]]:
    ours = set(_ancestors(os.getpid()))
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in ours:
            try:
                if _belongs(Path("/proc", entry), folder):
                    words = Path("/proc", entry, "cmdline").read_bytes().replace(b"\0", b" ")
                    yield int(entry), words.decode(errors="replace")
            except OSError:  # it has gone, or is another user's
                continue


def _ancestors(pid: int) -> Iterator[int]:
    """A process, and whoever runs it: these may name the folder."""
    while pid:
        yield pid
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _belongs(process: Path, folder: bytes) -> bool:
    if process.joinpath("stat").read_text().rpartition(")")[2].split()[0] in "ZX":
        return False
    if any(folder in process.joinpath(each).read_bytes() for each in ("cmdline", "environ")):
        return True
    links = [process / "cwd", *process.joinpath("fd").iterdir()]
    return any(os.fsencode(os.readlink(each)).startswith(folder) for each in links)
