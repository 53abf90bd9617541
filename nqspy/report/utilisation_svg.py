"""The busy share by quarter hour: computed from the requests' ways, and drawn as an SVG of its own."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

from nqspy.model.ids import HOUR, MINUTE, Instant
from nqspy.report.drawing import LEFT, RIGHT, WIDTH, document, full_hours
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
    axis = _Axis(data["from"], data["until"])
    parts = [
        _grid(),
        *_bars(axis, data["quarters"], data["until"]),
        *_hours(axis, data["quarters"]),
        *(_shift(axis, each) for each in data["shifts"]),
        *(_incident(axis, each, data["until"]) for each in data["story"]),
        _legend(),
    ]
    title = f"PEs allocated and CPUs busy, night of {data['date']}"
    return document("busy", HEIGHT, title, _description(data), parts)


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


def _grid() -> str:
    lines = []
    for part in (0.0, 0.5, 1.0):
        y = _y(part)
        lines.append(f'<line class="rule" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        lines.append(_text(LEFT - 6, y + 4, f"{part * 100:.0f} %", "end"))
    return "".join(lines)


def _text(x: float, y: float, said: str, anchor: str = "start", kind: str = "ink") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(said)}</text>'


def _bars(axis: _Axis, steps: Sequence[Mapping[str, Any]], until: str) -> Iterable[str]:
    for place, each in enumerate(steps):
        end = steps[place + 1]["at"] if place + 1 < len(steps) else until
        x, width = axis.x(each["at"]), axis.x(end) - axis.x(each["at"])
        for kind, inset in (("allocated", 0.08), ("used", 0.28)):
            y = _y(each[kind])
            yield (
                f'<rect class="{"held" if kind == "allocated" else "used"}" x="{x + width * inset:.2f}" '
                f'y="{y:.2f}" width="{max(0.0, width * (1 - 2 * inset)):.2f}" height="{_y(0) - y:.2f}"/>'
            )


def _hours(axis: _Axis, steps: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    times = [each["at"] for each in steps]
    for place in full_hours(times):
        yield _text(axis.x(times[place]), HEIGHT - BOTTOM + 16, times[place][11:16], "middle")


def _shift(axis: _Axis, each: Mapping[str, Any]) -> str:
    x = axis.x(each["at"])
    line = f'<line class="rule" x1="{x:.1f}" y1="{TOP - 10}" x2="{x:.1f}" y2="{_y(0):.1f}"/>'
    return line + _text(min(x + 3, WIDTH - 60), TOP - 4, str(each["shift"]))


def _incident(axis: _Axis, each: Mapping[str, Any], until: str) -> str:
    x, end, y = axis.x(each["begin"]), axis.x(each["end"] or until), _y(0) + 22
    said = f"{each['begin'][11:16]}: {each['kind']} {each['who']}".rstrip()
    return (
        f'<rect class="bad" x="{x:.1f}" y="{y:.1f}" width="{max(3.0, end - x):.1f}" height="6">'
        f"<title>{escape(said)}</title></rect>"
    )


def _legend() -> str:
    found, x = [], LEFT + 330.0
    for kind, said in (("held", "PEs allocated"), ("used", "CPU time used"), ("bad", "incidents")):
        found.append(f'<rect class="{kind}" x="{x:.0f}" y="4" width="12" height="12"/>')
        found.append(_text(x + 17, 14, said))
        x += 130
    return "".join(found)
