"""What follows from events beside the requests themselves: use that is charged, settings, shifts, health, the
machine.

Called by `lifecycle.apply` only.
"""

from dataclasses import replace

from nqspy.model import events as ev
from nqspy.model.configure import OBJECTS, apply_changes, renamed
from nqspy.model.health import Pressure, ProbeState
from nqspy.model.ids import Instant
from nqspy.model.machine import Found
from nqspy.model.requests import STARTED, Request, Used
from nqspy.model.shifts import ShiftState
from nqspy.model.site import RECENT, Account, Site

# ---------------------------------------------------------------- use


def _amount(site: Site, request: Request, used: Used) -> int:
    """What is charged for that use, ms of CPU or of PE time."""
    return used.cpu if site.settings.usage.charge == "cpu" else used.wall * request.spec.ask.pes


def charge(site: Site, request: Request, used: Used, at: Instant) -> None:
    """Books what an attempt used since it was last charged, to its group and to its owner in that group
    (semantics.md 1)."""
    request.used = used
    total = _amount(site, request, used)
    more = total - request.charged
    request.charged = total
    site.touched.requests.add(request.seq)
    if more:
        for key in (f"g:{request.group}", f"u:{request.group}:{request.owner}"):
            account = _account(site, key)
            account.value = account.at_time(at, site.settings.usage.half_life) + more
            account.at = max(account.at, at)


def _account(site: Site, key: str) -> Account:
    site.touched.accounts.add(key)
    return site.accounts.setdefault(key, Account())


def remember(site: Site, request: Request, used: Used) -> None:
    """Keeps what a request used in all: its group's next are expected to use about as much."""
    recent = _account(site, f"g:{request.group}").recent
    recent.append(_amount(site, request, used))
    del recent[:-RECENT]


def usage_corrected(site: Site, event: ev.UsageCorrected, at: Instant) -> None:
    """A person set what a group counts as having used."""
    site.touched.accounts.update(site.correct_use(event.group, event.value, at))


# ---------------------------------------------------------------- settings, shifts, the machine


def settings_changed(site: Site, event: ev.SettingsChanged, at: Instant) -> None:
    """Carries the changes out; what hangs on them is counted anew."""
    use = any(change.path.startswith("usage/") for change in event.changes)
    if use:
        _settle(site, at)
    apply_changes(site.settings, event.changes, upsert=True)
    if use:
        _count_anew(site)
    for change in event.changes:
        _touch_settings(site, change.path)
    _forget_probes(site)
    if not site.settings.swap_control.enabled and site.pressure != Pressure():
        site.pressure = Pressure()
        site.touched.state = True


def _touch_settings(site: Site, path: str) -> None:
    head, _, rest = renamed(path).partition("/")
    if head not in OBJECTS:
        site.touched.settings.add(head)
        return
    name = rest.partition("/")[0]
    names = getattr(site.settings, OBJECTS[head][0]) if name == "*" else (name,)
    site.touched.settings.update(f"{head}/{each}" for each in names)


def _forget_probes(site: Site) -> None:
    gone = [name for name in site.probes if name not in site.settings.probes]
    for name in gone:
        del site.probes[name]
        site.touched.state = True


def _settle(site: Site, at: Instant) -> None:
    for key, account in site.accounts.items():
        account.value = account.at_time(at, site.settings.usage.half_life)
        account.at = at
        site.touched.accounts.add(key)


def _count_anew(site: Site) -> None:
    # What was charged so far is counted in the new measure, so that only later use is charged by it.
    for request in site.started.values():
        request.charged = _amount(site, request, request.used)
        site.touched.requests.add(request.seq)


def shift_changed(site: Site, event: ev.ShiftChanged, at: Instant) -> None:
    """Another shift is in force."""
    site.shift = ShiftState(event.shift, event.fired, event.manual, event.until, since=at)
    site.touched.state = True


def shift_failed(site: Site, event: ev.ShiftFailed, at: Instant) -> None:
    """Remembers which shift could not be entered, so that this is told once."""
    site.shift = replace(site.shift, failed=event.shift)
    site.touched.state = True


def machine_found(site: Site, event: ev.MachineFound, at: Instant) -> None:
    """The hands looked at the machine."""
    site.found = Found(event.cpus, event.memory, event.offline)
    site.host, site.zone = event.host, event.zone
    site.touched.state = True


def exit_off(site: Site, event: ev.ExitOff, at: Instant) -> None:
    """Switches an exit off."""
    apply_changes(site.settings, (ev.Change("set", f"exit/{event.exit}/enabled", False),))
    site.touched.settings.add(f"exit/{event.exit}")


def files_applied(site: Site, event: ev.FilesApplied, at: Instant) -> None:
    """Remembers which files of ``queues.d`` are in force."""
    site.files = dict(event.files)
    site.touched.state = True


# ---------------------------------------------------------------- health


def probe_changed(site: Site, event: ev.ProbeChanged, at: Instant) -> None:
    """A probe found its resource broken, or well again."""
    if event.name in site.settings.probes:
        site.probes[event.name] = ProbeState(event.state, at, event.text)
        site.touched.state = True


def pressure_changed(site: Site, event: ev.PressureChanged, at: Instant) -> None:
    """The memory has become scarce, has still to give way, or is no longer scarce."""
    site.pressure = Pressure(
        event.level, at, event.used, event.text, event.resident, event.total, event.people
    )
    site.touched.state = True


def pressure_answered(site: Site) -> None:
    """A request gave way or came back: whether that sufficed the next reading tells."""
    site.pressure = replace(site.pressure, answered=True)
    site.touched.state = True


def restored(site: Site, event: ev.Restored, at: Instant) -> None:
    """No number and no attempt that was given out is given out again."""
    site.next_seq = max(site.next_seq, event.next_seq)
    for seq, attempt in event.attempts:
        request = site.requests.get(seq)
        if request is not None and request.state not in STARTED:
            request.attempt = max(request.attempt, attempt)
            site.touched.requests.add(seq)
    site.touched.state = True
