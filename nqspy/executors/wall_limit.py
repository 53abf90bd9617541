"""The kill at the wall limit: how long a job has run, how long it may run, and the message at the limit.

The limit counts from the fork of the job's first process, without the time suspended. A job in a hole between
reservations (`Spec.contract`) also ends with that, suspended or not. `Shepherd._end` sends SIGTERM to all its
processes, SIGKILL after the site's grace time, with or without a daemon. Standard library only."""

from typing import Any

IDLE = 60.0
"""Real seconds between checks if there is no limit."""


class WallClock:
    """Measures a job's wall time in real seconds; its limits are in ms of the site's clock. They are read
    from the order each time, because an operator may change them while it runs."""

    def __init__(self, order: dict[str, Any], started: float) -> None:
        self.started = started
        self.stopped: float | None = None
        self._limits: dict[str, int | None] = order["limits"]
        self._speed: float = order["speed"]
        self._paused = 0.0

    def stop(self, now: float) -> None:
        """Stop counting the job's wall time: it is suspended."""
        if self.stopped is None:
            self.stopped = now

    def resume(self, now: float) -> None:
        """Continue counting the job's wall time: it is resumed."""
        if self.stopped is not None:
            self._paused += now - self.stopped
            self.stopped = None

    def ran(self, now: float) -> float:
        """Return the real seconds that the job has run until ``now``, without the time suspended."""
        return (self.stopped if self.stopped is not None else now) - self.started - self._paused

    def remaining(self, now: float) -> float:
        """Return the real seconds until a limit is reached, at most `IDLE`; negative if one was passed."""
        wall, hole, remaining = self._limits["wall"], self._limits.get("hole"), IDLE
        if wall is not None and self.stopped is None:
            remaining = min(remaining, wall / 1000 / self._speed - self.ran(now))
        if hole is not None:
            remaining = min(remaining, hole / 1000 / self._speed - (now - self.started))
        return remaining

    def passed(self, now: float, by: str = "") -> tuple[str, str] | None:
        """Return end reason and sentence if a limit was passed, else None. ``by``: ends that on wall time."""
        wall, hole = self._limits["wall"], self._limits.get("hole")
        if wall is not None and int(self.ran(now) * 1000 * self._speed) >= wall:
            return "wall_limit", f"wall-clock limit of {seconds(wall)} exceeded{by}"
        if hole is not None and hole / 1000 / self._speed <= now - self.started:
            return "contract", f"it ran longer than its hole of {seconds(hole)} before a reservation"
        return None


def within(order: dict[str, Any], most: float) -> float:
    """Return the real seconds that a launch may take: ``most``, or the whole wall limit if that is less."""
    wall = order["limits"]["wall"]
    return most if wall is None else min(most, float(wall / 1000 / order["speed"]))


def seconds(ms: int) -> str:
    """Return a time as people say it, as `units.format_exact` does (a shepherd loads no such file)."""
    parts = (f"{ms // 3_600_000} h", f"{ms // 60_000 % 60} min", f"{ms % 60_000 / 1000:g} s")
    return " ".join([part for part in parts if part[:2] != "0 "]) or "0 s"


def size_text(size: int) -> str:
    """Return a size with its unit: ``40.0 MiB``, ``512.0 KiB``, ``100 bytes``."""
    for unit, power in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power:
            return f"{size / (1 << power):.1f} {unit}"
    return f"{size} bytes"
