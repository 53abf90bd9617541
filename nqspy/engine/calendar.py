"""Calendar of shifts: the one in force, coming ones, when they stop queues, and days that count as Sundays
(interfaces.md 7). All functions depend only on settings, zone and instant, except `note_stops`.

A day that the calendar names (a public holiday, a date set by hand) counts as a Sunday in every cron
expression; clock times on it are as on any other day.

`cron` gives the days and minutes of an expression on the clock, `wall` the instants of these.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from functools import lru_cache, partial
from heapq import merge
from itertools import combinations, islice, takewhile

from nqspy.engine import wall
from nqspy.engine.zones import local, zone_of
from nqspy.model.cron import Sundays, bits, meeting, no_sundays, read
from nqspy.model.errors import BadValue
from nqspy.model.ids import DAY, Instant
from nqspy.model.settings import Settings
from nqspy.model.shifts import APART, Calendar, Shift, UpcomingStop
from nqspy.model.site import Site

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, slots=True, order=True)
class Firing:
    """Begin of a shift by one of its cron times: instant, and name of the shift. The earliest sorts first."""

    at: Instant
    shift: str


def check_cron(text: str) -> None:
    """Raise BadValue unless a text is a cron expression of five fields that fires at some time."""
    read(text)


# ---------------------------------------------------------------- days that count as Sundays


def special_days(days: Calendar, year: int) -> Mapping[date, str]:
    """Return the days of a year that count as Sundays, with their names: public holidays and extra days,
    without days that are set as workdays."""
    return _special(days.holidays, days.extra, days.workdays, year)


@lru_cache(maxsize=256)
def _special(
    country: str | None, extra: tuple[str, ...], worked: tuple[str, ...], year: int
) -> dict[date, str]:
    found = dict(_public(country, year)) if country else {}
    found |= {day: found.get(day, "extra day") for day in map(date.fromisoformat, extra) if day.year == year}
    return {day: name for day, name in sorted(found.items()) if day.isoformat() not in worked}


@lru_cache(maxsize=256)
def _public(country: str, year: int) -> dict[date, str]:
    """Return the public holidays in a year of a country or a part of it (``DE-BY``), with English names if
    there are any; empty: the package holidays does not know it."""
    from holidays import country_holidays

    code, _, part = country.partition("-")
    try:
        known = country_holidays(code, subdiv=part or None)
        english = "en_US" if "en_US" in known.supported_languages else None
        return dict(country_holidays(code, subdiv=part or None, years=year, language=english))
    except NotImplementedError:
        return {}


def sundays(settings: Settings, zone: str, after: Instant, until: Instant) -> list[tuple[date, str]]:
    """Return the days from ``after`` to ``until`` (both included) that count as Sundays, with their names."""
    first, last = local(after, zone).date(), local(until, zone).date()
    years = [special_days(settings.calendar, year).items() for year in range(first.year, last.year + 1)]
    return [(day, name) for days in years for day, name in days if first <= day <= last]


def check_country(text: str) -> None:
    """Raise BadValue unless a text is the code of a country with known holidays, or of its part (DE-BY)."""
    from holidays import list_supported_countries
    from holidays.registry import COUNTRIES

    known = list_supported_countries()
    code, dash, part = text.partition("-")
    if code not in known:
        codes = {names[0].lower(): names[1] for names in COUNTRIES.values()}
        codes |= {each.lower(): each for each in codes.values()}
        likely = dict.fromkeys(codes[each] for each in get_close_matches(code.lower(), codes, 3, 0.5))
        right = "write its code like FR or DE-BY" + (f" (nearest: {', '.join(likely)})" if likely else "")
        raise BadValue(f"{code!r} is not a country with known holidays; {right}")
    parts = known[code]
    if dash and part not in parts:
        near = get_close_matches(part.upper(), parts, 3, 0.4) or parts[:8]
        right = f"write it like {code}-{near[0]} (nearest: {', '.join(near)})" if near else f"write {code}"
        raise BadValue(f"{part!r} is not a part of {code} with holidays of its own; {right}")


def check_day(text: str) -> None:
    """Raise BadValue unless a text is a date like 2026-12-24."""
    try:
        good = date.fromisoformat(text).isoformat() == text
    except ValueError:
        good = False
    if not good:
        raise BadValue(f"{text!r} is not a date; write it like 2026-12-24")


# ---------------------------------------------------------------- firings


def in_force(settings: Settings, zone: str, now: Instant) -> Firing | None:
    """Return the firing that should be in force at ``now``: the latest that counts (`Shift.counts`), if any.
    Times that a clock change skips all fire at the change; of these the latest by the clock counts."""
    found = []
    for shift, cron in _crons(settings.shifts.values()):
        latest = wall.latest(read(cron), _sundays_of(settings.calendar), zone_of(zone), now)
        if latest is None:
            continue
        since = shift.counts.get(cron)
        # A firing counts from when its time was typed; more than a week ahead, the clock was far off then.
        if since is None or latest[0] > since or since > now + 7 * DAY:
            found.append((*latest, Firing(latest[0], shift.name)))
    return max(found)[2] if found else None


def _crons(shifts: Iterable[Shift]) -> Iterator[tuple[Shift, str]]:
    return ((shift, cron) for shift in shifts for cron in shift.when)


def next_firing(
    settings: Settings, zone: str, after: Instant, shifts: Iterable[Shift] | None = None
) -> Firing | None:
    """Return the first firing of these shifts (None: of all shifts) later than ``after``, or None."""
    days = settings.calendar
    holidays = days.holidays, days.extra, days.workdays
    found = [
        Firing(at, shift.name)
        for shift, cron in _crons(settings.shifts.values() if shifts is None else shifts)
        if (at := _next(cron, *holidays, zone, after)) is not None
    ]
    return min(found, default=None)


@lru_cache(maxsize=256)
def _next(
    cron: str, country: str | None, extra: tuple[str, ...], worked: tuple[str, ...], zone: str, after: Instant
) -> Instant | None:
    """Return the first instant later than ``after`` at which a cron expression fires, with the days of a
    `Calendar`, or None."""
    days = Calendar(country, extra, worked)
    return next(wall.ahead(read(cron), _sundays_of(days), zone_of(zone), after), None)


def coming(
    settings: Settings,
    zone: str,
    after: Instant,
    until: Instant,
    most: int | None = None,
    shifts: Iterable[Shift] | None = None,
) -> list[Firing]:
    """Return the first ``most`` (None: all) firings of these shifts (None: of all shifts) later than
    ``after``, up to ``until``. Times that a clock change skips come in the order of the clock on the wall."""
    crons = _crons(settings.shifts.values() if shifts is None else shifts)
    series = [_from(shift.name, cron, settings.calendar, zone, after) for shift, cron in crons]
    due = takewhile(lambda each: each[0] <= until, merge(*series))
    return [firing for _, _, firing in islice(due, most)]


def _from(
    shift: str, cron: str, days: Calendar, zone: str, after: Instant
) -> Iterator[tuple[Instant, datetime, Firing]]:
    """Yield the firings of a cron expression, each as instant, time on the zone's clock, and `Firing`."""
    fires = read(cron), _sundays_of(days), zone_of(zone)
    for at in wall.ahead(*fires, after):
        latest = wall.latest(*fires, at)
        assert latest is not None
        yield *latest, Firing(at, shift)


