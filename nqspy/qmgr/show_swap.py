"""``show swap_control``: the marks, how the memory stands, and who gave way."""

from collections.abc import Mapping, Sequence
from typing import Any

from nqspy.model.health import Pressure, SwapControl
from nqspy.model.tree import declared, get
from nqspy.qmgr.values import write


def marks(control: SwapControl) -> str:
    """The settings."""
    rows = [
        f"  {path:<30}{write(info, get(control, path))}"
        for path, info in declared(SwapControl).items()
        if path != "enabled"
    ]
    return "\n".join([f"  {'swap control':<30}{'on' if control.enabled else 'off'}", *rows])


def state(control: SwapControl, pressure: Pressure, at: str | None, rows: Sequence[Mapping[str, Any]]) -> str:
    """All of it. ``at``: when the memory was last told of, as text; each row: ``id``, ``times`` it gave way,
    ``away`` whether it is away now, ``resident`` text."""
    told = pressure.text or f"{pressure.used:.0f} % in use"
    last = f"{pressure.level} ({told}) since {at}" if at else "not measured yet"
    lines = [marks(control), f"  {'memory':<30}{last}"]
    for row in rows:
        where = "is away" if row["away"] else "is back"
        times = "once" if row["times"] == 1 else f"{row['times']} times"
        lines.append(f"  {row['id']:<30}gave way {times} ({row['resident']}), {where}")
    return "\n".join(lines)
