"""Each department's part of what was charged against what it was entitled to, over time: computed from the
accounts followed (`quota_accounts`), and drawn as an SVG of its own, a strip for each department."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from nqspy.report.drawing import LEFT, RIGHT, WIDTH, document, full_hours
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
    height = TOP + len(names) * (STRIP + GAP) + BOTTOM
    drawn = [*_legend(), *(_strip(name, place, rows) for place, name in enumerate(names)),
             *_hours(rows, height)]  # fmt: skip
    style = ".aim{stroke:var(--ink);stroke-width:2;fill:none}"
    return document("parts", height, title, _description(names, rows), drawn, style)


def _description(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    found = []
    for name in names:
        own = [row["groups"][name] for row in rows if name in row["groups"]]
        if own:
            part, target = (sum(each[key] for each in own) / len(own) for key in ("part", "target"))
            found.append(f"{name} {part * 100:.0f} % against {target * 100:.0f} %")
    return f"Mean part and target while it had work: {', '.join(found) or 'nothing was used'}."


def _strip(name: str, place: int, rows: Sequence[Mapping[str, Any]]) -> str:
    top, width = TOP + place * (STRIP + GAP), (WIDTH - LEFT - RIGHT) / max(1, len(rows))
    base, parts, line = top + STRIP, [], []
    for step, row in enumerate(rows):
        each = row["groups"].get(name)
        if each is None:
            continue
        x, y, aim = LEFT + step * width, base - each["part"] * STRIP, base - each["target"] * STRIP
        parts.append(
            f'<rect class="held" x="{x:.1f}" y="{y:.1f}" width="{width * 0.9:.2f}" height="{base - y:.1f}"/>'
        )
        line.append(f"M{x:.1f} {aim:.1f}h{width:.2f}")
    return (
        f'<text class="ink" x="{LEFT - 6}" y="{base - STRIP / 2:.0f}" text-anchor="end">{escape(name)}</text>'
        f'<line class="rule" x1="{LEFT}" y1="{base}" x2="{WIDTH - RIGHT}" y2="{base}"/>'
        f'{"".join(parts)}<path class="aim" d="{"".join(line)}"/>'
    )


def _legend() -> Iterable[str]:
    yield f'<rect class="held" x="{LEFT}" y="8" width="12" height="12"/>'
    yield f'<text class="ink" x="{LEFT + 17}" y="18">part of what all were charged</text>'
    yield f'<path class="aim" d="M{LEFT + 230} 14h14"/>'
    yield f'<text class="ink" x="{LEFT + 250}" y="18">entitled to (full height: 100 %)</text>'


def _hours(rows: Sequence[Mapping[str, Any]], height: int) -> Iterable[str]:
    width = (WIDTH - LEFT - RIGHT) / max(1, len(rows))
    times = [row["at"] for row in rows]
    for step in full_hours(times):
        x, at = LEFT + step * width, times[step][11:16]
        yield f'<text class="ink" x="{x:.1f}" y="{height - 8}" text-anchor="middle">{at}</text>'
