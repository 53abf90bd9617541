"""A comparison of two runs as text for people."""

from collections.abc import Iterator, Mapping
from typing import Any

from nqspy.model.texts import counted, grid, percent, points, some_of
from nqspy.report.shares import TOO_LITTLE
from nqspy.report.time_text import short

MOST = 20
"""Most requests that are shown one by one."""

Data = Mapping[str, Any]


def text_of(data: Data, words: str, brief: bool = False) -> str:
    """Return a replay's data as text; ``words``: the change; ``brief``: without users and single requests."""
    return "".join(_parts(data, words, brief))


def _parts(data: Data, words: str, brief: bool) -> Iterator[str]:
    yield f"{short(data['since'])} to {short(data['until'])}: {counted(data['events'], 'event')}\n"
    others = f"{_count(data['as_it_was'], 'event')} (see `nqspy manual replay`)"
    again = others if data["as_it_was"] else "the same as the journal"
    yield f"replayed without a change: {elsewhere(data) if words else again}\n"
    yield from (f"{line}\n" for line in unasked_exits(data))
    if not words:
        return
    if data["left"] is None or not data["differences"]:  # whatever exits would have answered otherwise
        yield f"with {words}: no difference\n"
        return
    yield f"with {words}: {_count(data['differences'], 'event')}, from {short(data['left'])} on\n"
    if guessed := data["guessed"]:
        yield f"run time not known, simulated up to the limit: {some_of(guessed, 3)}\n"
    for name, text in list(data["refused"].items())[:MOST]:
        yield f"{name} would have been refused: {text}\n"
    starts = data["starts"]
    counts = (f"{starts[kind]} {what}" for kind, what in _KINDS.items() if starts[kind] or kind in _ALWAYS)
    yield f"\nstarts: {', '.join(counts)}\n"
    yield f"busy: {_was(data['busy'], percent)} %\n"
    if data["deviation"]["was"] is not None or data["deviation"]["would"] is not None:
        points_of = _was(data["deviation"], lambda each: "-" if each is None else f"{each:.1f}")
        yield f"largest quota deviation: {points_of} points\n"
    elif any(data["little_use"].values()):
        yield f"largest quota deviation: {TOO_LITTLE}\n"
    yield "\n" + _table(data["groups"], "GROUP")
    if brief:
        return
    if len(data["users"]) > 1:
        yield "\n" + _table(data["users"], "USER")
    yield from _moves(data["moved"])


_KINDS = {
    "earlier": "earlier",
    "later": "later",
    "same": "the same",
    "never": "no longer",
    "new": "only with the change",
}
_ALWAYS = ("earlier", "later", "same")


def elsewhere(data: Data) -> str:
    """Return in words how far the run without a change agrees with the journal."""
    if not data["as_it_was"]:
        return "every start within 1 s of the journal"
    return f"{_count(data['as_it_was'], 'start')} (see `nqspy manual replay`)"


def _count(number: int, what: str) -> str:
    return f"1 {what} differs" if number == 1 else f"{number} {what}s differ"


def unasked_exits(data: Data) -> Iterator[str]:
    """Yield lines for people on versions of user exits that could not be asked in the replay."""
    for each in data["exits"]["missing"]:
        since = "" if each["since"] is None else f" {short(each['since'])}"
        named = f"exit {each['exit']} ({each['digest']})"
        yield f"{named}, loaded{since}: not asked, because no copy is stored"
    until = data["exits"]["unknown_until"]
    if data["as_it_was"] and until is not None:
        yield f"exits loaded before {short(until)} are not recorded: those of today were asked"


def _was(pair: Data, written: Any) -> str:
    return f"{written(pair['was'])} -> {written(pair['would'])}"


def _table(rows: Mapping[str, Data], head: str) -> str:
    quotas = any("deviation" in row for row in rows.values())
    heads = [head, "EARLIER", "LATER", "SAME", "MEAN WAIT", "->"] + (["DEVIATION", "->"] if quotas else [])
    cells = []
    for name, row in rows.items():
        waits = (_span(row["wait_s"][each]) for each in ("was", "would"))
        deviations = [points(row["deviation"][each]) for each in ("was", "would")] if quotas else []
        later = row["later"] + row["never"]
        cells.append([name, row["earlier"], later, row["same"], *waits, *deviations])
    return grid(heads, cells)


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    minutes, rest = divmod(round(abs(seconds)), 60)
    sign = "-" if seconds < 0 else ""
    return f"{sign}{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _moves(moved: list[Data]) -> Iterator[str]:
    if not moved:
        return
    rows = []
    for each in moved[:MOST]:
        times = ("-" if each[course] is None else short(each[course])[5:] for course in ("was", "would"))
        why = "" if each["reason"] is None else str(each["reason"]["text"])
        if each["was"] is not None and (each["later_s"] is None or each["later_s"] > 0):
            passed = f"overtaken by {', '.join(each['lets_pass'])}" if each["lets_pass"] else ""
            why = "; ".join(filter(None, (why, passed)))
        elif why:
            why = f"without the change: {why}"
        rows.append((each["id"], each["name"], each["group"], *times, _span(each["later_s"]), why))
    yield "\n" + grid(("REQUEST", "NAME", "GROUP", "WAS", "WOULD", "LATER", "WHY"), rows, left=5)
    if len(moved) > MOST:
        yield f"and {len(moved) - MOST} more; --json has all\n"
