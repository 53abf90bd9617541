"""The night's report over many requests: beside reading and decoding the same events from the database, in
the same run and process.

    python scripts/bench_report.py [--json] [COUNT]
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench_tools import Figure, apply, figure

from nqspy.answers import nights
from nqspy.daemon import heap
from nqspy.daemon.clock import Clock
from nqspy.model import events as ev
from nqspy.model.ids import HOUR, Instant
from nqspy.model.requests import Ask, Spec, Used
from nqspy.model.site import Site
from nqspy.ports import Batch
from nqspy.report.night_pages import night_html
from nqspy.store.journal import SqliteJournal
from nqspy.store.reader import Reader

NINE = Instant(1_772_481_600_000)
"""Instant of 2026-03-02 21:00 in Paris."""
GROUPS, USERS, PES = 8, 40, 8


class Night:
    """A night's journal: ``count`` requests of eight departments, nine tenths of which run on eight PEs."""

    def __init__(self, path: Path, count: int) -> None:
        self.site, self.journal, self.batch = Site(), SqliteJournal.open(path), Batch()
        self.count = count
        self._opening()
        self._submissions(NINE - HOUR)
        self.tell(NINE, ev.ShiftChanged("night", "evening", NINE))
        self._runs()
        self.tell(Instant(NINE + 9 * HOUR), ev.ShiftChanged("report", "night", Instant(NINE + 9 * HOUR)))
        self.commit()
        self.journal.close()

    def tell(self, at: int, event: ev.Event) -> None:
        """Add an event at an instant."""
        recorded = ev.Recorded(self.site.n + 1, Instant(at), event)
        apply(self.site, recorded)
        self.batch.events.append(recorded)
        if len(self.batch.events) >= 5_000:
            self.commit()

    def commit(self) -> None:
        """Commit the events so far."""
        self.journal.commit(self.batch, self.site)
        self.batch = Batch()

    def _opening(self) -> None:
        self.tell(NINE - 2 * HOUR, ev.MachineFound(tuple(range(PES)), 1 << 34, "bench", "Europe/Paris"))
        groups = [ev.Change("create", f"group/d{n}", {"share": n + 1}) for n in range(GROUPS)]
        queue = ev.Change("create", "queue/night", {"enabled": True, "started": True})
        self.tell(NINE - 2 * HOUR, ev.SettingsChanged((queue, *groups)))

    def _submissions(self, at: int) -> None:
        for n in range(self.count):
            ask = Ask(cpu=60_000, memory=1 << 25)
            spec = Spec(
                f"u{n % USERS}", 0, f"job{n}", "night", "s", "e", "/", group=f"d{n % GROUPS}", ask=ask
            )
            self.tell(at, ev.Submitted(n + 1, spec, "night", "queued"))

    def _runs(self) -> None:
        """Start the first requests together, then each when another ends."""
        count = self.count * 9 // 10
        run = 9 * HOUR * PES // max(1, count)
        self._pass(NINE, range(min(PES, count)), count)
        for n in range(count):
            at = NINE + (n // PES + 1) * run + n % PES
            used, status = Used(int(run * 0.9), run, 1 << 25), 1 if n % 50 == 0 else 0
            self.tell(at, ev.Ended(n + 1, 1, "exit", status, None, used, "", "/out", "/err"))
            if n + PES < count:
                self._pass(at, (n + PES,), count)
            elif n + PES == count:
                self.tell(at, ev.SettingsChanged((ev.Change("set", "queue/night/started", False),)))

    def _pass(self, at: int, starts: Sequence[int], count: int) -> None:
        self.tell(at, ev.Decided(self.site.n, (), (), max(starts) + 1 < count, exits=()))
        for kind in (ev.Starting, ev.Started):
            for n in starts:
                self.tell(at, kind(n + 1, 1, (n % PES,)))


def _seconds(*works: Callable[[], Any], runs: int = 5) -> list[float]:
    """Return the median seconds of each function over a few runs in turn, so that slow moments of the machine
    affect all."""
    took: list[list[float]] = [[] for _ in works]
    for _ in range(runs):
        for place, work in enumerate(works):
            began = time.perf_counter()
            work()
            took[place].append(time.perf_counter() - began)
    return [statistics.median(each) for each in took]


def bench_report(count: int = 10_000) -> Iterator[Figure]:
    """Yield the time of the report with its pages, compared with reading and decoding its events, with the
    daemon's settings of memory."""
    heap.calm()
    with tempfile.TemporaryDirectory(prefix="nqspy-bench-") as folder:
        path = Path(folder) / "nqs.db"
        made = Night(path, count)
        reader = Reader(path)
        picture = nights.Picture(made.site.n, Instant(NINE + 9 * HOUR))

        def report() -> dict[str, Any]:
            return nights.report(nights.Past(reader), picture, None, Clock(), picture.at)

        data = report()
        whole, pages, floor = _seconds(
            report,
            lambda: (night_html(data), json.dumps(data)),
            lambda: sum(1 for _ in reader.events()),
        )
        reader.close()
        note = f"{made.site.n} events; {data['line']}"
        name = "reading and decoding its events"
        met = whole <= 4 * floor
        yield figure(f"night report over {count} requests", whole, "s", floor, name, "<= 4 x", met, note)
        yield figure("its page and JSON", pages, "s", floor, name, "<= 1 x", pages <= floor)
