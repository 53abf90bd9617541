"""Shifts: put in force when the calendar or an operator says so, their commands as one transaction."""

from nqspy.core import domains
from nqspy.core.preemption import spill
from nqspy.core.queueing.limits import RunningCounts
from nqspy.engine import closings, timetable
from nqspy.engine.desk import exits, requests
from nqspy.engine.desk.context import Desk, Handler
from nqspy.engine.desk.people import need
from nqspy.engine.desk.settings import changes_of, commands_of, commit_changes, try_changes, verify
from nqspy.model import commands as cm
from nqspy.model.actions import Notify
from nqspy.model.errors import BadValue, NqspyError, Refusal
from nqspy.model.events import ShiftChanged, ShiftFailed
from nqspy.model.ids import DAY, Instant, Seq
from nqspy.model.people import Caller
from nqspy.model.reasons import ReasonCode
from nqspy.model.requests import Request

CALENDAR = Caller("calendar", 0, 0, (), True)
"""Who carries out a shift's commands."""

ORDERS: dict[type[cm.Command], Handler] = {
    cm.AbortQueue: requests.abort_queue,
    cm.PurgeQueue: requests.purge_queue,
    cm.HoldRequests: requests.hold,
    cm.ReleaseRequests: requests.release,
}
"""What a shift may do besides changing settings and reloading exits."""

RETRY = 300_000
"""Time after which a shift that failed is tried again, ms."""


def due(desk: Desk) -> timetable.Firing | None:
    """The firing to apply now, None when the right shift is in force (architecture.md 5.11).

    Each firing counts once: one not later than the last applied changes nothing, even after the clock was
    set back.
    """
    site = desk.site
    state = site.shift
    if state.until is not None and desk.now < state.until:
        return None
    firing = timetable.in_force(site.settings, site.timezone, desk.now)
    if firing is None:
        return None
    if state.until is not None:
        return firing
    # A switch of more than a week ahead is of a clock that was far off: it says nothing.
    fired = state.fired if state.fired is not None and state.fired <= desk.now + 7 * DAY else None
    if fired is not None and firing.at <= fired and state.current in site.settings.shifts:
        return None
    return firing


def look(desk: Desk) -> tuple[bool, Instant | None]:
    """Enters the shift that is due, and notes when queues are stopped next. Answers whether one was due, and
    when to look again."""
    firing, retry = due(desk), None
    if firing is not None and not enter(desk, firing):
        retry = Instant(desk.now + RETRY)
    closings.look(desk.site, desk.now)
    times = [t for t in (retry, next_change(desk)) if t is not None]
    return firing is not None, min(times, default=None)


def next_change(desk: Desk) -> Instant | None:
    """The next instant at which another shift may be due."""
    site = desk.site
    firing = timetable.next_firing(site.settings, site.timezone, desk.now)
    times = [t for t in (site.shift.until, firing.at if firing else None) if t is not None and t > desk.now]
    return min(times, default=None)


def enter(desk: Desk, firing: timetable.Firing, manual: bool = False, until: Instant | None = None) -> bool:
    """Runs a shift's commands; False when they fail: the former settings stay, an alarm is raised once."""
    site, name = desk.site, firing.shift
    try:
        run_commands(desk, name)
    except NqspyError as error:
        text = f"shift {name} could not be entered: {error}"
        if site.shift.failed != name:
            desk.emit(ShiftFailed(name, text))
            desk.alarm(f"shift {name}", text, f"shift {name} failed")
        return False
    desk.emit(ShiftChanged(name, site.shift.current, firing.at, manual, until))
    desk.dirty()
    return True


def run_commands(desk: Desk, name: str) -> None:
    """Carries out the commands of a shift, its settings before its orders. Raises NqspyError; nothing is
    changed then: what can fail comes first."""
    shift = desk.site.settings.shifts[name]
    commands, changes = commands_of(shift.commands), tuple(changes_of(shift.commands))
    trial = try_changes(desk, desk.site.settings, changes, upsert=True, strict=False)
    verify(desk, trial)
    domains.check_moves(desk.site, trial.settings)
    for command in commands:
        queue = getattr(command, "queue", None)
        if queue is not None and queue not in trial.settings.queues:
            raise Refusal(f"{command.cmd}: there is no queue {queue}", "unknown_queue", 170)
    if any(isinstance(command, cm.ReloadExits) for command in commands):
        exits.reload(desk, cm.ReloadExits(), CALENDAR)
    commit_changes(desk, changes, CALENDAR.user, f"shift {name}")
    for command in commands:
        if type(command) in ORDERS:
            ORDERS[type(command)](desk, command, CALENDAR)


def foretell(desk: Desk, seq: Seq) -> None:
    """Tells the owner of a request that starts, if mail was asked for, what a shift will do to it before its
    wall limit is over."""
    request = desk.site.requests[seq]
    mail, text = request.spec.mail, spill.foretold(desk.site, request, desk.now)
    if text is not None and (mail.begin or mail.end or mail.abort):
        name = desk.site.id_of(seq)
        subject = f"nqspy: {name} starts and may not end in time"
        desk.act(Notify(mail.to or request.owner, subject, f"Request {name} ({request.name}): {text}", seq))


def note(desk: Desk, request: Request, start: Instant | None) -> str:
    """What coming shifts do to a request that is handed in now and would begin at ``start``; empty where they
    leave it alone."""
    kept = RunningCounts(desk.site, now=desk.now).keeping(request)
    if kept is not None and kept.code is ReasonCode.SHIFT:
        return kept.text
    return spill.foretold(desk.site, request, desk.now if start is None else start) or ""


def switch(desk: Desk, command: cm.SwitchShift, caller: Caller) -> object:
    """Puts a shift in force by hand until the next firing, or until a moment. Raises Refusal."""
    site = desk.site
    need(site.settings, caller, "operator", "switch shift")
    if command.shift not in site.settings.shifts:
        raise Refusal(
            f"there is no shift {command.shift}; shifts: {', '.join(site.settings.shifts) or 'none'}",
            "unknown_shift",
        )
    until = _until(desk, command.until)
    run_commands(desk, command.shift)
    firing = timetable.in_force(site.settings, site.timezone, desk.now)
    fired = firing.at if firing is not None else site.shift.fired
    desk.emit(ShiftChanged(command.shift, site.shift.current, fired, True, until))
    desk.dirty()
    return {"shift": command.shift, "until": until}


def _until(desk: Desk, until: Instant | str | None) -> Instant | None:
    if isinstance(until, int) and not desk.now < until <= desk.now + 366 * DAY:
        raise Refusal("until is in the past, or more than a year off", "bad_value", 166)
    if until is None or isinstance(until, int):
        return until
    try:
        return timetable.until_of(until, desk.site.timezone, desk.now)
    except BadValue as error:
        raise Refusal(str(error), "bad_value", 166) from None


def automatic(desk: Desk, command: cm.AutomaticShift, caller: Caller) -> object:
    """Back to the calendar at once."""
    site = desk.site
    need(site.settings, caller, "operator", "set shift automatic")
    firing = timetable.in_force(site.settings, site.timezone, desk.now)
    if firing is not None and (site.shift.manual or site.shift.current != firing.shift):
        run_commands(desk, firing.shift)
        desk.emit(ShiftChanged(firing.shift, site.shift.current, firing.at))
        desk.dirty()
    return {"shift": site.shift.current}
