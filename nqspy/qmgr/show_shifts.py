"""Displays of shifts and of the calendar, as text for people."""

from collections.abc import Mapping, Sequence

from nqspy.model.shifts import Calendar
from nqspy.model.site import Settings
from nqspy.model.texts import pairs, short
from nqspy.model.tree import changed, items
from nqspy.qmgr.values import written

Rows = Sequence[Mapping[str, str]]
"""Rows: coming switches have ``at`` (text with offset) and ``shift``; Sundays ``date`` (ISO) and ``name``."""


def show_shifts(
    settings: Settings, current: str | None, coming: Rows = (), manual: bool = False,
    until: str | None = None, holidays: Rows = (),
) -> str:  # fmt: skip
    """Return the shifts as text, the present one marked, with ``coming`` switches and ``holidays``;
    ``manual``: True if it was switched by hand, ``until`` (RFC 3339) then."""
    lines = _shifts(settings, current)
    if settings.calendar != Calendar():
        given = written(changed(settings.calendar)).items()
        lines.append(f"calendar: {'; '.join(f'{name} {value}' for name, value in given)}")
    how = f" (switched by hand{f', until {short(until)}' if until else ''})" if manual else ""
    lines.append(f"in force: {current or 'none'}{how}")
    days = {row["date"]: f"  {row['date']}{'':>11}{row['name']}, counts as a Sunday" for row in holidays}
    switches = [(row["at"], f"  {short(row['at'])}  {row['shift']}") for row in coming]
    lines += [text for _, text in sorted([*days.items(), *switches], key=lambda pair: pair[0])]
    return "\n".join(lines)


def _shifts(settings: Settings, current: str | None = None) -> list[str]:
    lines = []
    for shift in settings.shifts.values():
        mark = "*" if shift.name == current else " "
        spill = f", spill={shift.spill}" if shift.spill != "leave" else ""
        times = ", ".join(f'"{cron}"' for cron in shift.when)
        lines += [f"{mark} {shift.name}: {times}{spill}", *(f"      {line}" for line in shift.lines)]
    return lines


def show_calendar(settings: Settings, coming: Rows = ()) -> str:
    """Return the calendar as text, with coming days that count as Sundays."""
    days = [f"  {row['date']}  {row['name']}" for row in coming]
    rows = pairs(written(items(settings.calendar)).items())
    return "\n".join(["Calendar\n--------", rows, *(["count as Sundays:"] if days else []), *days])


def shift_settings(settings: Settings) -> str:
    """Return the shifts with their times and commands as text, from settings alone."""
    return "\n".join(_shifts(settings)) or "  no shifts"
