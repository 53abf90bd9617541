"""Pictures of a night in SVG: the busy share, and departments' parts against their entitlements."""

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
from nqspy.report.quota_accounts import QuotaAccounts
from nqspy.report.replay import RequestHistory
from nqspy.report.time_text import Zone

QUARTER = 15 * MINUTE
MOST_BARS = 400
"""Most quarter hours that are drawn; a longer time is drawn by the hour."""


def step_of(span: int) -> int:
    """Return the length (ms) of a picture's step for a time of ``span`` ms: a quarter hour, or an hour."""
    return QUARTER if span <= MOST_BARS * QUARTER else HOUR


def quarters(
    histories: Iterable[RequestHistory],
    span: tuple[Instant, Instant],
    pes: CapacityOverTime,
    cpus: CapacityOverTime,
    zone: Zone,
) -> tuple[int, list[dict[str, Any]]]:
    """Return the step (ms), and a row for each step of ``span``: ``at``, and as fractions of the site's the
    PE time ``allocated`` and the CPU time ``used``."""
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


HEIGHT, TOP, BOTTOM = 250, 34, 40


class _Axis:
    """Maps instants to positions from left to right."""

    def __init__(self, begin: str, end: str) -> None:
        self._begin, last = _seconds(begin), _seconds(end)
        self.span = max(1.0, last - self._begin)

    def x(self, at: str) -> float:
        inside = min(1.0, max(0.0, (_seconds(at) - self._begin) / self.span))
        return LEFT + inside * (WIDTH - LEFT - RIGHT)


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def utilisation_svg(data: Mapping[str, Any]) -> str:
    """Return bars of PEs allocated and CPU time used, with shifts and incidents, of a night's report."""
    axis, until = _Axis(data["from"], data["until"]), data["until"]
    shapes = [
        *_chart(axis, data, until),
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
        f"{mean * 100:.0f} % on average, CPU time used {used * 100:.0f} %; least allocated "
        f"{low['allocated'] * 100:.0f} % at {low['at'][11:16]}. Incidents: {len(data['story'])}."
    )


def _y(part: float) -> float:
    return TOP + (1 - min(1.0, max(0.0, part))) * (HEIGHT - TOP - BOTTOM)


def _chart(axis: _Axis, data: Mapping[str, Any], until: str) -> Iterator[Shape]:
    """Yield lines at fractions, hours below, the bars, shifts and incidents."""
    for part in (0.0, 0.5, 1.0):
        y = _y(part)
        yield Stroke("rule", ((LEFT, y), (WIDTH - RIGHT, y)))
        yield TextLine(LEFT - 6, y + 4, f"{part * 100:.0f} %", "end")
    steps = data["quarters"]
    times = [each["at"] for each in steps]
    for place in full_hours(times):
        yield TextLine(axis.x(times[place]), HEIGHT - BOTTOM + 16, times[place][11:16], "middle")
    for kind, colour, inset in (("allocated", "held", 0.08), ("used", "used", 0.28)):
        boxes = []
        for each, end in zip(steps, [*times[1:], until], strict=False):
            x, y = axis.x(each["at"]), _y(each[kind])
            width = axis.x(end) - x
            boxes.append((x + width * inset, y, max(0.0, width * (1 - 2 * inset)), _y(0) - y))
        yield Boxes(colour, tuple(boxes))
    for each in data["shifts"]:
        x = axis.x(each["at"])
        yield Stroke("rule", ((x, TOP - 10), (x, _y(0))))
        yield TextLine(min(x + 3, WIDTH - 60), TOP - 4, str(each["shift"]))
    for each in data["story"]:
        x, width = axis.x(each["begin"]), axis.x(each["end"] or until) - axis.x(each["begin"])
        caption = f"{each['begin'][11:16]}: {each['kind']} {each['who']}".rstrip()
        yield Boxes("bad", ((x, _y(0) + 22, max(3.0, width), 6),), caption)


STRIP, GAP, ABOVE, BELOW = 54, 12, 30, 26
MOST_STRIPS = 24
"""Most departments that are drawn; the data have all."""


def division_of(accounts: QuotaAccounts, names: Sequence[str], zone: Zone) -> dict[str, Any]:
    """Return ``step_s`` and ``rows``: for each step of ``accounts`` each department's ``part`` of all charges
    and its ``target`` (entitlement), as fractions; departments without work then are left out."""
    rows = []
    for place, (before, now) in enumerate(zip(accounts.sums, accounts.sums[1:], strict=False)):
        found, step_sums = {}, now.since(before)
        for name in names if step_sums.deviations else ():
            row = step_sums.row(name)
            if step_sums.worked.get(name) and row["got"] is not None and row["entitled"] is not None:
                found[name] = {"part": round(row["got"], 4), "target": round(row["entitled"], 4)}
        rows.append({"at": zone.text(accounts.marks[place]), "groups": found})
    step = accounts.marks[1] - accounts.marks[0] if len(accounts.marks) > 1 else 0
    return {"step_s": step // 1000, "groups": list(names), "rows": rows}


def quota_svg(data: Mapping[str, Any], title: str) -> str:
    """Return the picture of each department's part of all charges, with lines for its entitlement. ``data``:
    from `division_of`."""
    names, rows = data["groups"][:MOST_STRIPS], data["rows"]
    times, means = [row["at"] for row in rows], list[str]()
    for name in names:
        if own := [row["groups"][name] for row in rows if name in row["groups"]]:
            part, target = (sum(each[key] for each in own) / len(own) for key in ("part", "target"))
            means.append(f"{name} {part * 100:.0f} % against {target * 100:.0f} %")
    caption = f"Mean part and target while it had work: {', '.join(means) or 'nothing was used'}."
    hours = full_hours(times)
    height = ABOVE + len(names) * (STRIP + GAP) + BELOW
    shapes = [
        *legend("held", LEFT, "part of what all were charged"),
        Stroke("ink", ((LEFT + 230, 14), (LEFT + 244, 14)), 2),
        TextLine(LEFT + 250, 18, "entitled to (full height: 100 %)"),
        *(shape for place, name in enumerate(names) for shape in _strip(name, place, rows)),
        *(TextLine(LEFT + step * _width(rows), height - 8, times[step][11:16], "middle") for step in hours),
    ]
    return svg_of(Drawing("parts", title, caption, height, tuple(shapes)))


def _strip(name: str, place: int, rows: Sequence[Mapping[str, Any]]) -> Iterator[Shape]:
    top, width = ABOVE + place * (STRIP + GAP), _width(rows)
    base, parts, aims = top + STRIP, [], []
    for step, row in enumerate(rows):
        if (each := row["groups"].get(name)) is None:
            continue
        x, tall, aim = LEFT + step * width, each["part"] * STRIP, base - each["target"] * STRIP
        parts.append((x, base - tall, width * 0.9, tall))
        aims.append(Stroke("ink", ((x, aim), (x + width, aim)), 2))
    yield TextLine(LEFT - 6, base - STRIP / 2, name, "end")
    yield Stroke("rule", ((LEFT, base), (WIDTH - RIGHT, base)))
    yield Boxes("held", tuple(parts))
    yield from aims


def _width(rows: Sequence[Mapping[str, Any]]) -> float:
    return (WIDTH - LEFT - RIGHT) / max(1, len(rows))
