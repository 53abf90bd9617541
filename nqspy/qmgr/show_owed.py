"""``show shares`` and ``show sched_factor``: what departments are owed, and when that decides."""

from collections.abc import Mapping, Sequence
from typing import Any

from nqspy.model.queues import Weights
from nqspy.model.texts import short, table


def accounts(rows: Sequence[Mapping[str, Any]]) -> str:
    """What groups were entitled to and got, as parts of what all were charged, and the accounts behind it."""
    since = f"since {short(rows[0]['since'])}" if rows[0]["since"] else "so far"
    shown = [
        (
            row["group"],
            "yes" if row["works"] else "no",
            *_quota(row),
            "-" if row["target"] is None else f"{100 * row['target']:.1f} %",
            f"{row['present_s']:+.0f}",
            f"{row['past_s']:+.0f}",
            f"{row['stock']:.3f}",
        )
        for row in rows
    ]
    heads = ("GROUP", "WORK", "ENTITLED", "GOT", "POINTS", "TARGET", "OWED S", "PAST S", "STOCK")
    little = "too little use to tell, " if rows[0]["little_use"] else ""
    return f"share_rule {rows[0]['rule']}; {little}{since}:\n{table(heads, shown)}"


def _quota(row: Mapping[str, Any]) -> tuple[str, str, str]:
    if row["entitled"] is None:
        return "-", "-", "-"
    return f"{100 * row['entitled']:.1f} %", f"{100 * row['got']:.1f} %", f"{100 * row['deviation']:+.1f}"


def beats(weights: Weights) -> list[str]:
    """From which difference on what two departments are owed decides, whatever their requests' ages."""
    if not (weights.share and weights.time):
        return []
    bounds = 4 * weights.time / weights.share
    return [
        f"  share_rule deficit: the share factor beats the time term once what two departments are owed (K)\n"
        f"  differs by {bounds:.3g} b, b being what all PEs do in the mean time of a run"
    ]
