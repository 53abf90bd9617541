"""The night report as text: for the terminal, and for mails."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from nqspy.model.texts import counted, folded, grid, percent, points
from nqspy.report.incidents import sentence
from nqspy.report.shares import TOO_LITTLE, charge_words
from nqspy.report.time_text import short

Data = Mapping[str, Any]


def night_text(data: Data, most: int | None = None) -> str:
    """Return the report of a night or department as text. ``most``: most rows of each table, None: all."""
    parts = [folded(data["line"]), folded(period(data))]
    if data["clock"]:
        parts.append(folded(f"clock: {data['clock']}"))
    parts += ["", *map(folded, figures(data))]
    for section in sections(data):
        if section.rows:
            rows, left = section.rows[:most], 1 if section.heads is _GROUPS else len(section.heads)
            parts += ["", f"{section.title}:", grid(section.heads, rows, left=left).rstrip("\n")]
            if len(rows) < len(section.rows):
                parts.append(f"and {len(section.rows) - len(rows)} more, see nqspy report night --date DATE")
    for title, lines in paragraphs(data):
        if lines:
            shown = lines[:most]
            cut = [f"and {len(lines) - len(shown)} more"] if len(shown) < len(lines) else []
            parts += ["", f"{title}:", *(folded(f"  {line}") for line in (*shown, *cut))]
    return "\n".join(parts) + "\n"


def period(data: Data) -> str:
    """Return begin, end and shift of the night as text, with a note if it is not over."""
    what = f"shift {data['shift']}" if data["shift"] else "noon to noon"
    going = ", not over yet" if data["ongoing"] else ""
    return f"from {short(data['from'])} to {short(data['until'])} ({what}{going})"


def figures(data: Data) -> Iterable[str]:
    """Yield sentences on how busy the machine was, and how quotas and order were kept."""
    if data["busy"] is not None:
        span = f"{short(data['busy_from'])} to {short(data['busy_until'])}"
        yield (
            f"PEs allocated {data['busy'] * 100:.1f} % of the time from {span}; "
            f"CPUs busy {data['cpu_busy'] * 100:.1f} % of it"
        )
    if (moves := data["moves"])["gave_way"]:
        hours, paged = moves["pe_hours"], moves["paged_bytes"] >> 20
        yield (
            f"requests gave way to a higher class: {counted(moves['gave_way'], 'time')}; "
            f"moving out took {hours:.2f} PE hours, {paged} MB were paged out"
        )
    if data["withdrawn"]:
        yield f"withdrawn (deleted by their owners): {data['withdrawn']}"
    if data["never"]:
        yield f"can never start: {data['never']}, listed below with the reasons"
    what = charge_words(data["charge"])
    if data["deviation"] is not None:
        yield f"quotas: a department's part of all {what}, minus the part it was entitled to"
    elif data["little_use"]:
        yield f"quotas: {TOO_LITTLE}: {what} was less than 1 % of the PE time that requests held"
    for each in data["overtaken"][:_MOST]:
        yield f"order changed at {short(each['at'])}: {each['started']} started before {each['before']}"


_MOST = 20
"""Most changes of order named in the text; the data have all."""

_GROUPS = (
    "GROUP", "SHARE %", "PART %", "POINTS", "CPU s", "CPU %", "WALL s", "REQ", "OK", "FAILED", "WAITING",
    "RUNNING",
)  # fmt: skip
_FAILED = ("REQUEST", "NAME", "OWNER", "GROUP", "END", "STATUS", "WHY", "ERRORS")
_WAITING = ("REQUEST", "NAME", "OWNER", "GROUP", "QUEUE", "STATE", "REASON")
_RUNNING = ("REQUEST", "NAME", "OWNER", "GROUP", "QUEUE", "SINCE")
_EXITS = ("EXIT", "FAILURES", "FIRST", "LAST", "OFF", "REQUESTS", "TEXT")
_OUTLOOK = ("GROUP", "QUEUED", "HELD", "CAN NEVER START", "CPU s ASKED", "CPU s EXPECTED", "DRAINED ABOUT")


class Section(Struct, frozen=True):
    """A table of the report: title, column heads, and rows of texts."""

    title: str
    heads: Sequence[str]
    rows: Sequence[tuple[str, ...]]


def sections(data: Data) -> Iterable[Section]:
    """Yield the tables: departments, what failed and why, what waits and why, what runs, exits, outlook."""
    rows: list[tuple[str, ...]] = []
    for each in data["groups"]:
        counts = (str(each[key]) for key in ("requests", "ended_ok", "failed", "waiting", "running"))
        quota = (percent(each["share"]), percent(each["part"]), points(each["deviation"]))
        used = (f"{each['cpu_s']:.0f}", percent(each["cpu_part"]), f"{each['wall_s']:.0f}")
        rows.append((each["name"], *quota, *used, *counts))
    yield Section("departments", _GROUPS, rows)
    rows = []
    for each in data["failed"]:
        status = each["exit_status"] if each["exit_signal"] is None else f"signal {each['exit_signal']}"
        shown = "-" if status is None else str(status)
        rows.append((*_who(each)[:4], each["end_reason"], shown, each["why"], each["error"] or "-"))
    yield Section("failed", _FAILED, rows)
    waiting = [(*_who(each), each["state"], each["reason"]["text"]) for each in data["waiting"]]
    yield Section("waiting", _WAITING, waiting)
    running = [(*_who(each), short(each["started"] or "")) for each in data["running"]]
    yield Section("running", _RUNNING, running)
    rows = []
    for each in data["exits"]:
        ids = [id for some in each["requests"].values() for id in some]
        named = " ".join(ids[:_FEW]) + (f" +{len(ids) - _FEW}" if len(ids) > _FEW else "")
        times = (at[11:16] if at else "-" for at in (each["first"], each["last"], each["off"]))
        rows.append((each["exit"], str(each["count"]), *times, named or "-", each["text"] or "-"))
    yield Section("exits that failed", _EXITS, rows)
    rows = []
    for each in data["outlook"]["departments"]:
        asked = f"{each['cpu_s']:.0f}" + ("+" if each["without_cpu_limit"] else "")
        drained = short(each["drained_at"])[:16] if each["drained_at"] else "-"
        if each["not_before"]:
            drained = f"not before {short(each['not_before'])[:16]}"
        waits = (str(each["queued"]), str(each["held"]), str(each["never"]))
        rows.append((each["name"], *waits, asked, f"{each['expected_cpu_s']:.0f}", drained))
    yield Section("outlook", _OUTLOOK, rows)


def paragraphs(data: Data) -> Iterable[tuple[str, list[str]]]:
    """Yield the sections of sentences: incidents with their times, the coming shifts."""
    rows = []
    for each in data["story"]:
        begin, end = each["begin"], each["end"]
        until = "-     " if end is None else f"-{end[11:16]}" if end[:16] != begin[:16] else "      "
        rows.append(f"{begin[:10]} {begin[11:16]}{until}  {sentence(each)}")
    yield "incidents", rows
    coming = data["outlook"]["coming"]
    yield "next", [f"{each['at'][:10]} {each['at'][11:16]}  shift {each['shift']}" for each in coming]
    yield "holidays", list(data["outlook"]["holidays"])


_FEW = 3
"""Most requests named among those that an exit failed on."""


def _who(each: Data) -> tuple[str, str, str, str, str]:
    return each["id"], each["name"], each["owner"], each["group"], each["queue"]
