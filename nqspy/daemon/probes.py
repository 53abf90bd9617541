"""Probes beside the daemon: each is tried again and again, by real time, on a few threads of their own; only
a change of state is put into the inbox.

Without probes there is no thread and nothing wakes up.
"""

import heapq
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count

from msgspec import Struct

from nqspy.core import health
from nqspy.daemon.log import LOG
from nqspy.daemon.probe_run import Result, attempt
from nqspy.model.health import Probe, ResourceState
from nqspy.model.ids import Instant
from nqspy.model.observations import ObservedResource
from nqspy.system.run_with_timeout import Hand

MOST = 8
"""Threads that try probes at most."""


class Last(Struct, frozen=True):
    """A probe's last try: when by the site's clock, and what it found."""

    at: Instant
    good: bool
    text: str


@dataclass(slots=True)
class _Watch:
    """One probe being watched. ``version`` rises when its settings change: what an older try found is void
    then, and so are older entries of the heap."""

    probe: Probe
    count: health.Count
    version: int = 0
    busy: bool = False
    gone: bool = False
    last: Last | None = None
    hand: Hand = field(default_factory=Hand)


class Probes:
    """Watches a site's probes. ``put`` takes `ObservedResource` from any thread; ``now`` is the site's
    clock."""

    def __init__(self, put: Callable[[ObservedResource], None], now: Callable[[], Instant]) -> None:
        self._put, self._now = put, now
        self._watches: dict[str, _Watch] = {}
        self._heap: list[tuple[float, int, int, _Watch]] = []
        self._order = count()
        self._bell = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._led = False
        self._closed = False

    def follow(self, probes: Mapping[str, Probe], known: Mapping[str, ResourceState]) -> None:
        """Watches exactly these from now on; one that is new or was changed is tried at once. ``known``: what
        the site knows of each, which stands until there are new results."""
        with self._bell:
            for name in [name for name in self._watches if name not in probes]:
                watch = self._watches.pop(name)
                watch.gone = True
                watch.hand.stop()
            for name, probe in probes.items():
                self._see_to(name, probe, known.get(name))
            missing = min(MOST, len(self._watches)) - len(self._threads)
            for _ in range(missing):
                thread = threading.Thread(target=self._work, name="probe", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _see_to(self, name: str, probe: Probe, known: ResourceState | None) -> None:
        watch = self._watches.get(name)
        if watch is not None and watch.probe == probe:
            return
        state = known.state if known is not None else None
        if watch is None:
            watch = self._watches[name] = _Watch(probe, health.Count(state))
        else:
            watch.probe, watch.count, watch.version = probe, health.Count(state), watch.version + 1
            watch.hand.cut()
        if not watch.busy:
            self._push(watch, time.monotonic())

    def last(self, name: str) -> Last | None:
        """The last try of a probe, None before its first."""
        watch = self._watches.get(name)
        return watch.last if watch is not None else None

    def close(self) -> None:
        """Tries no more, and ends what runs."""
        with self._bell:
            self._closed = True
            for watch in self._watches.values():
                watch.hand.stop()
            self._bell.notify_all()

    # ------------------------------------------------------------ threads

    def _push(self, watch: _Watch, due: float) -> None:
        heapq.heappush(self._heap, (due, next(self._order), watch.version, watch))
        self._bell.notify_all()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            watch, version = job
            started = time.monotonic()
            try:
                self._tell(watch, version, _try(watch), started)
            except Exception:
                LOG.exception("what probe %s found could not be told", watch.probe.name)

    def _next(self) -> tuple[_Watch, int] | None:
        """Waits for the next try that is due; None when all is over. One thread waits for the time, the
        others for being called."""
        with self._bell:
            while not self._closed:
                self._drop_stale()
                if not self._heap or self._led:
                    self._bell.wait()
                    continue
                wait = self._heap[0][0] - time.monotonic()
                if wait <= 0:
                    _, _, version, watch = heapq.heappop(self._heap)
                    watch.busy = True
                    self._bell.notify()
                    return watch, version
                self._led = True
                self._bell.wait(wait)
                self._led = False
        return None

    def _drop_stale(self) -> None:
        while self._heap and (self._heap[0][3].gone or self._heap[0][2] != self._heap[0][3].version):
            heapq.heappop(self._heap)

    def _tell(self, watch: _Watch, version: int, result: Result, started: float) -> None:
        with self._bell:
            watch.busy = False
            if watch.gone or self._closed:
                return
            if watch.version != version:
                self._push(watch, time.monotonic())
                return
            self._push(watch, max(time.monotonic(), started + watch.probe.every / 1000))
            watch.last = Last(self._now(), result.good, result.text)
            changed = watch.count.tell(watch.probe, result.good)
            if changed is not None:
                self._put(ObservedResource(watch.probe.name, changed, result.text))


def _try(watch: _Watch) -> Result:
    try:
        return attempt(watch.probe, watch.hand)
    except Exception:
        LOG.exception("probe %s could not be tried", watch.probe.name)
        return Result(False, "internal error, see the daemon's log")
