"""Attempts of requests, and sums over steps of time: PEs held, time used."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nqspy.model.ids import Instant

_EVER = 1 << 62


@dataclass(slots=True)
class AttemptHistory:
    """An attempt: its PEs, when it held them, and points (instant, CPU ms and wall ms used so far).
    ``released``: since when others may use its PEs; ``pauses``: when they could. ``began``, ``ended``: latest
    instant of the journal at its begin and end, as the clock may have been set back since."""

    pes: int
    begin: Instant
    end: Instant | None = None
    points: list[tuple[Instant, int, int]] = field(default_factory=list)
    reported: bool = False
    released: Instant | None = None
    pauses: list[tuple[Instant, Instant]] = field(default_factory=list)
    began: Instant | None = None
    ended: Instant | None = None

    def used_at(self, at: int, charge: str = "cpu") -> float:
        """Return the charge (ms) up to an instant, by ``charge``: ``cpu``: CPU time, ``pe_wall``: PEs x wall
        time, ``wall``: wall time. It is linear between the journal's points, constant after the last one (a
        running attempt's use since then is unknown)."""
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
        """Return the charge (ms) between two instants: all if it ran within, however clocks were set."""
        if self.began is not None and begin <= self.began and self.ended is not None and self.ended <= end:
            return self.used_at(_EVER, charge)
        return max(0.0, self.used_at(end, charge) - self.used_at(begin, charge))

    def reclaim(self, at: Instant) -> None:
        """Note that from ``at`` on the attempt holds its PEs again, or no longer needs them."""
        if self.released is not None:
            self.pauses.append((self.released, at))
            self.released = None

    def held(self, begin: Instant, end: Instant) -> list[tuple[Instant, Instant]]:
        """Return the spans (begin, end) between two instants in which the attempt held its PEs."""
        first = max(self.begin, begin)
        last = end if self.end is None else min(self.end, end)
        if not self.pauses and self.released is None:
            return [(first, last)] if last > first else []
        spans = []
        pauses = self.pauses if self.released is None else [*self.pauses, (self.released, last)]
        for off, on in pauses:
            spans.append((first, min(off, last)))
            first = max(first, on)
        return [(a, b) for a, b in (*spans, (first, last)) if b > a]

    def held_time(self, begin: Instant, end: Instant) -> int:
        """Return the time (ms) between two instants for which the attempt held its PEs."""
        return sum(last - first for first, last in self.held(begin, end))

    def ran_for(self, begin: Instant, end: Instant) -> float:
        """Return the time (ms) between two instants for which the attempt ran: measured, else PEs held."""
        if not self.points or not self.points[-1][2]:
            return self.held_time(begin, end)
        since = self.held_time(max(begin, self.points[-1][0]), end) if self.end is None else 0
        return self.used_between(begin, end, "wall") + since

    def begin_at(self, at: Instant) -> None:
        """Note that the executor reports the start: the attempt holds its PEs from ``at`` on."""
        if not self.reported and len(self.points) == 1:
            self.begin = at
            self.points = [(at, 0, 0)]
        self.reported = True


def marks_of(begin: int, end: int, step: int) -> list[int]:
    """Return the instants from ``begin`` on, each ``step`` ms after the one before it, and ``end``."""
    return [*range(begin, end, step), end]


class CapacityOverTime:
    """Number of PEs or CPUs over time: ``first`` at the beginning, and others from some instants on."""

    def __init__(self, first: int) -> None:
        self._since = [(0, first)]

    @property
    def latest(self) -> int:
        """Return the number of PEs or CPUs since the last change."""
        return self._since[-1][1]

    def becomes(self, at: Instant, count: int) -> None:
        """Set the number of PEs or CPUs from an instant on."""
        if count != self.latest:
            self._since.append((at, count))

    def until(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Return the pieces of time from ``begin`` to ``end``, as (end of the piece, PEs or CPUs in it)."""
        pieces = zip(self._since, [*(at for at, _ in self._since[1:]), end], strict=True)
        found = [(min(last, end), count) for (at, count), last in pieces if last > begin and at < end]
        return found or [(end, self.latest)]

    def whole(self, begin: int, end: int) -> int:
        """Return the PE time or CPU time (ms) that was available from ``begin`` to ``end``."""
        passed, whole = begin, 0
        for last, count in self.until(begin, end):
            whole, passed = whole + count * (last - passed), last
        return whole


def held_by_step(
    attempts: Iterable[AttemptHistory], marks: Sequence[int], capacity: CapacityOverTime
) -> list[int]:
    """Return the PE time (ms) held between each mark and the next, at no moment more than ``capacity``."""
    pieces, piece = capacity.until(marks[0], marks[-1]), 0
    changes: list[tuple[int, int]] = []
    for attempt in attempts:
        for first, last in attempt.held(Instant(marks[0]), Instant(marks[-1])):
            changes += ((first, attempt.pes), (last, -attempt.pes))
    held, step, holding, before = [0] * (len(marks) - 1), 0, 0, marks[0]
    for at, change in sorted(changes):
        while before < at:
            mark = marks[step + 1]
            there, most = pieces[piece]
            until = min(at, mark, there)
            held[step] += (holding if holding < most else most) * (until - before)
            before = until
            step += until == mark
            piece += until == there
        holding += change
    return held


def used_by_step(attempt: AttemptHistory, marks: Sequence[int]) -> Iterable[tuple[int, float]]:
    """Yield an attempt's CPU time as (step, ms), step 0 between the first two marks; no empty steps."""
    last = attempt.points[-1][0] if attempt.points else attempt.begin
    place = max(1, bisect_right(marks, attempt.begin))
    before = attempt.used_at(marks[place - 1])
    while place < len(marks) and marks[place - 1] < last:
        used = attempt.used_at(marks[place])
        yield place - 1, used - before
        before, place = used, place + 1
