"""Shifts: put in force by the calendar or an operator, with their commands in one transaction."""

from collections.abc import Callable

from nqspy.core import Gate, features
from nqspy.engine import calendar
from nqspy.engine.handlers import exits, requests
from nqspy.engine.handlers.context import Handler, Transaction
from nqspy.engine.handlers.people import need
from nqspy.engine.handlers.settings import changes_of, commands_of, commit_changes, try_changes, verify
from nqspy.model import commands as cm
from nqspy.model.configure import Trial
from nqspy.model.errors import BadValue, NqspyError, Refusal, listed
from nqspy.model.events import ShiftChanged, ShiftFailed
from nqspy.model.ids import DAY, Instant
from nqspy.model.people import Caller
from nqspy.model.reasons import ReasonCode
from nqspy.model.requests import Request
from nqspy.model.settings import Settings
from nqspy.model.site import Site

CALENDAR = Caller("calendar", 0, 0, (), True)
"""Caller of a shift's commands."""

ORDERS: dict[type[cm.Command], Handler] = {
    cm.AbortQueue: requests.abort_queue,
    cm.PurgeQueue: requests.purge_queue,
    cm.HoldRequests: requests.hold,
    cm.ReleaseRequests: requests.release,
}
"""Handlers of a shift's commands other than settings and reloading exits."""

RETRY = 300_000
"""Time after which a shift that failed is tried again, ms."""


def due(tx: Transaction) -> calendar.Firing | None:
    """Return the firing to apply now; None: none is due, or a person's switch still lasts (architecture.md
    5.11).

    Each firing counts once: one not later than the last applied one changes nothing, even after the clock was
    set back.
    """
    site = tx.site
    state = site.shift
    if state.until is not None and tx.now < state.until:
        return None
    firing = calendar.in_force(site.settings, site.timezone, tx.now)
    if firing is None:
        return None
    if state.until is not None:
        return firing
    # A switch more than a week ahead was made by a wrong clock and does not count.
    fired = state.fired if state.fired is not None and state.fired <= tx.now + 7 * DAY else None
    if fired is not None and firing.at <= fired and state.current in site.settings.shifts:
        return None
    return firing


def enter_due(tx: Transaction) -> tuple[bool, Instant | None]:
    """Put the due shift, if any, in force, and store when shifts stop queues next. Return True if one was due
    (even if it failed), and when to check again (None: no shift will come)."""
    firing, site, times = due(tx), tx.site, list[Instant]()
    if firing is not None and not enter(tx, firing):
        times.append(Instant(tx.now + RETRY))
    calendar.note_stops(site, tx.now)
    if site.shift.until is not None and site.shift.until > tx.now:
        times.append(site.shift.until)
    if (coming := calendar.next_firing(site.settings, site.timezone, tx.now)) is not None:
        times.append(coming.at)
    return firing is not None, min(times, default=None)


def enter(
    tx: Transaction, firing: calendar.Firing, manual: bool = False, until: Instant | None = None
) -> bool:
    """Run the commands of a firing's shift and put it in force (``manual``, ``until``: as in `ShiftChanged`).
    Return False if they fail: the former settings stay, and an alarm is raised once."""
    site, name = tx.site, firing.shift
    try:
        run_commands(tx, name)
    except NqspyError as error:
        text = f"shift {name} could not be entered: {error}"
        if site.shift.failed != name:
            tx.emit(ShiftFailed(name, text))
            tx.alarm(f"shift {name}", text, f"shift {name} failed")
        return False
    tx.emit(ShiftChanged(name, site.shift.current, firing.at, manual, until))
    tx.dirty()
    return True


def run_commands(tx: Transaction, name: str) -> None:
    """Carry out a shift's commands, settings first. Raises NqspyError; then nothing has changed."""
    shift = tx.site.settings.shifts[name]
    commands = commands_of(shift.commands)
    changes = tuple(changes_of(commands))
    trial = try_changes(tx, Trial(tx.site.settings), changes, upsert=True, strict=False)
    verify(tx, trial)
    for command in commands:
        queue = getattr(command, "queue", None)
        if queue is not None and queue not in trial.settings.queues:
            raise Refusal("no_queue_of_order", cmd=command.cmd, queue=queue)
    if any(isinstance(command, cm.ReloadExits) for command in commands):
        exits.reload(tx, cm.ReloadExits(), CALENDAR)
    commit_changes(tx, changes, CALENDAR.user, f"shift {name}")
    for command in commands:
        if type(command) in ORDERS:
            ORDERS[type(command)](tx, command, CALENDAR)


def note(tx: Transaction, request: Request, settings: Settings) -> Callable[[Instant | None], str]:
    """Return a function that returns, for a start (None: now), what a coming shift does to a request
    submitted now; empty: nothing. ``settings``: a copy, so that any thread may call it."""
    limit, now = Gate(tx.site, tx.now).limit(request), tx.now
    by_then = Site(settings, upcoming_stops=dict(tx.site.upcoming_stops))

    def text_at(start: Instant | None) -> str:
        if limit is not None and limit.code is ReasonCode.SHIFT:
            return limit.text
        found = features.next_action(by_then, request, now if start is None else start)
        return found.text if found is not None else ""

    return text_at


def switch(tx: Transaction, command: cm.SwitchShift, caller: Caller) -> object:
    """Put a shift in force by hand, until the next firing or the given time. Raises Refusal."""
    site = tx.site
    need(site.settings, caller, "operator", "switch shift")
    if command.shift not in site.settings.shifts:
        raise Refusal("unknown_shift", shift=command.shift, known=listed(site.settings.shifts))
    until = command.until
    if isinstance(until, int) and not tx.now < until <= tx.now + 366 * DAY:
        raise Refusal("bad_until")
    try:
        until = calendar.until_of(until, site.timezone, tx.now) if isinstance(until, str) else until
    except BadValue as error:
        raise Refusal("bad_setting", reason=error) from None
    run_commands(tx, command.shift)
    firing = calendar.in_force(site.settings, site.timezone, tx.now)
    fired = firing.at if firing is not None else site.shift.fired
    tx.emit(ShiftChanged(command.shift, site.shift.current, fired, True, until))
    tx.dirty()
    return {"shift": command.shift, "until": until}


def automatic(tx: Transaction, command: cm.AutomaticShift, caller: Caller) -> object:
    """End a person's switch: put the shift in force that the calendar gives for now."""
    site = tx.site
    need(site.settings, caller, "operator", "set shift automatic")
    firing = calendar.in_force(site.settings, site.timezone, tx.now)
    if firing is not None and (site.shift.manual or site.shift.current != firing.shift):
        run_commands(tx, firing.shift)
        tx.emit(ShiftChanged(firing.shift, site.shift.current, firing.at))
        tx.dirty()
    return {"shift": site.shift.current}
