"""PEs held and time used, step by step over a time."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from nqspy.model.ids import Instant
from nqspy.report.attempts import AttemptHistory


def marks_of(begin: int, end: int, step: int) -> list[int]:
    """The instants between which a time is measured: ``begin``, others ``step`` apart, ``end``."""
    return [*range(begin, end, step), end]


class CapacityOverTime:
    """Numbers of PEs or CPUs over time: ``first`` to begin with, and others from some instants on."""

    def __init__(self, first: int) -> None:
        self._since = [(0, first)]

    @property
    def latest(self) -> int:
        """The last number."""
        return self._since[-1][1]

    def becomes(self, at: Instant, count: int) -> None:
        """So many from now on."""
        if count != self.latest:
            self._since.append((at, count))

    def until(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Return the pieces from ``begin`` to ``end``: until when there were how many."""
        pieces = zip(self._since, [*(at for at, _ in self._since[1:]), end], strict=True)
        found = [(min(last, end), count) for (at, count), last in pieces if last > begin and at < end]
        return found or [(end, self.latest)]

    def whole(self, begin: int, end: int) -> int:
        """PE time (ms) that they had to give meanwhile."""
        passed, whole = begin, 0
        for last, count in self.until(begin, end):
            whole, passed = whole + count * (last - passed), last
        return whole


def held_by_step(
    attempts: Iterable[AttemptHistory], marks: Sequence[int], capacity: CapacityOverTime
) -> list[int]:
    """PE time (ms) held between each mark and the next one, at no moment more than ``capacity``."""
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
    """CPU time (ms) that an attempt used, as (step, amount), step 0 lying between the first two marks; steps
    without an attempt are left out."""
    last = attempt.points[-1][0] if attempt.points else attempt.begin
    place = max(1, bisect_right(marks, attempt.begin))
    before = attempt.used_at(marks[place - 1])
    while place < len(marks) and marks[place - 1] < last:
        used = attempt.used_at(marks[place])
        yield place - 1, used - before
        before, place = used, place + 1
