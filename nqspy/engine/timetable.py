"""A site's shifts in time: which is in force, which come, which days count as Sundays. Shifts and days are
those of the settings, times those of ``zone``; see `calendar` for what they mean."""

from collections.abc import Iterable
from datetime import date

from nqspy.engine import calendar
from nqspy.engine.calendar import Firing as Firing
from nqspy.engine.calendar import until_of as until_of
from nqspy.model.ids import Instant
from nqspy.model.settings import Settings
from nqspy.model.shifts import Shift


def in_force(settings: Settings, zone: str, now: Instant) -> Firing | None:
    """The latest firing not after ``now`` that counts; None where there is none."""
    return calendar.in_force(settings.shifts.values(), settings.calendar, zone, now)


def next_firing(
    settings: Settings, zone: str, after: Instant, shifts: Iterable[Shift] | None = None
) -> Firing | None:
    """The first firing later than ``after``, of these shifts or of all."""
    chosen = settings.shifts.values() if shifts is None else shifts
    return calendar.next_firing(chosen, settings.calendar, zone, after)


def coming(
    settings: Settings,
    zone: str,
    after: Instant,
    until: Instant,
    most: int | None = None,
    shifts: Iterable[Shift] | None = None,
) -> list[Firing]:
    """The firings later than ``after`` and not later than ``until``, in order, of these shifts or of all; the
    first ``most`` of them."""
    chosen = settings.shifts.values() if shifts is None else shifts
    return calendar.coming(chosen, settings.calendar, zone, after, until, most)


def sundays(settings: Settings, zone: str, after: Instant, until: Instant) -> list[tuple[date, str]]:
    """The days that count as Sundays from the one of ``after`` to the one of ``until``, with their names."""
    return calendar.holidays_between(settings.calendar, zone, after, until)
