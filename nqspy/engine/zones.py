"""Time zones: instants as local time."""

from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nqspy.model.errors import BadValue
from nqspy.model.ids import Instant


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone of that name. Raises BadValue for an unknown name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadValue(f"{name!r} is not a time zone; write it like Europe/Paris or UTC") from None


def local(at: Instant, zone: str) -> datetime:
    """Return an instant (ms) as local time of the named zone. Raises BadValue for an unknown name."""
    return datetime.fromtimestamp(at / 1000, zone_of(zone))
