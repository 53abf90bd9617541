"""Attempts of requests: which PEs they held when, and what they had used by an instant."""

from bisect import bisect_right
from dataclasses import dataclass, field

from nqspy.model.ids import Instant

_EVER = 1 << 62


@dataclass(slots=True)
class AttemptHistory:
    """An attempt: its PEs, when it held them, and points (instant, CPU ms and wall ms used so far).
    ``parked``: since when others may have its PEs; ``pauses``: when they could. ``began``, ``gone``: the
    latest instant that there had been when it began and ended; the clock may have been set back since."""

    pes: int
    begin: Instant
    end: Instant | None = None
    points: list[tuple[Instant, int, int]] = field(default_factory=list)
    reported: bool = False
    parked: Instant | None = None
    pauses: list[tuple[Instant, Instant]] = field(default_factory=list)
    began: Instant | None = None
    gone: Instant | None = None

    def used_at(self, at: int, charge: str = "cpu") -> float:
        """Return what is charged (`Usage.charge`: CPU time, or PEs x wall time; ``wall``: wall time alone;
        ms) up to an instant: linear between the points the journal has, the last one's value after it (a
        running attempt's use since its last sample is not known)."""
        points = self.points
        if not points or at < points[0][0]:
            return 0.0
        column, pes = (1 if charge == "cpu" else 2), (self.pes if charge == "pe_wall" else 1)
        if at >= points[-1][0]:
            return float(pes * points[-1][column])
        place = bisect_right(points, at, key=lambda point: point[0])
        before, after = points[place - 1], points[place]
        part = (at - before[0]) / (after[0] - before[0])
        return pes * (before[column] + (after[column] - before[column]) * part)

    def used_between(self, begin: int, end: int, charge: str = "cpu") -> float:
        """Return what is charged of its use between two instants: all, if it began and ended within them,
        however the site's clock was set meanwhile."""
        if self.began is not None and begin <= self.began and self.gone is not None and self.gone <= end:
            return self.used_at(_EVER, charge)
        return max(0.0, self.used_at(end, charge) - self.used_at(begin, charge))

    def unpark(self, at: Instant) -> None:
        """Note that it has its PEs again, or needs them no more."""
        if self.parked is not None:
            self.pauses.append((self.parked, at))
            self.parked = None

    def held(self, begin: Instant, end: Instant) -> list[tuple[Instant, Instant]]:
        """Spans in which it held its PEs between two instants."""
        first = max(self.begin, begin)
        last = end if self.end is None else min(self.end, end)
        if not self.pauses and self.parked is None:
            return [(first, last)] if last > first else []
        spans = []
        pauses = self.pauses if self.parked is None else [*self.pauses, (self.parked, last)]
        for off, on in pauses:
            spans.append((first, min(off, last)))
            first = max(first, on)
        return [(a, b) for a, b in (*spans, (first, last)) if b > a]

    def held_time(self, begin: Instant, end: Instant) -> int:
        """Time (ms) for which it held its PEs between two instants."""
        return sum(last - first for first, last in self.held(begin, end))

    def ran_for(self, begin: Instant, end: Instant) -> float:
        """Time (ms) for which it ran between two instants: as measured, since the site's clock may be set;
        how long it held its PEs where nothing was measured, and since the last measurement of one that
        runs."""
        if not self.points or not self.points[-1][2]:
            return self.held_time(begin, end)
        since = self.held_time(max(begin, self.points[-1][0]), end) if self.end is None else 0
        return self.used_between(begin, end, "wall") + since

    def begin_at(self, at: Instant) -> None:
        """The executor reports that it was started: it holds its PEs from here on."""
        if not self.reported and len(self.points) == 1:
            self.begin = at
            self.points = [(at, 0, 0)]
        self.reported = True
