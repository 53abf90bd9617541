"""When shifts stop queues next: a pure function of settings, zone and instant, like `timetable`."""

from collections.abc import Iterator

from nqspy.engine import timetable
from nqspy.engine.timetable import Firing
from nqspy.engine.zones import local
from nqspy.model.ids import DAY, Instant
from nqspy.model.shifts import UpcomingStop
from nqspy.model.site import Settings, Site

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def look(site: Site, now: Instant) -> None:
    """Notes on the site when its queues are stopped next."""
    site.upcoming_stops = upcoming_stops(site.settings, site.timezone, now, site.shift.until)


def upcoming_stops(
    settings: Settings, zone: str, now: Instant, until: Instant | None = None
) -> dict[str, UpcomingStop]:
    """When each queue is next stopped by a shift that says what becomes of running requests
    (`Shift.spill`); queues that none stops so are left out. ``until``: no firing counts before, because an
    operator switched."""
    found: dict[str, UpcomingStop] = {}
    for firing in sorted(_firings(settings, zone, now, until)):
        shift = settings.shifts[firing.shift]
        leaving = shift.leaving()
        for name in settings.queues:
            if name not in found and leaving.stops(name):
                clock = _clock(firing.at, zone, now)
                found[name] = UpcomingStop(firing.at, shift.name, shift.spill, clock)
    return found


def _firings(settings: Settings, zone: str, now: Instant, until: Instant | None) -> Iterator[Firing]:
    """The next firing of each shift that says what becomes of running requests."""
    after = now
    chosen = {name: shift for name, shift in settings.shifts.items() if shift.spill != "leave"}
    if until is not None and until > now:
        after = until
        due = timetable.in_force(settings, zone, until)
        if due is not None and due.shift in chosen:
            yield Firing(until, due.shift)
    for shift in chosen.values():
        firing = timetable.next_firing(settings, zone, after, (shift,))
        if firing is not None:
            yield firing


def _clock(at: Instant, zone: str, now: Instant) -> str:
    """``08:30``, with its day where that is a day off or more: ``Mon 08:30``."""
    moment = local(at, zone)
    day = f"{_WEEKDAYS[moment.weekday()]} " if at - now >= DAY else ""
    return f"{day}{moment:%H:%M}"
