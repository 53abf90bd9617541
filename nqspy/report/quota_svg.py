"""Each department's part of what was charged against what it was entitled to, over time: computed from the
accounts followed (`quota_accounts`), and drawn as an SVG of its own, a strip for each department."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
from nqspy.report.quota_accounts import QuotaAccounts
from nqspy.report.time_text import Zone

STRIP, GAP, TOP, BOTTOM = 54, 12, 30, 26
MOST = 24
"""Departments drawn at most; the data have all."""


def division_of(accounts: QuotaAccounts, names: Sequence[str], zone: Zone) -> dict[str, Any]:
    """``step_s`` and for each step ``at`` and by department ``part`` and ``target`` (fractions of what all
    were charged in that step; left out where it had no work)."""
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
    """Bars of the part that was got, a line for the target; a title and a description say the same in words.
    ``data``: as `division_of` gives it."""
    names, rows = data["groups"][:MOST], data["rows"]
    times, told = [row["at"] for row in rows], list[str]()
    for name in names:
        if own := [row["groups"][name] for row in rows if name in row["groups"]]:
            part, target = (sum(each[key] for each in own) / len(own) for key in ("part", "target"))
            told.append(f"{name} {part * 100:.0f} % against {target * 100:.0f} %")
    said = f"Mean part and target while it had work: {', '.join(told) or 'nothing was used'}."
    hours = full_hours(times)
    height = TOP + len(names) * (STRIP + GAP) + BOTTOM
    shapes = [
        *legend("held", LEFT, "part of what all were charged"),
        Stroke("ink", ((LEFT + 230, 14), (LEFT + 244, 14)), 2),
        TextLine(LEFT + 250, 18, "entitled to (full height: 100 %)"),
        *(shape for place, name in enumerate(names) for shape in _strip(name, place, rows)),
        *(TextLine(LEFT + step * _width(rows), height - 8, times[step][11:16], "middle") for step in hours),
    ]
    return svg_of(Drawing("parts", title, said, height, tuple(shapes)))


def _strip(name: str, place: int, rows: Sequence[Mapping[str, Any]]) -> Iterator[Shape]:
    top, width = TOP + place * (STRIP + GAP), _width(rows)
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
