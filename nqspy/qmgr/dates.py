"""Dates of ``qsub -a`` and ``eligible=`` (nqs.md 2.3, POSIX, RFC 3339); "now" is the daemon's time."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from string import ascii_lowercase
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nqspy.model.errors import BadValue

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september",
           "october", "november", "december")  # fmt: skip
_NAMES_OF_MONTHS = {name: n for n, month in enumerate(_MONTHS, 1) for name in (month, month[:3])}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_ZONES = {
    "utc": 0, "gmt": 0, "ut": 0, "wet": 0, "west": 1, "bst": 1, "cet": 1, "met": 1, "cest": 2, "mest": 2,
    "eet": 2, "eest": 3, "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8,
    "pdt": -7,
}  # fmt: skip
"""Hours east of Greenwich, by the abbreviation of a time zone."""


def parse_date(text: str, now_ms: int, zone: str) -> int:
    """Return a date's instant (ms): without a day the next, without a time midnight. Raises BadValue."""
    local: tzinfo = UTC
    with suppress(ZoneInfoNotFoundError, ValueError, OSError):
        local = ZoneInfo(zone)
    now = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(local)
    try:
        moment = _whole(text, local, now) or _next(text, local, now)
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    except (ValueError, OverflowError, BadValue) as error:
        detail = f" ({error})" if isinstance(error, BadValue) and str(error) else ""
        raise BadValue(
            f"{text!r} is not a date{detail}; write it like '23:00', 'noon tomorrow', 'friday 6pm', 03/14, "
            "2026-03-02 21:00 or 202603022100"
        ) from None


def is_absolute(text: str) -> bool:
    """True if a date is the same instant wherever and whenever it is read: RFC 3339 with its zone."""
    try:
        moment = _whole(text, UTC, datetime.fromtimestamp(0, UTC))
        return moment is not None and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def settled(values: dict[str, Any], now_ms: int, zone: str) -> dict[str, Any]:
    """Return the changes of ``modify`` with ``eligible`` as an instant (ms). Raises BadValue."""
    date = values.get("eligible")
    return values | {"eligible": parse_date(date, now_ms, zone)} if isinstance(date, str) else values


def _shown(wall: datetime, zone: tzinfo, now: datetime) -> datetime:
    """Return the instant, in UTC, at which the zone's clock shows a time. Of two such instants (a clock
    change repeats an hour) it is the first, or the second if the first has passed; a skipped time counts as
    without the change."""
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return second if first <= now and first < second else first


def _whole(text: str, zone: tzinfo, now: datetime) -> datetime | None:
    """Return the date-time of a text in RFC 3339, else None."""
    if text[4:5] != "-" or text[10:11] != "T":
        return None
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else _shown(moment, zone, now)


def _next(text: str, zone: tzinfo, now: datetime) -> datetime:
    """Return the next instant, in UTC, that some words mean. Raises BadValue, ValueError."""
    parsed: dict[str, Any] = {"zone": zone}
    words = text.lower().replace(",", " ").split()
    if not words:
        raise BadValue("it is empty")
    while words:
        _read(parsed, words)
    zone, (at, days_on) = parsed["zone"], parsed.get("time", (time(0), 0))

    def instant(day: date) -> datetime:
        return _shown(datetime.combine(day, at) + timedelta(days_on), zone, now)

    today = now.astimezone(zone).date()
    if "date" in parsed and parsed["date"][0] is not None:
        return instant(date(*parsed["date"]))
    if "ahead" in parsed and not {"date", "day", "weekday"} & parsed.keys():
        return instant(today + timedelta(parsed["ahead"]))
    for day in _days(parsed, today):
        found = instant(day)
        if found > now or (day == today and "date" in parsed and "time" not in parsed):
            return found
    raise BadValue("the day does not exist")


