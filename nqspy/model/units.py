"""Sizes, times and counts as people write them (nqs.md 2.2, interfaces.md 6): reading and printing."""

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec

from nqspy.model import amounts
from nqspy.model.amounts import GREATEST as GREATEST
from nqspy.model.amounts import UNLIMITED as UNLIMITED
from nqspy.model.errors import BadValue

P = ParamSpec("P")


def is_unlimited(text: str) -> bool:
    """True if a text is a word for "no limit"."""
    return text.lower() in amounts.WORDS


def _reader(parse: Callable[P, int]) -> Callable[P, int]:
    def read(*args: P.args, **more: P.kwargs) -> int:
        try:
            return parse(*args, **more)
        except amounts.Wrong as error:
            raise BadValue(str(error)) from None

    return read


parse_size, parse_time = _reader(amounts.parse_size), _reader(amounts.parse_time)
parse_count = _reader(amounts.parse_count)
"""Functions of `amounts` that raise BadValue instead of Wrong."""


def parse_percent(text: str) -> float:
    """Return the number in a percentage: ``20%``, ``12.5``. Raises BadValue."""
    number = text.removesuffix("%").strip()
    digits = number.replace(".", "", 1)
    if not (digits.isascii() and digits.isdigit()) or len(number) > 20:
        raise BadValue(f"{text!r} is not a percentage; write it like 20%")
    return float(number)


@lru_cache(maxsize=64)
def part_of(text: str | None, whole: int) -> int | None:
    """Return the bytes that a text means: a size (``500mb``), or a part of ``whole`` bytes (``10%``); None:
    no limit. Raises BadValue."""
    if text is None:
        return None
    if not text.endswith("%"):
        try:
            size = parse_size(text)
        except BadValue:
            raise BadValue(f"{text!r} is not a size or a part; write it like 500mb or 10%") from None
        return None if size == UNLIMITED else size
    percent = parse_percent(text)
    if percent > 100:
        raise BadValue(f"{text} is more than 100%")
    return int(whole * percent / 100)


def format_size(size: int | None) -> str:
    """Return a size (bytes) as text that qmgr reads back exactly: ``500mb``, ``unlimited``."""
    if size is None or size == UNLIMITED:
        return "unlimited"
    for unit, power in (("tb", 4), ("gb", 3), ("mb", 2), ("kb", 1)):
        if size and size % 1024**power == 0:
            return f"{size // 1024**power}{unit}"
    return f"{size}b"


def format_time(ms: int | None) -> str:
    """Return a time (ms) as ``10:00`` or ``1:00:00``, below a minute in seconds: ``45``, or ``unlimited``."""
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


def format_exact(ms: int | None) -> str:
    """Return a time (ms) as people say it, for refusals: ``1 h 30 min``, ``1.25 s``, ``unlimited``."""
    if ms is None or ms == UNLIMITED:
        return "unlimited"
    parts = f"{ms // 3_600_000:d} h", f"{ms // 60_000 % 60} min", f"{ms % 60_000 / 1000:g} s"
    return " ".join([part for part in parts if part[:2] != "0 "]) or "0 s"


def format_span(ms: int) -> str:
    """Return a time (ms) as people say it, with a part of a second rounded up: ``1 h 30 min``, ``45 s``."""
    return format_exact(-(-max(ms, 0) // 1000) * 1000)


def finite(value: int | None) -> int | None:
    """Return the value if it is a finite limit, else None."""
    return None if value is None or value == UNLIMITED else value
