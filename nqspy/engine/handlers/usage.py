"""Use corrected by hand: a manager says what a group has used."""

from nqspy.engine.handlers.context import Transaction
from nqspy.engine.handlers.people import need
from nqspy.model import commands as cm
from nqspy.model.errors import Refusal, listed
from nqspy.model.events import UsageCorrected
from nqspy.model.people import Caller, with_default
from nqspy.model.units import GREATEST, format_time


def correct(tx: Transaction, command: cm.CorrectUsage, caller: Caller) -> object:
    """Sets a group's decayed use as of now, groups below it included, and scales its users' use with it.
    Answers what it was and is. Raises Refusal."""
    site, name = tx.site, command.group
    need(site.settings, caller, "manager", f"set usage of group {name}")
    groups = with_default(site.settings.groups)
    if name not in groups:
        raise Refusal("unknown_group", group=name, known=listed(groups))
    former = round(site.use_of(name, tx.now))
    value = max(0, former + command.ms) if command.relative else command.ms
    if not 0 <= value <= GREATEST:
        raise Refusal("bad_use", value=command.ms, most=GREATEST)
    tx.emit(UsageCorrected(name, former, value, caller.user))
    tx.dirty()
    text = f"use of group {name}: {_shown(value)}, was {_shown(former)}"
    return {"text": text, "group": name, "former": former, "value": value}


def _shown(ms: int) -> str:
    return format_time(ms) if ms >= 60_000 else f"{format_time(ms)} s"
