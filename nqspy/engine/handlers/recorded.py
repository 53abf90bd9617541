"""What a journal says has happened, made to happen again: the events as they are, and what each of them
brings about besides."""

from collections.abc import Sequence

from nqspy.engine.handlers import depend
from nqspy.engine.handlers.context import Transaction
from nqspy.model import events as ev

_SETTLING = (ev.SettingsChanged, ev.FilesApplied, ev.ShiftChanged, ev.ShiftFailed)
"""What makes a plan void that was asked for before, and has the shifts looked at anew."""
_TOLD = (ev.Alarm, ev.DaemonStarted, ev.Reported)
"""What changes nothing that a pass looks at."""


def take(tx: Transaction, events: Sequence[ev.Event]) -> bool:
    """Has them happen one after the other; whether settings or shifts were among them."""
    submitted, settling = [], False
    for event in events:
        tx.emit(event)
        if isinstance(event, ev.Submitted):
            submitted.append(event.seq)
        elif isinstance(event, _SETTLING):
            settling = True
    if submitted:
        depend.judge_now(tx, [seq for seq in submitted if seq in tx.site.requests])
    if not all(isinstance(event, _TOLD) for event in events):
        tx.dirty()
    return settling
