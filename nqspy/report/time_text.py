"""Instants as people and programs read them, in the site's time zone; and texts back to instants."""

import contextlib
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nqspy.model.errors import BadValue
from nqspy.model.ids import MINUTE, Instant
from nqspy.model.texts import in_words
from nqspy.model.texts import short as short
from nqspy.model.units import UNLIMITED, parse_time

_MOST_KEPT = 4_096


def _local(info: ZoneInfo, at: int) -> datetime:
    return (datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=at)).astimezone(info)


# Zones of our time are whole minutes away from UTC, so all seconds of a minute share these parts.
@lru_cache(_MOST_KEPT)
def _parts(info: ZoneInfo, minute: int) -> tuple[str, str, str, str]:
    """Return the text around the seconds in RFC 3339 (two parts), and in C's ``ctime`` (two parts)."""
    moment = _local(info, minute * MINUTE)
    whole, in_c = moment.isoformat(timespec="minutes"), moment.ctime()
    return f"{whole[:16]}:", whole[16:], in_c[:17], in_c[19:]


class Zone:
    """A time zone; writes RFC 3339 with milliseconds and offset. Raises BadValue for an unknown one."""

    def __init__(self, name: str) -> None:
        try:
            self.info = ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise BadValue(f"{name!r} is not a time zone; write it like Europe/Paris or UTC") from None

    def stamp(self, at: int | None) -> str | None:
        """Return an instant (ms) in this zone as ``2026-03-02T20:55:00.000+01:00``; None for None."""
        return None if at is None else self.text(at)

    def text(self, at: int) -> str:
        """Return an instant (ms) as text, as `stamp` does."""
        minute, rest = divmod(at, MINUTE)
        begin, offset, _, _ = _parts(self.info, minute)
        return f"{begin}{rest // 1000:02d}.{rest % 1000:03d}{offset}"

    def ctime(self, at: int) -> str:
        """Return an instant (ms) as C's ``ctime`` writes it, without a line break: in this zone, as
        ``Mon Mar  2 20:55:00 2026``."""
        minute, rest = divmod(at, MINUTE)
        _, _, begin, year = _parts(self.info, minute)
        return f"{begin}{rest // 1000:02d}{year}"

    def local(self, at: int) -> datetime:
        """Return the date and time of an instant (ms) in this zone."""
        return _local(self.info, at)

    def instant(self, moment: datetime) -> Instant:
        """Return the instant of a date-time; one without an offset is in this zone."""
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=self.info)
        since = moment - datetime.fromtimestamp(0, UTC)
        return Instant(since // timedelta(milliseconds=1))

    def shown(self, moment: datetime) -> tuple[Instant, ...]:
        """Return the instants at which the clocks show a time: two in an hour that is repeated."""
        first, second = (self.instant(moment.replace(fold=fold)) for fold in (0, 1))
        return (first, second) if second > first else (first,)

    def at(self, day: date, hour: int = 0) -> Instant:
        """Return the instant of that hour of a day on the site's clocks."""
        return self.instant(datetime.combine(day, time(hour)))


@lru_cache(maxsize=8)
def zone_of(name: str) -> Zone:
    """Return the zone with that name, one object for all callers. Raises BadValue."""
    return Zone(name)


def parse_since(text: str, zone: Zone, now: int) -> Instant:
    """Return the instant of ``--since``: date, last clock time, both, or time before ``now``. Raises
    BadValue."""
    with contextlib.suppress(ValueError):
        return zone.instant(datetime.fromisoformat(text))
    now_there, clock, span = zone.local(now), None, UNLIMITED
    with contextlib.suppress(ValueError, BadValue):
        if ":" in text:
            clock = time.fromisoformat(text)
        else:
            span = parse_time(text)
    if clock is not None:
        days = (now_there.date(), now_there.date() - timedelta(days=1))
        found = [at for day in days for at in zone.shown(datetime.combine(day, clock))]
        return max(at for at in found if at <= now)
    if span == UNLIMITED:
        raise BadValue(f"{text!r} is not a moment; write it like 2026-03-02T21:00, 21:00 or 30min (ago)")
    return Instant(now - span)


def parse_day(text: str) -> date:
    """Return the day of ``--date``, ``2026-03-02``. Raises BadValue, also for the last possible day."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise BadValue(f"{text!r} is not a date; write it like 2026-03-02") from None
    if not 1970 <= day.year < 9999:
        raise BadValue(f"there is no night of {day}; a night lies between 1970 and 9998")
    return day


def when(text: str, now: str | None = None) -> str:
    """Return an RFC 3339 text in words (`texts.in_words`), as seen at ``now`` (RFC 3339)."""
    return in_words(datetime.fromisoformat(text), None if now is None else datetime.fromisoformat(now))


def hours(ms: float, width: int = 2) -> str:
    """Return ms as ``hh:mm``, cut to the minute, with at least ``width`` digits of hours (as in seed 003)."""
    minutes = int(ms) // MINUTE
    return f"{minutes // 60:0{width}d}:{minutes % 60:02d}"


def clock_span(seconds: float | None) -> str:
    """Return seconds as ``HH:MM:SS``, hours beyond 99 too, fractions cut off; ``0`` for None."""
    if seconds is None:
        return "0"
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
