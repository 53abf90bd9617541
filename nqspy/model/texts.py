"""Moments and lines as people read them."""

from datetime import datetime
from textwrap import wrap

_DAYS = {-1: "yesterday ", 0: "today ", 1: "tomorrow "}
_WEEK = 7


def in_words(moment: datetime, now: datetime | None = None) -> str:
    """``today 14:05``, ``tomorrow 06:00``, ``Mon 06:00`` within the coming week, else ``2026-03-02 21:00``.
    Both are on the site's clocks."""
    clock = moment.strftime("%H:%M")
    days = None if now is None else (moment.date() - now.date()).days
    if days in _DAYS:
        return _DAYS[days] + clock
    if days is not None and 0 < days < _WEEK:
        return moment.strftime("%a ") + clock
    return f"{moment.date().isoformat()} {clock}"


def short(text: str) -> str:
    """``2026-03-02 21:00:00`` of an RFC 3339 text."""
    return f"{text[:10]} {text[11:19]}"


WIDTH = 80
"""Columns of a line; only a word that is longer by itself makes one longer."""


def lines(text: str, indent: str = "", more: str = "") -> list[str]:
    """A text in lines of at most `WIDTH` columns; further lines begin with ``indent`` and ``more``."""
    found = wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent + more, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return found or [indent.rstrip()]


def folded(line: str, hang: int = 2) -> str:
    """The line, or the lines that it takes, with ``hang`` blanks more than its own before those after the
    first."""
    if len(line) <= WIDTH:
        return line
    text = line.lstrip()
    return "\n".join(lines(text, line.removesuffix(text), " " * hang))
