"""Wake-up: APScheduler's date trigger in UTC wakes the engine at the plan's ``wake_at``, and once a minute at
the latest. The check each minute notices a stepped clock and a long sleep of the machine. Which shift is in
force is computed, never scheduled: APScheduler's own cron trigger skips or repeats them when clocks jump."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger

from nqspy.daemon.clock import Clock
from nqspy.model.ids import Instant

LONGEST = 60.0
"""Most real seconds between two wake-ups."""


class WakeUpTimer:
    """Timer on a scheduler's thread of its own, which calls ``wake``."""

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._at: float | None = None
        self._scheduler: Any = BackgroundScheduler(
            timezone=UTC, job_defaults={"misfire_grace_time": None, "coalesce": True}
        )

    def start(self) -> None:
        """Start the timer; it wakes the engine in a minute unless another time is set."""
        self._scheduler.start()
        self._set(time.time() + LONGEST)

    def wake_at(self, at: Instant | None) -> None:
        """Wake at an instant, or in a minute if that is earlier (None: always); an earlier wake-up stays."""
        now = time.time()
        due = now + LONGEST if at is None else min(now + LONGEST, self._clock.real_of(at))
        current = self._at
        if current is None or not now < current <= due:
            self._set(due)

    def _set(self, due: float) -> None:
        self._at = due
        moment = datetime.fromtimestamp(max(due, time.time() + 0.001), UTC)
        self._scheduler.add_job(self._fired, DateTrigger(moment), id="wake-up", replace_existing=True)

    def _fired(self) -> None:
        self._at = None
        self._wake()

    def close(self) -> None:
        """Stop the timer and its thread."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
