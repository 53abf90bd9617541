"""Who asks for far more wall time than he needs is told so: others are started past him, or wait behind him,
by that limit."""

from nqspy.model.ids import MINUTE
from nqspy.model.lifetimes import RECENT, WHOLE, Key, Lifetimes
from nqspy.model.settings import Settings
from nqspy.model.units import format_time

LEAST = 10 * MINUTE
"""A wall limit (ms) below which nobody cares how much of it is used."""
SPARE = 1_500
"""Thousandths of the longest run that a limit which is recommended lets it run."""


def hint(settings: Settings, past: Lifetimes, key: Key, limit: int | None) -> str:
    """What the owner of a request of that key and with that wall limit of its own (ms; None or less than 0:
    none) is told: where it is `Server.limit_hint` times what the last ones like it ran, or more. Empty:
    nothing."""
    times, known = settings.server.limit_hint, past.known.get(key)
    if times is None or known is None or limit is None or limit < LEAST:
        return ""
    walls = [run.wall for run in known.runs[-RECENT:]]
    longest = max(walls)
    if longest * times > limit:
        return ""
    ran = f"the last {len(walls)} like it ran" if len(walls) > 1 else "the one like it ran"
    return (
        f"{ran} {_whole(longest)} at most, of a wall limit of {format_time(limit)}: with"
        f" {format_time(_rounded(longest))} instead (-l walltime=) it may start earlier"
    )


def _whole(ms: int) -> str:
    """To the second, upward."""
    seconds = -(-max(ms, 1) // 1000)
    return f"{seconds} s" if seconds < 60 else format_time(seconds * 1000)


def _rounded(longest: int) -> int:
    """With something to spare, in whole minutes."""
    return -(-longest * SPARE // WHOLE // MINUTE) * MINUTE or MINUTE
