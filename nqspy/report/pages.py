"""The night report as text and as a page of its own."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from nqspy.report.grid import grid

Data = Mapping[str, Any]


def night_text(data: Data) -> str:
    """The report for people: the line first, then departments, what failed, what waits, what went wrong."""
    parts = [data["line"], _period(data)]
    if data["clock"]:
        parts.append(f"clock: {data['clock']}")
    parts += ["", *_figures(data)]
    for title, heads, rows in _sections(data):
        if rows:
            parts += [
                "",
                f"{title}:",
                grid(heads, rows, left=1 if heads is _GROUPS else len(heads)).rstrip("\n"),
            ]
    return "\n".join(parts) + "\n"


def night_html(data: Data) -> str:
    """The same as one self-contained page."""
    tables = "".join(_table(*section) for section in _sections(data) if section[2])
    notes = "".join(
        f"<p>{escape(text)}</p>" for text in (_period(data), *_figures(data), _clock(data)) if text
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Night of {escape(data["date"])}</title>'
        f"<style>{_STYLE}</style><h1>Night of {escape(data['date'])}</h1><p><strong>{escape(data['line'])}"
        f"</strong></p>{notes}{tables}</html>\n"
    )


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{padding:.15rem .6rem;border-bottom:1px solid #ccc;text-align:left}"
    "td.n{text-align:right;font-variant-numeric:tabular-nums}"
)


def _clock(data: Data) -> str:
    return f"clock: {data['clock']}" if data["clock"] else ""


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f"<h2>{escape(title)}</h2><table><tr>{head}</tr>{body}</table>"


def _cell(text: str) -> str:
    number = text.replace(".", "").replace("-", "").replace("+", "").isdigit()
    return f"<td{' class=n' if number else ''}>{escape(text)}</td>"


def _period(data: Data) -> str:
    what = f"shift {data['shift']}" if data["shift"] else "noon to noon"
    going = ", still going on" if data["ongoing"] else ""
    return f"from {_short(data['from'])} to {_short(data['until'])} ({what}{going})"


def _figures(data: Data) -> Iterable[str]:
    if data["busy"] is not None:
        span = f"{_short(data['busy_from'])} to {_short(data['busy_until'])}"
        yield (
            f"processors busy {data['busy'] * 100:.1f} % (PE time allocated from {span}), "
            f"CPU time used {data['cpu_busy'] * 100:.1f} %"
        )
    if data["compared_at"] is not None:
        yield f"quotas compared at {_short(data['compared_at'])}, when the first list had nothing waiting"
    for each in data["overtaken"][:_MOST]:
        yield f"order changed at {_short(each['at'])}: {each['started']} was started before {each['before']}"


_MOST = 20
"""Changes of order named in the text; the data have all."""

_GROUPS = (
    "GROUP",
    "SHARE %",
    "PART %",
    "POINTS",
    "CPU s",
    "CPU %",
    "REQ",
    "OK",
    "FAILED",
    "WAITING",
    "RUNNING",
)
_FAILED = ("REQUEST", "NAME", "OWNER", "GROUP", "END", "STATUS", "WHY", "ERRORS")
_WAITING = ("REQUEST", "NAME", "OWNER", "GROUP", "QUEUE", "STATE", "REASON")
_RUNNING = ("REQUEST", "NAME", "OWNER", "GROUP", "QUEUE")
_INCIDENTS = ("WHEN", "WHAT", "WHO", "TEXT")


def _sections(data: Data) -> Iterable[tuple[str, Sequence[str], list[tuple[str, ...]]]]:
    yield "departments", _GROUPS, [_group(each) for each in data["groups"]]
    yield "failed", _FAILED, [_failed(each) for each in data["failed"]]
    yield (
        "waiting",
        _WAITING,
        [(*_who(each), each["state"], each["reason"]["text"]) for each in data["waiting"]],
    )
    yield "running", _RUNNING, [_who(each) for each in data["running"]]
    yield "incidents", _INCIDENTS, [_incident(each) for each in data["incidents"]]


def _group(each: Data) -> tuple[str, ...]:
    counts = (str(each[key]) for key in ("requests", "ended_ok", "failed", "waiting", "running"))
    deviation = "-" if each["deviation"] is None else f"{each['deviation']:+.1f}"
    figures = (_percent(each["share"]), _percent(each["part"]), deviation)
    return (each["name"], *figures, f"{each['cpu_s']:.0f}", _percent(each["cpu_part"]), *counts)


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{part * 100:.1f}"


def _who(each: Data) -> tuple[str, str, str, str, str]:
    return each["id"], each["name"], each["owner"], each["group"], each["queue"]


def _failed(each: Data) -> tuple[str, ...]:
    status = each["exit_status"] if each["exit_signal"] is None else f"signal {each['exit_signal']}"
    shown = "-" if status is None else str(status)
    return (*_who(each)[:4], each["end_reason"], shown, each["text"] or "-", each["error"] or "-")


def _incident(each: Data) -> tuple[str, ...]:
    kind = "restart" if each["kind"] == "machine_found" else each["kind"]
    who = each.get("who") or each.get("exit") or each.get("shift") or each.get("request") or "nqsd"
    return _short(each["at"]), str(kind), str(who), str(each.get("text") or "the daemon was started")


def _short(text: str) -> str:
    """``2026-03-02 21:00:00``."""
    return f"{text[:10]} {text[11:19]}"
