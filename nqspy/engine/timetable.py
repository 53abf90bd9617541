"""Shifts of a site in time: the one in force, those that come, when they stop queues, which days count as
Sundays. Shifts and days are those of the settings, times of ``zone``; see `calendar` for what they mean."""

from collections.abc import Iterable, Iterator

from nqspy.engine.calendar import Firing as Firing
from nqspy.engine.calendar import coming as coming
from nqspy.engine.calendar import in_force as in_force
from nqspy.engine.calendar import next_firing as next_firing
from nqspy.engine.calendar import sundays as sundays
from nqspy.engine.calendar import until_of as until_of
from nqspy.engine.zones import local
from nqspy.model.ids import DAY, Instant
from nqspy.model.settings import Settings
from nqspy.model.shifts import UpcomingStop
from nqspy.model.site import Site

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def look_at_stops(site: Site, now: Instant) -> None:
    """Note on the site when its queues are stopped next, with ``spill`` and by any shift (``closings``)."""
    settings, zone, shifts = site.settings, site.timezone, site.settings.shifts
    firings = list(_firings(settings, zone, now, site.shift.until))
    site.closings = {name: firing.at for name, firing in _first_stops(settings, firings).items()}
    first = _first_stops(settings, (each for each in firings if shifts[each.shift].spill != "leave"))
    site.upcoming_stops = {}
    for name, each in first.items():
        moment, spill = local(each.at, zone), shifts[each.shift].spill
        day = f"{_WEEKDAYS[moment.weekday()]} " if each.at - now >= DAY else ""
        site.upcoming_stops[name] = UpcomingStop(each.at, each.shift, spill, f"{day}{moment:%H:%M}")


def _first_stops(settings: Settings, firings: Iterable[Firing]) -> dict[str, Firing]:
    """The first of these firings that stops a queue, by queue."""
    found: dict[str, Firing] = {}
    for firing in sorted(firings):
        leaving = settings.shifts[firing.shift].leaving()
        for name in settings.queues:
            if name not in found and leaving.stops(name):
                found[name] = firing
    return found


def _firings(settings: Settings, zone: str, now: Instant, until: Instant | None) -> Iterator[Firing]:
    """The next firing of each shift."""
    after = now
    if until is not None and until > now:
        after = until
        due = in_force(settings, zone, until)
        if due is not None:
            yield Firing(until, due.shift)
    for shift in settings.shifts.values():
        firing = next_firing(settings, zone, after, (shift,))
        if firing is not None:
            yield firing
