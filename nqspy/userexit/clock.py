"""The site's clock for exits: local time, the next time of day, the end of a shift."""

import re
from datetime import datetime, time, timedelta

from nqspy.engine import calendar
from nqspy.engine.wall import first_shown
from nqspy.engine.zones import local, zone_of
from nqspy.model.ids import Instant
from nqspy.model.site import Site

_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")


def next_at(text: str, zone: str, now: Instant) -> Instant:
    """Return the next instant later than ``now`` at which the clock of a zone first shows a time of day. A
    time that a clock change skips comes at the change. Raises ValueError, TypeError."""
    if not isinstance(text, str):
        raise TypeError(f'view.at() needs a time of day such as "06:00", not {text!r}')
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f'view.at() needs a time of day such as "06:00", not {text!r}')
    hour, minute, second = (int(part or 0) for part in found.groups())
    wanted = time(hour, minute, second)
    info, day = zone_of(zone), local(now, zone).date()
    days = (day + timedelta(days=n) for n in range(4))
    instants = (Instant(first_shown(datetime.combine(each, wanted), info) * 1000) for each in days)
    return next(at for at in instants if at > now)


def local_time(site: Site, now: Instant) -> datetime:
    """Return an instant as date and time in the site's time zone."""
    return local(now, site.timezone)


def end_of_shift(site: Site, now: Instant) -> Instant | None:
    """Return the instant (ms) at which another shift than the present one begins; None: none does."""
    state, zone = site.shift, site.timezone
    if state.until is not None and state.until > now:
        return state.until
    others = [each for name, each in site.settings.shifts.items() if name != state.current]
    firing = calendar.next_firing(site.settings, zone, now, others)
    return None if firing is None else firing.at
