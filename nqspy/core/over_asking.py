"""Hint to the owner of a request with far more wall time than it needs: with less it may start earlier."""

from nqspy.model.ids import MINUTE
from nqspy.model.lifetimes import RECENT, WHOLE, Key, Lifetimes
from nqspy.model.settings import Settings
from nqspy.model.units import format_time

LEAST = 10 * MINUTE
"""Least wall limit (ms) for which there is a hint."""
SPARE = 1_500
"""Recommended wall limit in thousandths of the longest run."""


def hint(settings: Settings, past: Lifetimes, key: Key, limit: int | None) -> str:
    """Return the hint for a request of that key with that own wall limit (ms; None or less than 0: none).

    Empty unless the limit is at least `Server.limit_hint` times the longest of the last runs like it.
    """
    times, known = settings.server.limit_hint, past.known.get(key)
    if times is None or known is None or limit is None or limit < LEAST:
        return ""
    walls = [run.wall for run in known.runs[-RECENT:]]
    longest = max(walls)
    if longest * times > limit:
        return ""
    ran = f"the last {len(walls)} like it ran" if len(walls) > 1 else "the one like it ran"
    seconds = -(-max(longest, 1) // 1000)
    used = f"{seconds} s" if seconds < 60 else format_time(seconds * 1000)
    enough = -(-longest * SPARE // WHOLE // MINUTE) * MINUTE or MINUTE
    return (
        f"{ran} {used} at most, of a wall limit of {format_time(limit)}: with"
        f" {format_time(enough)} instead (-l walltime=) it may start earlier"
    )
