"""The bell: APScheduler's date trigger in UTC wakes the engine at the plan's ``wake_at``, and once a minute
at the latest. The look each minute notices a stepped clock and a long sleep of the machine. Which shift is in
force is computed, never scheduled: APScheduler's own cron trigger skips and repeats firings when clocks
change."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger

from nqspy.daemon.clock import Clock
from nqspy.model.ids import Instant

LOOK = 60.0
"""Longest time between two looks, real seconds."""


class DaemonBell:
    """Alarm on a scheduler thread of its own; ``ring`` is called there."""

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._at: float | None = None
        self._scheduler: Any = BackgroundScheduler(
            timezone=UTC, job_defaults={"misfire_grace_time": None, "coalesce": True}
        )

    def start(self) -> None:
        """Hangs the bell; it rings in a minute unless told otherwise."""
        self._scheduler.start()
        self._set(time.time() + LOOK)

    def ring_at(self, at: Instant | None) -> None:
        """Move the alarm to an instant, a minute from now at the latest; an earlier alarm stays."""
        now = time.time()
        due = now + LOOK if at is None else min(now + LOOK, self._clock.real_of(at))
        known = self._at
        if known is None or not now < known <= due:
            self._set(due)

    def _set(self, due: float) -> None:
        self._at = due
        moment = datetime.fromtimestamp(max(due, time.time() + 0.001), UTC)
        self._scheduler.add_job(self._rung, DateTrigger(moment), id="bell", replace_existing=True)

    def _rung(self) -> None:
        self._at = None
        self._ring()

    def close(self) -> None:
        """Takes the bell down."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
