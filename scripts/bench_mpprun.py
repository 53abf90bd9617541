"""Measures how soon an application begins: `mpprun` from its start to the first instruction of its program,
on idle PEs, compared with a whole qsub and the time from its submission to the first instruction of its
script."""

import os
import select
import statistics
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from bench_tools import BIN, Figure, Line, Site, figure, site, spawn, wait_for

APPS = """\
create class production priority=2 wait=30:00 do_not_disturb=10
create class interactive priority=4 wait=0 do_not_disturb=10
create batch_queue apps order=class
enable queue apps
start queue apps
set default mpprun queue apps
"""
APART = 1.2
"""Seconds after which no shepherd of the former request remains (`executors.pool`)."""
PATIENCE = 10_000
GOAL = 1.5


class Mark:
    """A program, and a request's script (``script``), whose first instruction opens a fifo."""

    def __init__(self, folder: Path) -> None:
        self._fifo, self.script = folder / "first", folder / "mark.sh"
        os.mkfifo(self._fifo)
        self.script.write_text(f"#!/bin/sh\n: > {self._fifo}\n")
        self.script.chmod(0o755)

    def hung(self) -> int:
        """Open the fifo; return its descriptor, by which the first instruction is noticed."""
        return os.open(self._fifo, os.O_RDONLY | os.O_NONBLOCK)

    @staticmethod
    def seen(fd: int) -> tuple[float, float]:
        """Wait for the first instruction; return its instant in ms of the measuring clock and in seconds of
        the site's. Ends the run if it does not come."""
        poll = select.poll()
        poll.register(fd, select.POLLIN | select.POLLHUP)
        if not poll.poll(PATIENCE):
            raise SystemExit("the program did not begin")
        times = time.perf_counter() * 1000, time.time()
        os.close(fd)
        return times


def bench_mpprun(rounds: int) -> Iterator[Figure]:
    """Yield the figures of rounds of both in turn: some time apart, then right after each other."""
    with site() as here:
        (here.folder / "apps.qmgr").write_text(APPS)
        here.run("qmgr", str(here.folder / "apps.qmgr"))
        mark = Mark(here.folder)
        for pause, when in ((APART, "idle for a second"), (0.0, "one after the other")):
            taken = [_round(here, mark, pause, number % 2 == 0) for number in range(rounds + 2)][2:]
            ours, qsubs, ways = (statistics.median(each) for each in zip(*taken, strict=True))
            peer = statistics.median(qsub + way for _, qsub, way in taken)
            note = f"qsub {qsubs:.1f} ms, submission to first instruction {ways:.1f} ms, {rounds} rounds"
            yield figure(f"mpprun to first instruction, {when}", ours, "ms", peer,
                         "a whole qsub + from submission to first instruction", f"<= {GOAL} x",
                         ours <= GOAL * peer, note)  # fmt: skip


def _round(here: Site, mark: Mark, pause: float, first: bool) -> tuple[float, float, float]:
    """Run both, in either order; return ms of `mpprun`, of `qsub`, and from its submission on."""
    if first:
        ours = _mpprun(here, mark, pause)
        return (ours, *_qsub(here, mark, pause))
    peer = _qsub(here, mark, pause)
    return (_mpprun(here, mark, pause), *peer)


def _mpprun(here: Site, mark: Mark, pause: float) -> float:
    _rest(here, pause)
    fd, words = mark.hung(), [str(BIN / "mpprun"), str(mark.script)]
    began = time.perf_counter() * 1000
    pid = os.posix_spawn(words[0], words, here.env)
    seen, _ = mark.seen(fd)
    _, status = os.waitpid(pid, 0)
    if status:
        raise SystemExit(f"mpprun ended {status}")
    return seen - began


def _qsub(here: Site, mark: Mark, pause: float) -> tuple[float, float]:
    _rest(here, pause)
    fd = mark.hung()
    words = ["-s", "/bin/sh", "-o", "/dev/null", "-e", "/dev/null", str(mark.script)]
    whole = spawn([str(BIN / "qsub"), *words], here.env)
    _, seen = mark.seen(fd)
    return whole, seen * 1000 - _submitted(here)


def _submitted(here: Site) -> float:
    """Return the time of the last submission in ms, by the journal."""
    line, last = Line(here.home), int(here.status()["events"])
    found = line.call({"cmd": "events", "after": max(0, last - 20), "limit": 100})["result"]["events"]
    at = [each["at"] for each in found if each["kind"] == "submitted"][-1]
    return datetime.fromisoformat(at).timestamp() * 1000


def _rest(here: Site, pause: float) -> None:
    wait_for(lambda: not here.status()["requests"])
    select.select([], [], [], pause)
