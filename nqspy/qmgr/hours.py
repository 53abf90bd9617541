"""Displays of shifts and of the calendar, as text for people."""

from collections.abc import Mapping, Sequence

from nqspy.model.shifts import Calendar, Shift
from nqspy.model.site import Settings
from nqspy.model.tree import declared, get
from nqspy.qmgr.values import write

Rows = Sequence[Mapping[str, str]]
"""What is to come: switches as ``at`` (text with offset) and ``shift``; days that count as Sundays as
``date`` (ISO) and ``name``."""


def show_shifts(
    settings: Settings,
    current: str | None,
    coming: Rows = (),
    manual: bool = False,
    until: str | None = None,
    holidays: Rows = (),
) -> str:
    """Shifts with their times and commands, the one in force marked, and the ``coming`` switches among the
    ``holidays``; ``until``: when a switch by hand ends."""
    lines = []
    for shift in settings.shifts.values():
        mark = "*" if shift.name == current else " "
        lines += [f"{mark} {_shift_head(shift)}", *(f"      {line}" for line in shift.lines)]
    if settings.calendar != Calendar():
        lines.append(f"calendar: {_calendar_words(settings.calendar)}")
    how = f" (switched by hand{f', until {until}' if until else ''})" if manual else ""
    lines.append(f"in force: {current or 'none'}{how}")
    days = {row["date"]: f"  {row['date']}{'':>21}{row['name']}, counts as a Sunday" for row in holidays}
    switches = [(row["at"], f"  {row['at']}  {row['shift']}") for row in coming]
    lines += [text for _, text in sorted([*days.items(), *switches], key=lambda pair: pair[0])]
    return "\n".join(lines)


def _shift_head(shift: Shift) -> str:
    spill = f", spill={shift.spill}" if shift.spill != "leave" else ""
    times = ", ".join(f'"{cron}"' for cron in shift.when)
    return f"{shift.name}: {times}{spill}"


def _calendar_words(calendar: Calendar) -> str:
    known = declared(Calendar)
    given = {name: get(calendar, name) for name in known if get(calendar, name)}
    return "; ".join(f"{name} {write(known[name], value)}" for name, value in given.items())


def show_calendar(settings: Settings, coming: Rows = ()) -> str:
    """The calendar, and the days to come that count as Sundays."""
    rows = [
        f"  {name:<30}{write(info, get(settings.calendar, name))}"
        for name, info in declared(Calendar).items()
    ]
    days = [f"  {row['date']}  {row['name']}" for row in coming]
    return "\n".join(["Calendar\n--------", *rows, *(["count as Sundays:"] if days else []), *days])


def shift_settings(settings: Settings) -> str:
    """Shifts with their times and commands: settings alone."""
    lines: list[str] = []
    for shift in settings.shifts.values():
        lines += [f"  {_shift_head(shift)}", *(f"      {line}" for line in shift.lines)]
    return "\n".join(lines) or "  no shifts"
