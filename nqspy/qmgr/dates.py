"""The date and time of ``qsub -a`` and of ``modify request ID eligible=``: the forms of nqs.md 2.3, of POSIX
and of RFC 3339.

"Now" and the zone are the daemon's: its clock may be an accelerated one.
"""

from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nqspy.model.errors import BadValue

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS_WHOLE = ("january", "february", "march", "april", "may", "june", "july", "august", "september",
                 "october", "november", "december")  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_ZONES = {
    "utc": 0, "gmt": 0, "ut": 0, "wet": 0, "west": 1, "bst": 1, "cet": 1, "met": 1, "cest": 2, "mest": 2,
    "eet": 2, "eest": 3, "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8,
    "pdt": -7,
}  # fmt: skip
"""Hours east of Greenwich of the zones' letters."""


def parse_date(text: str, now_ms: int, zone: str) -> int:
    """The instant (ms) a text means: without a date the next time it comes round, without a time the day's
    first moment. Raises BadValue."""
    local = _zone(zone)
    now = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(local)
    try:
        moment = _whole(text, local, now) or _Words(text, local, now).moment()
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    except (ValueError, OverflowError, BadValue) as error:
        detail = f" ({error})" if isinstance(error, BadValue) and str(error) else ""
        raise BadValue(
            f"{text!r} is no date{detail}; write it like '23:00', 'noon tomorrow', 'friday 6pm', 03/14, "
            "2026-03-02 21:00 or 202603022100"
        ) from None


def is_absolute(text: str) -> bool:
    """True if a date means the same instant wherever and whenever it is read: RFC 3339 with its zone."""
    try:
        moment = _whole(text, UTC, datetime.fromtimestamp(0, UTC))
        return moment is not None and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def settled(values: dict[str, Any], now_ms: int, zone: str) -> dict[str, Any]:
    """Return the changes of ``modify`` with the date as an instant. Raises BadValue."""
    date = values.get("eligible")
    return values | {"eligible": parse_date(date, now_ms, zone)} if isinstance(date, str) else values


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def _shown(wall: datetime, zone: tzinfo, now: datetime) -> datetime:
    """The instant, in UTC, at which the zone's clock shows a time. A time that a clock change repeats is the
    first one, or the second where the first has passed; a skipped one counts as if nothing was changed."""
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return second if first <= now and first < second else first


def _whole(text: str, zone: tzinfo, now: datetime) -> datetime | None:
    """A text that is one date-time: RFC 3339."""
    if text[4:5] != "-" or text[10:11] != "T":
        return None
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else _shown(moment, zone, now)


