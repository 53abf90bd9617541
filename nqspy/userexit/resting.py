"""Owners whose requests an exit failed on, or died on, again and again, in words."""

from datetime import timedelta
from typing import Any

from nqspy.engine.zones import local
from nqspy.model.ids import Instant
from nqspy.userexit.call_stats import Mark


def whose(args: tuple[Any, ...]) -> str:
    """The owner a call of a deciding hook is about: of its request, or of the share term."""
    first = args[0]
    return first if isinstance(first, str) else str(first.owner)


def told(owner: str, mark: Mark | None, zone: str) -> str:
    """What follows "exit NAME failed ": it is asked about this owner's again at that minute, rounded up;
    empty where it is asked (None)."""
    if mark is None:
        return ""
    when = local(Instant(mark.until - 1), zone) + timedelta(minutes=1)
    on = f"requests of {owner} that ended its process" if mark.lost else f"five requests of {owner} in a row"
    return f"on {on}; it is asked about theirs again at {when:%H:%M}"
