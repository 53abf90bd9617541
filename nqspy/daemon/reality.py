"""Reality checks: scans for foreign jobs, processes that nqspy did not start, as often as
`Machine.foreign_scan` says. Without that setting only jobs that a start without state left alone (`nqsd start
--forget`) are watched. A thread, started when first needed, puts what it finds into the inbox."""

import threading
import time
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from nqspy.daemon.log import LOG
from nqspy.model.machine import ForeignJob
from nqspy.model.observations import ObservedForeign
from nqspy.model.site import Site

FIRST = 0.5
"""Real seconds between the first two scans, which a start waits for before it starts anything."""
LEFT = 60.0
"""Real seconds between two scans while only jobs that were left alone are watched."""

Scan = Callable[[bool, Sequence[ForeignJob]], tuple[ForeignJob, ...] | None]
"""`LocalExecutor.foreign`."""


class ForeignWatch:
    """Scans for foreign jobs; calls ``put`` with observations, from its thread."""

    def __init__(self, put: Callable[[ObservedForeign], None], scan: Scan) -> None:
        self._put, self._scan = put, scan
        self._every: float | None = None
        self._wake = threading.Event()
        self._begun = self._stopping = False
        self._thread: threading.Thread | None = None

    def begin(self, site: Site) -> list[ObservedForeign]:
        """Return what two scans find now, for the first pass; start the thread if more scans follow."""
        self._every = _seconds(site)
        cpus = dict(enumerate(site.found.cpus))
        known = [replace(job, pes=tuple(cpus[pe] for pe in job.pes if pe in cpus)) for job in site.foreign]
        jobs = self._scan(self._every is not None, known)
        if jobs is None:
            time.sleep(FIRST)
            jobs = self._scan(True, ())
        self._begun = True
        if self._every is not None or jobs:
            self._start()
        return [ObservedForeign(jobs or ())]

    def follow(self, site: Site) -> None:
        """Scan as often as the site says; called after each turn."""
        every = _seconds(site)
        if self._begun and every != self._every:
            self._every = every
            self._start()
            self._wake.set()

    def close(self) -> None:
        """Stop the thread."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="foreign", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        pause: float | None = self._every or LEFT  # `begin` has just scanned
        while not self._stopping:
            self._wake.wait(pause)
            self._wake.clear()
            if not self._stopping:
                pause = self._check()

    def _check(self) -> float | None:
        """Scan once; return the real seconds until the next scan, None: none before the setting changes."""
        every = self._every
        try:
            jobs = self._scan(every is not None, ())
        except Exception:
            LOG.exception("foreign jobs could not be looked for")
            return every or LEFT
        if jobs is None:
            return FIRST
        self._put(ObservedForeign(jobs))
        return every or (LEFT if jobs else None)


def _seconds(site: Site) -> float | None:
    every = site.settings.machine.foreign_scan
    return None if every is None else every / 1000
