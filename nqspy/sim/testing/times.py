"""Times as a test writes them: moments on the site's clocks, and how long something takes."""

from datetime import datetime, time, timedelta

from nqspy.model.errors import BadValue
from nqspy.model.ids import Instant
from nqspy.model.units import UNLIMITED, parse_time
from nqspy.report.time_text import Zone
from nqspy.sim.testing.errors import BadStory

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def moment(text: str, zone: Zone, now: Instant) -> Instant:
    """The instant that a text names: ``03:00`` and ``tue 03:00`` the next time it is so late (now, where it
    is), else a date with a time. Raises BadStory for what is none or has gone by."""
    day, _, clock = text.strip().lower().rpartition(" ")
    try:
        if day in ("", *_DAYS) and "-" not in clock:
            return _next(day, time.fromisoformat(clock), zone, now)
        found = zone.instant(datetime.fromisoformat(text))
    except ValueError:
        wrong = f"{text!r} is no moment; write it like 03:00, tue 03:00 or 2026-03-03 21:00"
        raise BadStory(wrong) from None
    if found < now:
        raise BadStory(f"{text} has gone by: it is {shown(zone, now)}")
    return found


def _next(day: str, clock: time, zone: Zone, now: Instant) -> Instant:
    today = zone.local(now).date()
    for later in range(9):
        date = today + timedelta(days=later)
        for at in zone.shown(datetime.combine(date, clock)):
            if at >= now and day in ("", _DAYS[date.weekday()]):
                return at
    raise BadStory(f"{clock:%H:%M} does not come within a week")


def span(text: str | float) -> int:
    """How long, in ms, of ``30min``, ``1:00:00`` or a number of seconds. Raises BadStory."""
    try:
        found = parse_time(str(text))
    except BadValue as error:
        raise BadStory(str(error)) from None
    if found == UNLIMITED:
        raise BadStory(f"{text!r} never ends; write a time like 2h")
    return found


def shown(zone: Zone, at: Instant) -> str:
    """An instant as a test writes it: ``2026-03-02 20:00:00``."""
    local = zone.local(at)
    return f"{local:%Y-%m-%d %H:%M:%S}" + (f".{at % 1000:03d}" if at % 1000 else "")
