"""Axes: they map times and waits to positions from left to right, and draw the texts below."""

from collections.abc import Iterator
from math import log10

from nqspy.model.ids import DAY, HOUR, MINUTE, SECOND
from nqspy.report.drawing import WIDTH, Shape, Stroke, TextLine

LEFT, RIGHT = 132, 16
"""Width of the margins beside the axes."""
BELOW = 34
"""Height of the texts below the axes."""
MOST_MARKS = 10

STEPS = (
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)), *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)), *(n * DAY for n in (1, 2, 7, 14, 28, 91, 182, 364, 728, 3_640)),
)  # fmt: skip
"""Steps between two marks of a time axis, in ms."""

WAITS = (0, 1, 10, 60, 600, 3_600, 6 * 3_600, 86_400, 7 * 86_400, 28 * 86_400, 364 * 86_400)
"""Marks of waits, in s."""


def short_time(ms: float) -> str:
    """Return a time (ms) in its largest unit without a long fraction: 90 min, 1.5 d."""
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")):
        if ms >= unit:
            return f"{round(ms / unit, 1):g} {name}"
    return f"{ms / SECOND:.3g} s" if ms else "0"


FIRST = "the first submission"


class TimeAxis:
    """Axis of times from 0 to ``end`` (ms). ``origin``: text that names what happens at 0."""

    def __init__(self, end: int, origin: str = FIRST) -> None:
        self.end, self._origin = max(end, 1), origin

    def x(self, at: float) -> float:
        """Return the position (x) of a time (ms) on the axis."""
        return LEFT + min(1.0, max(0.0, at / self.end)) * (WIDTH - LEFT - RIGHT)

    def drawn(self, top: float, bottom: float) -> Iterator[Shape]:
        """Yield the marks: vertical lines from ``top`` to ``bottom`` (y), and their times below."""
        step = next((step for step in STEPS if self.end / step <= MOST_MARKS), STEPS[-1])
        for at in range(0, self.end + 1, step):
            yield from _mark(self.x(at), top, bottom, short_time(at))
        yield TextLine(LEFT, bottom + 30, f"after {self._origin}")


class WaitAxis:
    """Axis of waits from 0 to ``longest`` (s), logarithmic in wait + 1 s."""

    def __init__(self, longest: float) -> None:
        self._longest = max(longest, 1.0)

    def x(self, wait: float) -> float:
        """Return the position (x) of a wait (s) on the axis."""
        part = log10(1 + max(0.0, wait)) / log10(1 + self._longest)
        return LEFT + min(1.0, part) * (WIDTH - LEFT - RIGHT - ROOM)

    @property
    def end(self) -> float:
        """Return the position at which texts behind the axis begin."""
        return WIDTH - RIGHT - ROOM + 10

    def drawn(self, top: float, bottom: float) -> Iterator[Shape]:
        """Yield the marks: vertical lines from ``top`` to ``bottom`` (y), and their waits below."""
        for wait in WAITS:
            if wait <= self._longest:
                yield from _mark(self.x(wait), top, bottom, short_time(wait * SECOND))


ROOM = 90
"""Room to the right of waits for the number of jobs."""


def _mark(x: float, top: float, bottom: float, text: str) -> Iterator[Shape]:
    yield Stroke("rule", ((x, top), (x, bottom)))
    yield TextLine(x, bottom + 15, text, "middle")


def fitting(text: str, letters: int = 21) -> str:
    """Return a label cut to the room left of the axes."""
    return text if len(text) <= letters else text[: letters - 1] + "…"
