"""The busy share by quarter hour: computed from the requests' ways, and drawn as an SVG of its own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from nqspy.model.ids import HOUR, MINUTE, Instant
from nqspy.report.drawing import (
    LEFT,
    RIGHT,
    WIDTH,
    Boxes,
    Drawing,
    Shape,
    Stroke,
    TextLine,
    full_hours,
    legend,
    svg_of,
)
from nqspy.report.over_time import CapacityOverTime, held_by_step, marks_of, used_by_step
from nqspy.report.replay import RequestHistory
from nqspy.report.time_text import Zone

QUARTER = 15 * MINUTE
MOST_BARS = 400
"""A longer time than that many quarter hours is drawn by the hour."""


def step_of(span: int) -> int:
    """Length of a step over so long a time, ms."""
    return QUARTER if span <= MOST_BARS * QUARTER else HOUR


def quarters(
    histories: Iterable[RequestHistory],
    span: tuple[Instant, Instant],
    pes: CapacityOverTime,
    cpus: CapacityOverTime,
    zone: Zone,
) -> tuple[int, list[dict[str, Any]]]:
    """Length of a step in ms, and for each step of a time: ``at``, PE time ``allocated`` as a fraction of
    what the PEs had to give, CPU time ``used`` as a fraction of what the CPUs had."""
    begin, end = span
    step = step_of(end - begin)
    marks = marks_of(begin, max(begin, end), step)
    attempts = [attempt for history in histories for attempt in history.attempts]
    used = [0.0] * (len(marks) - 1)
    for attempt in attempts:
        if attempt.end != attempt.begin:
            for place, more in used_by_step(attempt, marks):
                used[place] += more
    rows = []
    for place, held in enumerate(held_by_step(attempts, marks, pes)):
        all_pes, all_cpus = (each.whole(marks[place], marks[place + 1]) or 1 for each in (pes, cpus))
        parts = {"allocated": round(held / all_pes, 4), "used": round(used[place] / all_cpus, 4)}
        rows.append({"at": zone.text(marks[place]), **parts})
    return step, rows


# ---------------------------------------------------------------- drawn

HEIGHT, TOP, BOTTOM = 250, 34, 40


class _Axis:
    """Moments to places from left to right."""

    def __init__(self, begin: str, end: str) -> None:
        self._begin, last = _seconds(begin), _seconds(end)
        self.span = max(1.0, last - self._begin)

    def x(self, at: str) -> float:
        inside = min(1.0, max(0.0, (_seconds(at) - self._begin) / self.span))
        return LEFT + inside * (WIDTH - LEFT - RIGHT)


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def utilisation_svg(data: Mapping[str, Any]) -> str:
    """Bars of PEs allocated and of CPU time used, with the shifts above and the incidents below the line; a
    title and a description say the same in words. ``data``: the night's report."""
    axis, until = _Axis(data["from"], data["until"]), data["until"]
    shapes = [
        *_frame(axis, data),
        *_bars(axis, data["quarters"], until),
        *_events(axis, data),
        *legend("held", LEFT + 330, "PEs allocated"),
        *legend("used", LEFT + 460, "CPU time used"),
        *legend("bad", LEFT + 590, "incidents"),
    ]
    title = f"PEs allocated and CPUs busy, night of {data['date']}"
    return svg_of(Drawing("busy", title, _description(data), HEIGHT, tuple(shapes)))


def _description(data: Mapping[str, Any]) -> str:
    steps = data["quarters"]
    if not steps:
        return "Nothing was measured."
    low = min(steps, key=lambda each: each["allocated"])
    mean = sum(each["allocated"] for each in steps) / len(steps)
    used = sum(each["used"] for each in steps) / len(steps)
    what = "quarter hours" if data["step_s"] == QUARTER // 1000 else "hours"
    return (
        f"{len(steps)} {what} from {data['from'][11:16]} to {data['until'][11:16]}: PEs allocated "
        f"{mean * 100:.0f} % on the mean, CPU time used {used * 100:.0f} %; least allocated "
        f"{low['allocated'] * 100:.0f} % at {low['at'][11:16]}. Incidents: {len(data['story'])}."
    )


def _y(part: float) -> float:
    return TOP + (1 - min(1.0, max(0.0, part))) * (HEIGHT - TOP - BOTTOM)


def _frame(axis: _Axis, data: Mapping[str, Any]) -> Iterator[Shape]:
    """Lines at parts of the whole, and the hours below."""
    for part in (0.0, 0.5, 1.0):
        y = _y(part)
        yield Stroke("rule", ((LEFT, y), (WIDTH - RIGHT, y)))
        yield TextLine(LEFT - 6, y + 4, f"{part * 100:.0f} %", "end")
    times = [each["at"] for each in data["quarters"]]
    for place in full_hours(times):
        yield TextLine(axis.x(times[place]), HEIGHT - BOTTOM + 16, times[place][11:16], "middle")


def _bars(axis: _Axis, steps: Sequence[Mapping[str, Any]], until: str) -> Iterator[Shape]:
    ends = [*(each["at"] for each in steps[1:]), until]
    for kind, colour, inset in (("allocated", "held", 0.08), ("used", "used", 0.28)):
        boxes = []
        for each, end in zip(steps, ends, strict=False):
            x, y = axis.x(each["at"]), _y(each[kind])
            width = axis.x(end) - x
            boxes.append((x + width * inset, y, max(0.0, width * (1 - 2 * inset)), _y(0) - y))
        yield Boxes(colour, tuple(boxes))


def _events(axis: _Axis, data: Mapping[str, Any]) -> Iterator[Shape]:
    """Shifts and incidents."""
    for each in data["shifts"]:
        x = axis.x(each["at"])
        yield Stroke("rule", ((x, TOP - 10), (x, _y(0))))
        yield TextLine(min(x + 3, WIDTH - 60), TOP - 4, str(each["shift"]))
    for each in data["story"]:
        x, end = axis.x(each["begin"]), axis.x(each["end"] or data["until"])
        said = f"{each['begin'][11:16]}: {each['kind']} {each['who']}".rstrip()
        yield Boxes("bad", ((x, _y(0) + 22, max(3.0, end - x), 6),), said)