def _sundays_of(days: Calendar) -> Sundays:
    if not (days.holidays or days.extra):
        return no_sundays
    return partial(_sundays, days.holidays, days.extra, days.workdays)


@lru_cache(maxsize=256)
def _sundays(country: str | None, extra: tuple[str, ...], worked: tuple[str, ...], year: int) -> int:
    return bits(_special(country, extra, worked, year))


def collisions(shifts: Iterable[Shift], those: Collection[str] | None = None) -> str | None:
    """Return a text that names two shifts that fire in the same minute on some day, and a remedy; None: no
    two do. ``those``: only pairs with one of these shifts are examined (None: all)."""
    crons = [(shift.name, cron) for shift, cron in _crons(shifts)]
    for (one, cron), (two, other) in combinations(crons, 2):
        compared = one != two and (those is None or one in those or two in those)
        when = meeting(cron, other) if compared else None
        if when is not None:
            day = f"{when:%A %Y-%m-%d}"
            return f"shifts {one} and {two} both fire at {when:%H:%M}, for example on {day}; {APART}"
    return None


def until_of(text: str, zone: str, now: Instant) -> Instant:
    """Return the next instant at which the zone's clock shows ``text`` (``HH:MM``). Raises BadValue."""
    hours, colon, minutes = text.partition(":")
    digits = text.isascii() and hours.isdigit() and minutes.isdigit()
    if not (colon and digits and int(hours) < 24 and int(minutes) < 60):
        raise BadValue(f"{text!r} is not a time of day; write it like 06:00")
    return next(_from("until", f"{int(minutes)} {int(hours)} * * *", Calendar(), zone, now))[0]


# ---------------------------------------------------------------- stops of queues


def note_stops(site: Site, now: Instant) -> None:
    """Store in the site, by queue, the instant at which a shift stops it next: in ``closings`` for any shift,
    in ``upcoming_stops`` (with shift and text) only for one with a ``spill`` other than leave."""
    settings, zone, shifts = site.settings, site.timezone, site.settings.shifts
    firings, after, until = [], now, site.shift.until
    if until is not None and until > now:
        after, due = until, in_force(settings, zone, until)
        if due is not None:
            firings.append(Firing(until, due.shift))
    coming_up = (next_firing(settings, zone, after, (shift,)) for shift in shifts.values())
    firings += [firing for firing in coming_up if firing is not None]
    site.closings = {name: firing.at for name, firing in _first_stops(settings, firings).items()}
    first = _first_stops(settings, (each for each in firings if shifts[each.shift].spill != "leave"))
    site.upcoming_stops = {}
    for name, each in first.items():
        moment, spill = local(each.at, zone), shifts[each.shift].spill
        away = each.at - now
        day = "" if away < DAY else _WEEKDAYS[moment.weekday()] if away < 6 * DAY else str(moment.date())
        site.upcoming_stops[name] = UpcomingStop(each.at, each.shift, spill, f"{day} {moment:%H:%M}".strip())


def _first_stops(settings: Settings, firings: Iterable[Firing]) -> dict[str, Firing]:
    """Return the first firing that stops each queue, by queue; without queues that none stops."""
    found: dict[str, Firing] = {}
    for firing in sorted(firings):
        leaving = settings.shifts[firing.shift].leaving()
        for name in settings.queues:
            if name not in found and leaving.stops(name):
                found[name] = firing
    return found
