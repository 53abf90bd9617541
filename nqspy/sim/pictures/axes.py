"""Axes: times and waits to places from left to right, and the words below them."""

from collections.abc import Iterator
from math import log10

from nqspy.model.ids import DAY, HOUR, MINUTE, SECOND
from nqspy.report.drawing import WIDTH, Shape, Stroke, TextLine

LEFT, RIGHT = 132, 16
"""Room beside the axes."""
BELOW = 34
"""Room below them, for their words."""
MOST_MARKS = 10

STEPS = (
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)), *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)), *(n * DAY for n in (1, 2, 7, 14, 28, 91, 182, 364, 728, 3_640)),
)  # fmt: skip
"""Between two marks of a time, ms."""

WAITS = (0, 1, 10, 60, 600, 3_600, 6 * 3_600, 86_400, 7 * 86_400, 28 * 86_400, 364 * 86_400)
"""Marks of waits, s."""


def short_time(ms: float) -> str:
    """A time in its largest unit that leaves no long fraction: 90 min, 1.5 d."""
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")):
        if ms >= unit:
            return f"{round(ms / unit, 1):g} {name}"
    return f"{ms / SECOND:.3g} s" if ms else "0"


FIRST = "the first submission"


class TimeAxis:
    """Times from 0 to ``end`` (ms), counted from ``origin``."""

    def __init__(self, end: int, origin: str = FIRST) -> None:
        self.end, self._origin = max(end, 1), origin

    def x(self, at: float) -> float:
        """Return the place of a value."""
        return LEFT + min(1.0, max(0.0, at / self.end)) * (WIDTH - LEFT - RIGHT)

    def drawn(self, top: float, bottom: float) -> Iterator[Shape]:
        """Draw its marks: lines from ``top`` to ``bottom``, and their times below."""
        step = next((step for step in STEPS if self.end / step <= MOST_MARKS), STEPS[-1])
        for at in range(0, self.end + 1, step):
            yield from _mark(self.x(at), top, bottom, short_time(at))
        yield TextLine(LEFT, bottom + 30, f"after {self._origin}")


class WaitAxis:
    """Waits from 0 to ``longest`` (s): the logarithm of a second more."""

    def __init__(self, longest: float) -> None:
        self._longest = max(longest, 1.0)

    def x(self, wait: float) -> float:
        """Return the place of a value."""
        part = log10(1 + max(0.0, wait)) / log10(1 + self._longest)
        return LEFT + min(1.0, part) * (WIDTH - LEFT - RIGHT - ROOM)

    @property
    def end(self) -> float:
        """Place at which the words behind it begin."""
        return WIDTH - RIGHT - ROOM + 10

    def drawn(self, top: float, bottom: float) -> Iterator[Shape]:
        """Draw its marks, as those of times."""
        for wait in WAITS:
            if wait <= self._longest:
                yield from _mark(self.x(wait), top, bottom, short_time(wait * SECOND))


ROOM = 90
"""To the right of waits, for how many they are."""


def _mark(x: float, top: float, bottom: float, text: str) -> Iterator[Shape]:
    yield Stroke("rule", ((x, top), (x, bottom)))
    yield TextLine(x, bottom + 15, text, "middle")


def fitting(text: str, letters: int = 21) -> str:
    """A label that fits the room left of the axes."""
    return text if len(text) <= letters else text[: letters - 1] + "…"