class _Words:
    """A date-time as far as its words have been read."""

    def __init__(self, text: str, zone: tzinfo, now: datetime) -> None:
        self._zone, self._now = zone, now
        self._time: time | None = None
        self._year: int | None = None
        self._month: int | None = None
        self._day: int | None = None
        self._weekday: int | None = None
        self._ahead: int | None = None
        self._ended = False
        words = text.lower().replace(",", " ").split()
        if not words:
            raise BadValue("it is empty")
        while words:
            self._take(words)

    def _take(self, words: list[str]) -> None:
        word = words.pop(0)
        after = words[0] if words else ""
        if after in ("am", "pm", "m") and word[:1].isdigit():
            word += words.pop(0)
        if self._named(word) or self._zoned(word):
            return
        if word in (*_MONTHS, *_MONTHS_WHOLE) and after[:1].isdigit() and ":" not in after:
            self._dated(None, _month(word), int(words.pop(0)))
            if words and words[0].isdigit() and len(words[0]) == 4:
                self._year = int(words.pop(0))
        elif "/" in word:
            self._slashed(word)
        elif "-" in word:
            self._dashed(word)
        elif word.partition(".")[0].isdigit() and len(word.partition(".")[0]) >= 4:
            self._posix(word)
        else:
            self._timed(word)

    def _named(self, word: str) -> bool:
        """``noon``, ``today``, weekdays (three letters suffice)."""
        if word in ("noon", "midnight"):
            self._set_time(time(12 if word == "noon" else 0))
        elif word in ("today", "tomorrow"):
            self._ahead = 0 if word == "today" else 1
        elif word in ("next", "at", "on"):
            pass
        elif len(word) >= 3 and any(day.startswith(word) for day in _DAYS):
            self._weekday = next(n for n, day in enumerate(_DAYS) if day.startswith(word))
        else:
            return False
        return True

    def _zoned(self, word: str) -> bool:
        """The letters of a zone, alone or glued to a time: ``EST``, ``12:00EST``."""
        digits = word.rstrip("abcdefghijklmnopqrstuvwxyz")
        letters = word[len(digits) :]
        meridian = next((m for m in ("am", "pm", "m") if letters.removeprefix(m) in _ZONES), "")
        zone = letters.removeprefix(meridian) if letters not in _ZONES else letters
        if zone not in _ZONES:
            return False
        self._zone = timezone(timedelta(hours=_ZONES[zone]))
        if digits:
            self._timed(word[: len(word) - len(zone)])
        return True

    def _set_time(self, value: time) -> None:
        if self._time is not None:
            raise BadValue("it names two times")
        self._time = value

    def _dated(self, year: int | None, month: int, day: int) -> None:
        if self._month is not None:
            raise BadValue("it names two dates")
        self._year, self._month, self._day = year, month, day

    def _slashed(self, word: str) -> None:
        """``MM/DD`` or ``MM/DD/YY[YY]``."""
        month, day, *year = word.split("/")
        self._dated(_year(year[0]) if year else None, int(month), int(day))
        if len(year) > 1:
            raise BadValue()

    def _dashed(self, word: str) -> None:
        """``YYYY-MM-DD`` or ``DD-month[-YY[YY]]``."""
        first, second, *third = word.split("-")
        if len(first) == 4 and len(third) == 1:
            self._dated(int(first), int(second), int(third[0]))
        elif len(third) <= 1:
            self._dated(_year(third[0]) if third else None, _month(second), int(first))
        else:
            raise BadValue()

    def _posix(self, word: str) -> None:
        """``[[CC]YY]MMDDhhmm[.SS]``; ``DDhhmm`` and ``hhmm`` as OpenPBS takes them."""
        digits, _, seconds = word.partition(".")
        if len(digits) not in (4, 6, 8, 10, 12) or (seconds and len(seconds) != 2):
            raise BadValue()
        pairs = [int(digits[at : at + 2]) for at in range(len(digits) - 2, -1, -2)]
        self._set_time(time(pairs[1], pairs[0], int(seconds or 0)))
        if len(pairs) == 3:
            self._day = pairs[2]
        elif len(pairs) > 3:
            year = None if len(pairs) == 4 else _year(digits[: len(digits) - 8])
            self._dated(year, pairs[3], pairs[2])

    def _timed(self, word: str) -> None:
        """``H``, ``H:MM``, ``H:MM:SS``, with ``am``, ``pm`` or ``m`` (noon) behind."""
        digits = word.rstrip("apm")
        half = word[len(digits) :]
        parts = [int(part) for part in digits.split(":")]
        if half not in ("", "am", "pm", "m") or len(parts) > 3 or (half and not 1 <= parts[0] <= 12):
            raise BadValue()
        if half == "m" and parts[0] != 12:
            raise BadValue("m is noon: 12m")
        if half in ("am", "pm"):
            parts[0] = parts[0] % 12 + (12 if half == "pm" else 0)
        self._ended = parts[0] == 24 and not any(parts[1:])  # the day's end, when the next one begins
        hour, minute, second = (0, 0, 0) if self._ended else (*parts, 0, 0)[:3]
        self._set_time(time(hour, minute, second))

    def moment(self) -> datetime:
        """The instant meant, in UTC."""
        now = self._now.astimezone(self._zone)
        at = self._time or time(0)
        if self._month is not None:
            return self._on_date(now, at)
        if self._day is not None:
            return self._on_day_of_month(now, at)
        if self._weekday is not None:
            days = (self._weekday - now.weekday()) % 7
            found = self._at(now.date() + timedelta(days), at)
            return found if found > now else self._at(now.date() + timedelta(days + 7), at)
        if self._ahead is not None:
            return self._at(now.date() + timedelta(self._ahead), at)
        found = self._at(now.date(), at)
        return found if found > now else self._at(now.date() + timedelta(1), at)

    def _at(self, day: date, at: time) -> datetime:
        wall = datetime.combine(day, at) + timedelta(self._ended)
        return _shown(wall, self._zone, self._now)

    def _on_date(self, now: datetime, at: time) -> datetime:
        assert self._month is not None
        assert self._day is not None
        if self._year is not None:
            return self._at(date(self._year, self._month, self._day), at)
        for year in range(now.year, now.year + 9):  # 29 February may be eight years away
            try:
                day = date(year, self._month, self._day)
            except ValueError:
                continue
            if day >= now.date() and (self._time is None or self._at(day, at) > now):
                return self._at(day, at)
        raise BadValue("there is no such day")

    def _on_day_of_month(self, now: datetime, at: time) -> datetime:
        assert self._day is not None
        for month in range(now.month - 1, now.month + 12):
            try:
                found = self._at(date(now.year + month // 12, month % 12 + 1, self._day), at)
            except ValueError:
                continue
            if found > now:
                return found
        raise BadValue("there is no such day")


def _month(word: str) -> int:
    names = _MONTHS_WHOLE if word in _MONTHS_WHOLE else _MONTHS
    if word not in names:
        raise BadValue(f"{word} is no month")
    return names.index(word) + 1


def _year(digits: str) -> int:
    """A year of four or two digits: 69 to 99 are 1969 to 1999 (POSIX)."""
    value = int(digits)
    if len(digits) not in (2, 4):
        raise BadValue(f"{digits} is no year")
    return value if len(digits) == 4 else value + (1900 if value >= 69 else 2000)
