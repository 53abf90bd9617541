"""Departments in the night report: a row for each, and the page of one, with its own requests only."""

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
    span: tuple[Instant, Instant],
) -> list[dict[str, Any]]:
    """Return a row for each group that has requests among ``histories``, in the order of ``fractions``, then
    of first occurrence. ``used``: CPU ms in the night, by group; ``sums``: quotas of the night;
    ``fractions``: entitlements by department; ``span``: begin and end, between which wall time counts."""
    own = by_group(histories)
    names = dict.fromkeys((*(name for name in fractions if name in own), *own))
    total, (begin, end), found = sum(used.values()), span, list[dict[str, Any]]()
    for name in names:
        mine, quota, cpu = own[name], sums.row(name), used.get(name, 0.0)
        wall = sum(attempt.ran_for(begin, end) for history in mine for attempt in history.attempts)
        found.append({
            "name": name,
            "owners": sorted({history.request.spec.owner for history in mine}),
            "share": quota["entitled"],
            "part": quota["got"],
            "deviation": quota["deviation"],
            "cpu_s": round(cpu / 1000, 3),
            "cpu_part": cpu / total if total else 0.0,
            "wall_s": round(wall / 1000, 3),
            **_counts(mine),
        })  # fmt: skip
    return found


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


def page_of(data: Data, group: str) -> dict[str, Any]:
    """Return the night report ``data`` cut to one department: its requests and figures, no texts that name
    others. Raises KeyError if the department had no requests in the night."""
    own = {each["name"]: each for each in data["groups"]}[group]
    deviation = None if own["deviation"] is None else abs(own["deviation"])
    overtaken = [each for each in data["overtaken"] if each["group"] == group]
    lists = ("failed", "waiting", "running")
    own_rows = {key: [each for each in data[key] if each["group"] == group] for key in lists}
    outlook = [each for each in data["outlook"]["departments"] if each["name"] == group]
    shown = [
        {**row, "groups": {name: each for name, each in row["groups"].items() if name == group}}
        for row in data["parts"]["rows"]
    ]
    names = [name for name in data["parts"]["groups"] if name == group]
    exits = [
        # The words of an exit may name others.
        {**each, "count": len(mine), "text": "", "requests": {group: mine}}
        for each in data["exits"]
        if (mine := each["requests"].get(group)) is not None
    ]
    cut = {key: value for key, value in data.items() if key != "line"} | {
        "group": group,
        "requests": own["requests"],
        **night_metrics.outcome([own]),
        "deviation": deviation,
        "order_kept": not overtaken,
        "overtaken": overtaken,
        "groups": [own],
        "parts": data["parts"] | {"groups": names, "rows": shown},
        **own_rows,
        "never": sum(each["never"] for each in outlook),
        "incidents": [],
        "story": for_department(data["story"], group),
        "exits": exits,
        "outlook": {**data["outlook"], "departments": outlook},
    }
    return {"line": night_metrics.night_line(cut), **cut}
