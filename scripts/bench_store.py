"""Measures commits while the database is backed up, and while its history moves into files."""

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench_tools import apply

from nqspy.model import events as ev
from nqspy.model.ids import Instant
from nqspy.model.requests import Ask, Spec, Used
from nqspy.model.site import Site
from nqspy.ports import Batch
from nqspy.store import copies
from nqspy.store.journal import SqliteJournal
from nqspy.store.rotation import PAUSE, Rotation

FIRST = 1_767_225_600_000
PER_SECOND = 200
"""Commits a second while the others work: a busy site."""


class _Office:
    """A filled journal with timed commits; each commit is a request from submission to end."""

    def __init__(self, path: Path) -> None:
        self.journal = SqliteJournal.open(path)
        self.site = self.journal.load()
        self.site = Site() if self.site.n == 0 else self.site

    def commit(self, at: int, requests: int = 1) -> float:
        """Commit requests with their whole lives (4 events each); return the ms."""
        batch = Batch(blobs={"s" * 64: b"true\n", "e" * 64: b"A=b\0" * 200})
        for _ in range(requests):
            seq = self.site.next_seq
            spec = Spec("anne", 1000, "job", "night", "s" * 64, "e" * 64, "/home/anne", ask=Ask(cpu=600_000))
            for event in (
                ev.Submitted(seq, spec, "night", "queued", key=f"k{seq}", digest="d"),
                ev.Starting(seq, 1, (0,)),
                ev.Started(seq, 1, (0,)),
                ev.Ended(seq, 1, "exit", exit_status=0, used=Used(1000, 2000, 1 << 20)),
            ):
                recorded = ev.Recorded(self.site.n + 1, Instant(at), event)
                apply(self.site, recorded)
                batch.events.append(recorded)
        began = time.perf_counter()
        self.journal.commit(batch, self.site)
        return (time.perf_counter() - began) * 1000

    def during(self, work: Callable[[], Any]) -> tuple[list[float], float]:
        """Return the ms of commits while ``work`` runs on a thread of its own, and the seconds of that."""
        times: list[float] = []
        thread = threading.Thread(target=work)
        began = time.perf_counter()
        thread.start()
        tick = threading.Event()
        while thread.is_alive():
            times.append(self.commit(FIRST + 10**9))
            tick.wait(1 / PER_SECOND)
        return sorted(times), time.perf_counter() - began

    def rotate(self, before: int) -> None:
        """Move everything older into files, at the daemon's pace."""
        tick = threading.Event()
        journal = self.journal
        Rotation(journal.path, journal.turn, journal.forget_blobs, lambda: tick.wait(PAUSE) and None).run(
            Instant(before)
        )


def bench_store(figure: Callable[..., Any], events: int) -> Iterator[Any]:
    """Yield the longest commits during a backup and during a rotation, compared with the usual commit."""
    sys.setswitchinterval(0.0005)  # as the daemon does
    with tempfile.TemporaryDirectory(prefix="nqspy-bench-") as name:
        office = _Office(Path(name) / "nqs.db")
        for number in range(events // 400):
            office.commit(FIRST + number, 100)
        tick = threading.Event()
        usual, _ = office.during(lambda: tick.wait(5))
        size = office.journal.path.stat().st_size / 1e6
        backup, took = office.during(lambda: copies.back_up(office.journal.path, Instant(FIRST), 2))
        yield _row(figure, f"longest commit in a backup of {size:.0f} MB", backup, usual, took)
        rotation, took = office.during(lambda: office.rotate(FIRST + 10**8))
        yield _row(figure, f"longest commit, {events} events rotated", rotation, usual, took)
        office.journal.close()


def _row(figure: Callable[..., Any], name: str, times: list[float], usual: list[float], took: float) -> Any:
    note = (
        f"p99 {_at(times, 0.99):.1f}, median {_at(times, 0.5):.2f} of {len(times)} in {took:.1f} s;"
        f" usual p99 {_at(usual, 0.99):.1f}, median {_at(usual, 0.5):.2f} ms"
    )
    return figure(name, times[-1], "ms", usual[-1], "longest usual commit (5 s)", "shown", None, note)


def _at(times: list[float], part: float) -> float:
    return times[min(len(times) - 1, int(part * len(times)))]
