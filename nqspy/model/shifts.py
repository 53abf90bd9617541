"""Shifts: named sets of qmgr commands that cron-style times switch on."""

from dataclasses import dataclass, field
from typing import Any

from nqspy.model.ids import Instant
from nqspy.model.tree import setting


@dataclass(slots=True)
class Shift:
    """``lines`` are the commands as written; ``commands`` the same parsed and verified (``commands.encode``
    form)."""

    name: str
    when: tuple[str, ...] = setting("crons", (), "cron expressions in the site's time zone")
    lines: tuple[str, ...] = setting("names", (), "qmgr commands run on entering")
    commands: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class ShiftState:
    """Which shift is in force. ``fired``: the firing last applied (UTC); ``manual``: switched to by an
    operator, ``until`` an instant if any."""

    current: str | None = None
    fired: Instant | None = None
    manual: bool = False
    until: Instant | None = None
    failed: str | None = None
