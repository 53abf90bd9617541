"""Times of shifts that somebody types: firings count from now on, so that no night ends by a definition."""

from typing import Any

from msgspec.structs import replace

from nqspy.engine import timetable
from nqspy.engine.zones import local
from nqspy.model.events import Change
from nqspy.model.ids import Instant
from nqspy.model.site import Settings
from nqspy.model.texts import in_words
from nqspy.model.tree import as_list


def counted(settings: Settings, changes: tuple[Change, ...], now: Instant) -> tuple[Change, ...]:
    """The changes with what counts of the shifts whose times they bring (`Shift.counts`), unless they say so
    themselves (the word ``now``)."""
    said = {change.path for change in changes if change.path.endswith("/counts")}
    found: list[Change] = []
    for change in changes:
        head, name, path = (*change.path.split("/", 2), "", "")[:3]
        found.append(change)
        if head != "shift" or f"shift/{name}/counts" in said:
            continue
        if change.op == "create" and isinstance(change.value, dict) and "counts" not in change.value:
            times = _words(change.value.get("when"))
            found[-1] = replace(change, value=change.value | {"counts": dict.fromkeys(times, now)})
        elif path == "when" and change.op in ("set", "add") and name in settings.shifts:
            counts = _counts(settings, name, change, now)
            found.append(Change("set", f"shift/{name}/counts", counts))
    return tuple(found)


def _counts(settings: Settings, name: str, change: Change, now: Instant) -> dict[str, Instant]:
    """Times that the shift had already count as they did."""
    shift, times = settings.shifts[name], _words(change.value)
    kept = {cron: at for cron, at in shift.counts.items() if change.op == "add" or cron in times}
    return kept | {cron: now for cron in times if cron not in shift.when}


def _words(value: Any) -> list[str]:
    """A list of words; anything else is refused when it is put in its place."""
    return [word for word in as_list(value) if isinstance(word, str)]


def told(
    settings: Settings, asked: tuple[Change, ...], changes: tuple[Change, ...], zone: str, now: Instant
) -> str:
    """A line for each shift of which only coming firings count now."""
    if changes is asked:
        return ""
    ours = (change for change in changes if change.path.startswith("shift/"))
    names = [change.path.split("/")[1] for change in ours if change not in asked and _is_later(change)]
    return "".join(_line(settings, name, zone, now) for name in dict.fromkeys(names))


def _is_later(change: Change) -> bool:
    value = change.value.get("counts") if change.op == "create" else change.value
    return bool(value)


def _line(settings: Settings, name: str, zone: str, now: Instant) -> str:
    shift = settings.shifts.get(name)
    firing = timetable.next_firing(settings, zone, now, [shift]) if shift is not None else None
    if firing is None:
        return ""
    begins = in_words(local(firing.at, zone), local(now, zone))
    more = "with now behind its times, one that is past counts too"
    return f"shift {name} begins at its next firing, {begins}; {more}\n"
