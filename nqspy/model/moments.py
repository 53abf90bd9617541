"""Moments as people read them, in the site's zone."""

from datetime import datetime

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
