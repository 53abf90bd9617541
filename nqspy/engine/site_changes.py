"""Effects of events beside the requests themselves: settings, shifts, health, the machine.

Called by `lifecycle.apply` only.
"""

import dataclasses

from msgspec.structs import replace

from nqspy import shares
from nqspy.model import events as ev
from nqspy.model import registry
from nqspy.model.configure import apply_changes, renamed
from nqspy.model.consumables import resources_of
from nqspy.model.health import Pressure, ResourceState
from nqspy.model.ids import Instant
from nqspy.model.lifetimes import key_of, run_of, with_move
from nqspy.model.machine import Found
from nqspy.model.requests import STARTED, Request
from nqspy.model.settings import planned_wall
from nqspy.model.shifts import ShiftState
from nqspy.model.site import Site


def remember(site: Site, request: Request, event: ev.Ended) -> None:
    """Keep what a request used and how long it ran: those like it are expected to run about as long."""
    ask = request.spec.ask
    run = run_of(event, planned_wall(site.settings, request.queue, ask), ask.best_guess)
    if run is not None:
        site.touched.lifetimes.update(site.lifetimes.add(key_of(request), run, site.n))
    shares.remember(site, request, event.used)


def usage_corrected(site: Site, event: ev.UsageCorrected, at: Instant) -> None:
    """A person set what a group counts as having used."""
    shares.correct_use(site, event.group, event.value, at)


def moved_out(site: Site, request: Request, event: ev.MovedOut, at: Instant) -> None:
    """Remembers how long it took to leave its PEs: the next ones will take about as long."""
    site.moves = with_move(site.moves, len(request.pes), event.took)
    site.touched.state = True


# ---------------------------------------------------------------- settings, shifts, the machine


def settings_changed(site: Site, event: ev.SettingsChanged, at: Instant) -> None:
    """Carries the changes out; what hangs on them is counted anew."""
    heads = {renamed(change.path).partition("/")[0] for change in event.changes}
    if "server" in heads:
        _keep_name(site)
    shares.before_settings(site, heads, at)
    apply_changes(site.settings, event.changes, upsert=True)
    shares.after_settings(site, heads, at)
    for path in [renamed(change.path) for change in event.changes]:
        kind, name, _ = registry.split(path)
        if kind is None or not kind.named:
            site.touched.settings.add(path.partition("/")[0])
        else:
            names = kind.all(site.settings) if name == "*" else (name,)
            site.touched.settings.update(f"{kind.head}/{each}" for each in names)
    settled = [kind.settle(site) for kind in registry.objects() if kind.head in heads]
    site.touched.state = site.touched.state or any(settled)


def shift_changed(site: Site, event: ev.ShiftChanged, at: Instant) -> None:
    """Another shift is in force."""
    shares.begin_period(site, at)
    site.shift = ShiftState(event.shift, event.fired, event.manual, event.until, since=at)
    site.touched.state = True


def shift_failed(site: Site, event: ev.ShiftFailed, at: Instant) -> None:
    """Remembers which shift could not be entered, so that this is told once, and why."""
    site.shift = dataclasses.replace(site.shift, failed=event.shift, failed_text=event.text)
    site.touched.state = True


def _keep_name(site: Site) -> None:
    """Remember the host part of identifiers before it may change."""
    if site.name not in site.former:
        site.former = (*site.former, site.name)
        site.touched.state = True


def machine_found(site: Site, event: ev.MachineFound, at: Instant) -> None:
    """The executor looked at the machine."""
    shares.advance_all(site, at)
    site.found = Found(event.cpus, event.memory, event.offline, event.devices)
    _keep_name(site)
    site.host, site.zone = event.host, event.zone
    site.touched.state = True
    shares.tune(site)


def exit_off(site: Site, event: ev.ExitOff, at: Instant) -> None:
    """Switches an exit off."""
    apply_changes(site.settings, (ev.Change("set", f"exit/{event.exit}/enabled", False),))
    site.touched.settings.add(f"exit/{event.exit}")


def files_applied(site: Site, event: ev.FilesApplied, at: Instant) -> None:
    """Remembers which files of ``queues.d`` are in force."""
    site.files = dict(event.files)
    site.touched.state = True


def exits_loaded(site: Site, event: ev.LoadedExits, at: Instant) -> None:
    """Remember which user exits are loaded."""
    site.loaded_exits = dict(event.files)
    site.touched.state = True


# ---------------------------------------------------------------- health


def resource_changed(site: Site, event: ev.ResourceChanged, at: Instant) -> None:
    """A resource was found broken, or well again; one that is not watched is not noted."""
    known = (kind.all(site.settings) for kind, _ in registry.listed())
    units = (resources_of(each, site.found) for each in site.settings.consumables.values())
    if any(event.name in names for names in (*known, *units)):
        site.resources[event.name] = ResourceState(event.state, at, event.text)
        site.note_away()
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
            request.attempts = max(request.attempts, attempt)
            site.touched.requests.add(seq)
    site.touched.state = True


def reported(site: Site, event: ev.Reported, at: Instant) -> None:
    """Note the night of a report that was made, so that none is made twice."""
    site.reported = max(site.reported, event.day)
    site.touched.state = True
