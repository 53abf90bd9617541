"""User exits as people steer them: reload, and switching off the ones that keep failing."""

from nqspy.engine.desk.context import Desk
from nqspy.engine.desk.people import need
from nqspy.model import commands as cm
from nqspy.model.actions import ExitFailure, Notify
from nqspy.model.events import Alarm, ExitOff
from nqspy.model.people import Caller


def reload(desk: Desk, command: cm.ReloadExits, caller: Caller) -> object:
    """Loads the exits again, all or none; the next pass uses them. Raises Refusal with file and line."""
    need(desk.site.settings, caller, "manager", "reload exits")
    text = desk.exits.reload()
    desk.exits.begin(desk.site)
    desk.dirty()
    return {"text": text, "exits": list(desk.exits.declared())}


def tell_failures(desk: Desk, failures: tuple[ExitFailure, ...]) -> None:
    """Raises an alarm for each failing exit, and switches off one that failed on five requests in a row."""
    told: set[str] = set()
    for failure in failures:
        if failure.off:
            text = (
                f"exit {failure.exit} is switched off: it failed on 5 requests in a row, last: {failure.text}"
            )
            desk.emit(ExitOff(failure.exit, failure.text))
            desk.emit(Alarm(f"exit {failure.exit}", text))
            desk.act(
                Notify("", f"nqspy: exit {failure.exit} is switched off", f"{text}\n{failure.traceback}")
            )
        elif failure.exit not in told:
            on = f" on {desk.site.id_of(failure.seq)}" if failure.seq is not None else ""
            desk.emit(Alarm(f"exit {failure.exit}", f"exit {failure.exit} failed{on}: {failure.text}"))
        told.add(failure.exit)
