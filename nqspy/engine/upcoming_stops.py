"""When shifts stop queues next: a pure function of settings, zone and instant, like `timetable`."""

from collections.abc import Iterable, Iterator

from nqspy.engine import timetable
from nqspy.engine.timetable import Firing
from nqspy.engine.zones import local
from nqspy.model.ids import DAY, Instant
from nqspy.model.shifts import Shift, UpcomingStop
from nqspy.model.site import Settings, Site

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def look(site: Site, now: Instant) -> None:
    """Notes on the site when its queues are stopped next, by which shift that says what becomes of what runs,
    and by any (``closings``)."""
    settings, zone = site.settings, site.timezone
    firings = list(_firings(settings, zone, now, site.shift.until))
    site.upcoming_stops = _those_that_say(settings, firings, zone, now)
    site.closings = {name: firing.at for name, firing in _first_stops(settings, firings).items()}


def upcoming_stops(
    settings: Settings, zone: str, now: Instant, until: Instant | None = None
) -> dict[str, UpcomingStop]:
    """When each queue is next stopped by a shift that says what becomes of running requests
    (`Shift.spill`); queues that none stops so are left out. ``until``: no firing counts before, because an
    operator switched."""
    return _those_that_say(settings, _firings(settings, zone, now, until), zone, now)


def _those_that_say(
    settings: Settings, firings: Iterable[Firing], zone: str, now: Instant
) -> dict[str, UpcomingStop]:
    shifts = settings.shifts
    first = _first_stops(settings, (each for each in firings if shifts[each.shift].spill != "leave"))
    return {name: _stop(shifts[each.shift], each.at, zone, now) for name, each in first.items()}


def _stop(shift: Shift, at: Instant, zone: str, now: Instant) -> UpcomingStop:
    return UpcomingStop(at, shift.name, shift.spill, _clock(at, zone, now))


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
        due = timetable.in_force(settings, zone, until)
        if due is not None:
            yield Firing(until, due.shift)
    for shift in settings.shifts.values():
        firing = timetable.next_firing(settings, zone, after, (shift,))
        if firing is not None:
            yield firing


def _clock(at: Instant, zone: str, now: Instant) -> str:
    """``08:30``, with its day where that is a day off or more: ``Mon 08:30``."""
    moment = local(at, zone)
    day = f"{_WEEKDAYS[moment.weekday()]} " if at - now >= DAY else ""
    return f"{day}{moment:%H:%M}"
