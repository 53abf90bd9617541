"""The date and time of ``qsub -a``. Only loaded when it is given."""

from nqspy.model.amounts import Wrong
from nqspy.model.errors import BadValue
from nqspy.qmgr import dates

_UNITS = {
    "second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "hr": 3600, "h": 3600, "day": 86_400,
    "d": 86_400, "week": 604_800,
}  # fmt: skip


def parse_date(text: str, now_ms: int, zone: str) -> int:
    """The instant (ms) a text means, see `qmgr.dates.parse_date`; ``now``, ``now+90``, ``now+2hours``: so
    long from now on. Raises Wrong."""
    word, plus, more = text.replace(" ", "").lower().partition("+")
    if word == "now":
        return now_ms + (_length(more, text) if plus else 0)
    try:
        return dates.parse_date(text, now_ms, zone)
    except BadValue as error:
        raise Wrong(str(error)) from None


def _length(text: str, whole: str) -> int:
    """Milliseconds of ``90``, ``90minutes``, ``2hours``."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text[len(digits) :].removesuffix("s") or "second"
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10) or unit not in _UNITS:
        raise Wrong(f"{whole!r} is no date; write it like now+30sec, now+90minutes, now+2hours, now+1day")
    return int(digits) * _UNITS[unit] * 1000