def _days(parsed: dict[str, Any], today: date) -> Iterator[date]:
    """Yield the days that words without a year may mean, from today on, in order."""
    if "date" in parsed:  # 29 February may be eight years away
        parts = [(year, *parsed["date"][1:]) for year in range(today.year, today.year + 9)]
    elif "day" in parsed:
        months = range(today.month - 1, today.month + 12)
        parts = [(today.year + month // 12, month % 12 + 1, parsed["day"]) for month in months]
    else:
        days = (parsed["weekday"] - today.weekday()) % 7 if "weekday" in parsed else 0
        yield today + timedelta(days)
        yield today + timedelta(days + (7 if "weekday" in parsed else 1))
        return
    for part in parts:
        with suppress(ValueError):
            yield date(*part)


def _read(parsed: dict[str, Any], words: list[str]) -> None:
    """Read the next word, or several that belong together, into ``parsed``. Raises BadValue, ValueError."""
    word = words.pop(0)
    after = words[0] if words else ""
    if after in ("am", "pm", "m") and word[:1].isdigit():
        word += words.pop(0)
    digits = word.rstrip(ascii_lowercase)
    letters = word[len(digits) :]
    zones = (letters, *(letters.removeprefix(half) for half in ("am", "pm", "m")))
    if word in ("noon", "midnight"):
        _put(parsed, "time", (time(12 if word == "noon" else 0), 0))
    elif word in ("today", "tomorrow"):
        parsed["ahead"] = 0 if word == "today" else 1
    elif word in ("next", "at", "on"):
        pass
    elif len(word) >= 3 and any(day.startswith(word) for day in _DAYS):
        parsed["weekday"] = next(n for n, day in enumerate(_DAYS) if day.startswith(word))
    elif zone := next((each for each in zones if each in _ZONES), ""):  # alone or glued to a time: 12:00EST
        parsed["zone"] = timezone(timedelta(hours=_ZONES[zone]))
        if digits:
            _put(parsed, "time", _time(word.removesuffix(zone)))
    elif word in _NAMES_OF_MONTHS and after[:1].isdigit() and ":" not in after:
        day = int(words.pop(0))
        year = int(words.pop(0)) if words and words[0].isdigit() and len(words[0]) == 4 else None
        _put(parsed, "date", (year, _month(word), day))
    elif "/" in word or "-" in word:
        _put(parsed, "date", _date(word))
    elif word.partition(".")[0].isdigit() and len(word.partition(".")[0]) >= 4:
        _posix(parsed, word)
    else:
        _put(parsed, "time", _time(word))


def _put(parsed: dict[str, Any], what: str, value: tuple[Any, ...]) -> None:
    if what in parsed:
        raise BadValue(f"it has two {what}s")
    parsed[what] = value


def _date(word: str) -> tuple[int | None, int, int]:
    """Return year, month and day of ``MM/DD[/YY[YY]]``, ``YYYY-MM-DD`` or ``DD-month[-YY[YY]]``."""
    first, second, *third = word.split("/" if "/" in word else "-")
    if len(third) > 1:
        raise BadValue()
    if "/" not in word and len(first) == 4 and third:
        return int(first), int(second), int(third[0])
    year = _year(third[0]) if third else None
    return (year, int(first), int(second)) if "/" in word else (year, _month(second), int(first))


def _posix(parsed: dict[str, Any], word: str) -> None:
    """Read ``[[CC]YY]MMDDhhmm[.SS]``, or ``DDhhmm`` or ``hhmm`` as OpenPBS does, into ``parsed``."""
    digits, _, seconds = word.partition(".")
    if len(digits) not in (4, 6, 8, 10, 12) or (seconds and len(seconds) != 2):
        raise BadValue()
    minute, hour, *rest = (int(digits[at : at + 2]) for at in range(len(digits) - 2, -1, -2))
    _put(parsed, "time", (time(hour, minute, int(seconds or 0)), 0))
    if len(rest) == 1:
        parsed |= {"date": (*parsed["date"][:2], rest[0])} if "date" in parsed else {"day": rest[0]}
    elif rest:
        year = None if len(rest) == 2 else _year(digits[: len(digits) - 8])
        _put(parsed, "date", (year, rest[1], rest[0]))


def _time(word: str) -> tuple[time, int]:
    """Return the time of ``H[:MM[:SS]]`` with ``am``, ``pm`` or ``m`` (noon), and days to add (24:00: 1)."""
    digits = word.rstrip("apm")
    half = word[len(digits) :]
    hour, *rest = (int(part) for part in digits.split(":"))
    if half not in ("", "am", "pm", "m") or len(rest) > 2 or (half and not 1 <= hour <= 12):
        raise BadValue()
    if half == "m" and hour != 12:
        raise BadValue("m means noon; write 12m")
    if half in ("am", "pm"):
        hour = hour % 12 + (12 if half == "pm" else 0)
    ended = hour == 24 and not any(rest)
    minute, second = (*rest, 0, 0)[:2]
    return time(0 if ended else hour, minute, second), int(ended)


def _month(word: str) -> int:
    if word not in _NAMES_OF_MONTHS:
        raise BadValue(f"{word} is not a month")
    return _NAMES_OF_MONTHS[word]


def _year(digits: str) -> int:
    """Return a year of four or two digits: 69 to 99 are 1969 to 1999 (POSIX)."""
    if len(digits) not in (2, 4) or not digits.isdecimal():  # `int` would take a sign
        raise BadValue(f"the year {digits} must have two or four digits")
    value = int(digits)
    return value if len(digits) == 4 else value + (1900 if value >= 69 else 2000)
