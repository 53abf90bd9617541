"""Owners whose requests an exit failed on again and again, in words."""

from datetime import timedelta
from typing import Any

from nqspy.engine.calendar import local
from nqspy.model.ids import Instant


def whose(args: tuple[Any, ...]) -> str:
    """The owner a call of a deciding hook is about: of its request, or of the share term."""
    first = args[0]
    return first if isinstance(first, str) else str(first.owner)


def told(owner: str, until: Instant | None, zone: str) -> str:
    """What follows "exit NAME failed ": it is asked about this owner's again at that minute, rounded up;
    empty where it is asked (None)."""
    if until is None:
        return ""
    when = local(Instant(until - 1), zone) + timedelta(minutes=1)
    return f"on five requests of {owner} in a row; it is asked about theirs again at {when:%H:%M}"
