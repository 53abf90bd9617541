"""Sizes, times and counts as people write them (nqs.md 2.2, interfaces.md 6): parsing and printing, both
ways."""

from decimal import ROUND_CEILING, Decimal, InvalidOperation
from functools import lru_cache

from nqspy.model.errors import BadValue

UNLIMITED = -1
"""A limit that was asked for as ``unlimited``; None means it was not given at all."""

GREATEST = 2**62
"""The greatest size or time there is: what rows, columns and JSON can hold with room to add."""

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_WORDS = ("unlimited", "infinity", "infinite")
_SUFFIXES = (("days", 86_400), ("day", 86_400), ("hours", 3_600), ("hour", 3_600), ("min", 60), ("sec", 1))
_LETTERS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def is_unlimited(text: str) -> bool:
    """Whether ``text`` is a word for "no limit"."""
    return text.lower() in _WORDS


def parse_size(text: str) -> int:
    """Bytes of ``115mw``, ``2.5gb``, ``1024``; 1 word = 8 bytes, 1 k = 1024; UNLIMITED for ``unlimited``.

    Raises BadValue when the text is no size.
    """
    if is_unlimited(text):
        return UNLIMITED
    low = text.strip().lower()
    factor = 1
    if low[-1:] in ("w", "b"):
        factor = 8 if low[-1] == "w" else 1
        low = low[:-1]
    power = 0
    if low[-1:] in _POWERS and low[-1:]:
        power = _POWERS[low[-1]]
        low = low[:-1]
    wrong = f"{text!r} is no size; write it like 600mb, 32mw or unlimited"
    return _whole(_decimal(low, wrong) * factor * 1024**power, wrong)


def parse_time(text: str) -> int:
    """Milliseconds of ``600``, ``10:00``, ``1:00:00``, ``1.5``, ``30min``, ``24h``, ``500ms``; UNLIMITED
    for ``unlimited``.

    Raises BadValue when the text is no time.
    """
    if is_unlimited(text):
        return UNLIMITED
    low = text.strip().lower()
    wrong = f"{text!r} is no time; write it like 600, 10:00, 1:00:00, 30min, 24h or unlimited"
    if low.endswith("ms"):
        return _whole(_decimal(low[:-2], wrong), wrong)
    for suffix, seconds in _SUFFIXES:
        if low.endswith(suffix):
            return _whole(_decimal(low.removesuffix(suffix).strip(), wrong) * seconds * 1000, wrong)
    if low[-1:] in _LETTERS and low[-1:]:
        return _whole(_decimal(low[:-1], wrong) * _LETTERS[low[-1]] * 1000, wrong)
    parts = low.split(":")
    if len(parts) > 4:
        raise BadValue(wrong)
    weights = (1, 60, 3_600, 86_400)
    total = sum(
        (_decimal(part, wrong) * weight for part, weight in zip(reversed(parts), weights, strict=False)),
        Decimal(0),
    )
    return _whole(total * 1000, wrong)


def parse_count(text: str, wanted: str = "whole number from 0 upward") -> int:
    """A whole number >= 0, or UNLIMITED for ``unlimited`` and ``unspecified``. Raises BadValue saying what
    is ``wanted``."""
    if is_unlimited(text) or text.lower() == "unspecified":
        return UNLIMITED
    if not (text.isascii() and text.isdigit()):
        raise BadValue(f"{text!r} is no {wanted}")
    if len(text) > 15:
        raise BadValue(f"{text!r} is too great for a number")
    return int(text)


def parse_percent(text: str) -> float:
    """A part of a hundred: ``20%``, ``12.5``. Raises BadValue."""
    return float(_decimal(text.removesuffix("%").strip(), f"{text!r} is no percentage; write it like 20%"))


@lru_cache(maxsize=64)
def part_of(text: str | None, whole: int) -> int | None:
    """Bytes of a size, or of a part of a whole: ``500mb``, ``10%``; None: as much as one likes. Raises
    BadValue."""
    if text is None:
        return None
    if not text.endswith("%"):
        try:
            size = parse_size(text)
        except BadValue:
            raise BadValue(f"{text!r} is neither a size like 500mb nor a part like 10%") from None
        return None if size == UNLIMITED else size
    percent = parse_percent(text)
    if percent > 100:
        raise BadValue(f"{text} is more than the whole")
    return int(whole * percent / 100)


def _decimal(text: str, wrong: str) -> Decimal:
    if not text or not text.isascii() or len(text) > 20 or not all(c.isdigit() or c == "." for c in text):
        raise BadValue(wrong)
    try:
        return Decimal(text)
    except InvalidOperation:
        raise BadValue(wrong) from None


def _whole(value: Decimal, wrong: str) -> int:
    whole = int(value.to_integral_value(rounding=ROUND_CEILING))
    if whole > GREATEST:
        raise BadValue(wrong.replace("is no ", "is too great for a ", 1))
    return whole


def format_size(size: int | None) -> str:
    """A size as qmgr reads it back exactly: the greatest unit that divides it, ``unlimited`` for None and
    UNLIMITED."""
    if size is None or size == UNLIMITED:
        return "unlimited"
    for unit, power in (("tb", 4), ("gb", 3), ("mb", 2), ("kb", 1)):
        if size and size % 1024**power == 0:
            return f"{size // 1024**power}{unit}"
    return f"{size}b"


def format_time(ms: int | None) -> str:
    """A time as ``10:00`` or ``1:00:00``, plain seconds under a minute, ``unlimited`` for None and
    UNLIMITED."""
    if ms is None or ms == UNLIMITED:
        return "unlimited"
    seconds, rest = divmod(ms, 1000)
    fraction = f".{rest:03d}".rstrip("0") if rest else ""
    if seconds < 60:
        return f"{seconds}{fraction}"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{head}:{seconds:02d}{fraction}"


def format_seconds(ms: int | None) -> str:
    """A time in seconds with its unit, as refusals name limits: ``600 s``."""
    if ms is None or ms == UNLIMITED:
        return "unlimited"
    seconds, rest = divmod(ms, 1000)
    fraction = f".{rest:03d}".rstrip("0") if rest else ""
    return f"{seconds}{fraction} s"


def finite(value: int | None) -> int | None:
    """The value if it is a finite limit, else None."""
    return None if value is None or value == UNLIMITED else value
