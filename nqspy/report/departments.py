"""Departments in the night report: a row of each; the page of one, with its own requests only."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from nqspy.model.ids import Instant
from nqspy.model.requests import STARTED
from nqspy.report import night_metrics
from nqspy.report.incidents import for_department
from nqspy.report.replay import RequestHistory, by_group
from nqspy.report.shares import QuotaSums

Data = Mapping[str, Any]


def rows(
    histories: list[RequestHistory],
    used: Mapping[str, float],
    sums: QuotaSums,
    fractions: Mapping[str, float],
    span: tuple[int, int],
) -> list[dict[str, Any]]:
    """A row of each department that had requests: quota against use, what became of its requests. ``used``:
    CPU time (ms) by group; ``span``: begin and end of the night. Wall time is that in which they ran."""
    own = by_group(histories)
    names = dict.fromkeys((*(name for name in fractions if name in own), *own))
    total = sum(used.values())
    return [
        {
            "name": name,
            "owners": sorted({history.request.spec.owner for history in own[name]}),
            **_quota(sums.row(name)),
            "cpu_s": round(used.get(name, 0.0) / 1000, 3),
            "cpu_part": used.get(name, 0.0) / total if total else 0.0,
            "wall_s": round(_wall(own[name], span) / 1000, 3),
            **_counts(own[name]),
        }
        for name in names
    ]


def _quota(row: Mapping[str, float | None]) -> dict[str, float | None]:
    return {"share": row["entitled"], "part": row["got"], "deviation": row["deviation"]}


def _counts(histories: list[RequestHistory]) -> dict[str, Any]:
    ended = [history for history in histories if history.ending is not None]
    others = [history for history in ended if not night_metrics.is_ok(history)]
    withdrawn = sum(history.weight for history in others if history.withdrawn)
    ends = Counter[str]()
    for history in others:
        ends[night_metrics.state_of(history)] += history.weight
    return {
        "requests": sum(history.weight for history in histories),
        "ended_ok": len(ended) - len(others),
        "failed": sum(history.weight for history in others) - withdrawn,
        "withdrawn": withdrawn,
        "waiting": sum(history.weight for history in histories if history.waits),
        "running": sum(history.request.state in STARTED for history in histories),
        "ends": dict(ends),
    }


def _wall(histories: list[RequestHistory], span: tuple[int, int]) -> float:
    begin, end = Instant(span[0]), Instant(span[1])
    return sum(attempt.ran_for(begin, end) for history in histories for attempt in history.attempts)


# ---------------------------------------------------------------- the page of one


def page_of(data: Data, group: str) -> dict[str, Any]:
    """The report of one department: its own requests, its own figures, and what concerned everybody. The
    line's counts are its own; busy is the machine's. Raises KeyError when it had no requests that night."""
    own = {each["name"]: each for each in data["groups"]}[group]
    deviation = None if own["deviation"] is None else abs(own["deviation"])
    overtaken = [each for each in data["overtaken"] if each["group"] == group]
    own_rows = {key: _own(data[key], group) for key in ("failed", "waiting", "running")}
    outlook = _outlook(data["outlook"], group)
    cut = {key: value for key, value in data.items() if key != "line"} | {
        "group": group,
        "requests": own["requests"],
        **night_metrics.outcome([own]),
        "deviation": deviation,
        "order_kept": not overtaken,
        "overtaken": overtaken,
        "groups": [own],
        "parts": _parts(data["parts"], group),
        **own_rows,
        "never": sum(each["never"] for each in outlook["departments"]),
        "incidents": [],
        "story": for_department(data["story"], group),
        "exits": [_failures(each, group) for each in data["exits"] if group in each["requests"]],
        "outlook": outlook,
    }
    return {"line": night_metrics.night_line(cut), **cut}


def _parts(parts: Data, group: str) -> dict[str, Any]:
    rows = [
        {**row, "groups": {name: each for name, each in row["groups"].items() if name == group}}
        for row in parts["rows"]
    ]
    return {**parts, "groups": [name for name in parts["groups"] if name == group], "rows": rows}


def _own(rows: list[dict[str, Any]], group: str) -> list[dict[str, Any]]:
    return [each for each in rows if each["group"] == group]


def _failures(each: Data, group: str) -> dict[str, Any]:
    """What an exit did to one department's requests; its words may name others."""
    mine = each["requests"][group]
    return {**each, "count": len(mine), "text": "", "requests": {group: mine}}


def _outlook(outlook: Data, group: str) -> dict[str, Any]:
    return {**outlook, "departments": [each for each in outlook["departments"] if each["name"] == group]}
