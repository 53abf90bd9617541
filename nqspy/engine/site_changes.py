"""Effects of events on the site other than on requests: settings, shifts, resources, memory pressure, the
machine. Only `lifecycle` calls this."""

import dataclasses

from msgspec.structs import replace

from nqspy import shares
from nqspy.model import events as ev
from nqspy.model import facts, registry
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
    """Store use and run time of an ended request, from which those of similar requests are estimated."""
    ask = request.spec.ask
    run = run_of(event, planned_wall(site.settings, request.queue, ask), ask.best_guess)
    if run is not None:
        site.touched.lifetimes.update(site.lifetimes.add(key_of(request), run, site.n))
    shares.remember(site, request, event.used)


def moved_out(site: Site, request: Request, event: ev.MovedOut, at: Instant) -> None:
    """Store how long a request took to leave its PEs: times of later moves are estimated from that."""
    site.moves = with_move(site.moves, len(request.pes), event.took)
    site.touched.state = True


def _settings_changed(site: Site, event: ev.SettingsChanged, at: Instant) -> None:
    """Make the changes of settings, compute anew what depends on them, and note the rows to write."""
    heads = {renamed(change.path).partition("/")[0] for change in event.changes}
    if "server" in heads:
        _note_name(site)
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


def _note_name(site: Site) -> None:
    """Keep the host part of identifiers in the list of former names, before it may change."""
    if site.name not in site.former:
        site.former = (*site.former, site.name)
        site.touched.state = True


def pressure_answered(site: Site) -> None:
    """Record that a feature suspended or resumed a request: decisions on memory need a newer reading."""
    site.pressure = replace(site.pressure, answered=True)
    site.touched.state = True


def change(site: Site, event: ev.Event, at: Instant) -> None:
    """Change the site by an event that concerns no request."""
    match event:
        case ev.Decided():
            samples = ((site.started.get(seq), used) for seq, used in event.samples)
            charged = [(r, used) for r, used in samples if r and r.attempt and not r.attempt.starting]
            shares.charge(site, charged, at)
            shares.ready(site, event.ready, at)
            return
        case ev.Alarm() | ev.DaemonStarted():
            return
        case ev.SettingsChanged():
            _settings_changed(site, event, at)
            return
        case ev.ExitOff():
            apply_changes(site.settings, (ev.Change("set", f"exit/{event.exit}/enabled", False),))
            site.touched.settings.add(f"exit/{event.exit}")
            return
        case ev.UsageCorrected():  # a person set what a group counts as having used
            shares.correct_use(site, event.group, event.value, at)
            return
        case ev.Promised():
            facts.store(site, event)
            return
        case ev.ShiftChanged():
            shares.begin_period(site, at)
            site.shift = ShiftState(event.shift, event.fired, event.manual, event.until, since=at)
        case ev.ShiftFailed():  # stored, so that it is reported once, with the cause
            site.shift = dataclasses.replace(site.shift, failed=event.shift, failed_text=event.text)
        case ev.MachineFound():
            shares.advance_all(site, at)
            site.found = Found(event.cpus, event.memory, event.offline, event.devices)
            _note_name(site)
            site.host, site.zone = event.host, event.zone
            shares.tune(site)
        case ev.FilesApplied():
            site.files = dict(event.files)
        case ev.LoadedExits():
            site.loaded_exits = dict(event.files)
        case ev.ResourceChanged():
            known = (kind.all(site.settings) for kind, _ in registry.listed())
            units = (resources_of(each, site.found) for each in site.settings.consumables.values())
            if not any(event.name in names for names in (*known, *units)):
                return  # it is not watched
            site.resources[event.name] = ResourceState(event.state, at, event.text)
            site.note_away()
        case ev.ForeignChanged():
            site.foreign = event.jobs
        case ev.PressureChanged(level, used, text, resident, total, people):
            site.pressure = Pressure(level, at, used, text, resident, total, people)
        case ev.Restored():  # no number or attempt is given out twice
            site.next_seq = max(site.next_seq, event.next_seq)
            for seq, attempt in event.attempts:
                request = site.requests.get(seq)
                if request is not None and request.state not in STARTED:
                    request.attempts = max(request.attempts, attempt)
                    site.touched.requests.add(seq)
        case ev.Reported():  # so that no report of a night is made twice
            site.reported = max(site.reported, event.day)
        case _:
            raise TypeError(f"no event of the site: {event}")
    site.touched.state = True
