"""Observations of the machine and the site: resources that break or are well again, scarce memory."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from nqspy.core.resource_health import tried
from nqspy.engine.handlers.context import Transaction
from nqspy.model import observations as ob
from nqspy.model.actions import Notify
from nqspy.model.consumables import units_of
from nqspy.model.events import ForeignChanged, MachineFound, PressureChanged, ResourceChanged
from nqspy.model.machine import ForeignJob, Found
from nqspy.model.site import Site
from nqspy.model.units import format_span

NOTABLE = 1.0
"""Least difference of two readings (per cent of the memory) for which the later one is recorded."""


def without_older(
    waiting: list[ob.Observation | ob.SiteObservation], news: ob.SiteObservation
) -> list[ob.Observation | ob.SiteObservation]:
    """Return the waiting observations without those of the same kind and resource as the later ``news``."""
    what = (type(news), getattr(news, "name", None))
    return [each for each in waiting if (type(each), getattr(each, "name", None)) != what]


def apply(tx: Transaction, news: ob.SiteObservation) -> None:
    """Turn an observation into an event and ask for a pass; do nothing if it changes nothing."""
    match news:
        case ob.ObservedResource():
            _probe(tx, news)
        case ob.ObservedPressure():
            # A reading is kept where something may follow from it: another level, the answer to what was
            # decided on the last one, or another use of the memory while requests give way.
            known = tx.site.pressure
            away = any(r.pause is not None and r.pause.preempted for r in tx.site.started.values())
            moved = known.answered or news.people != known.people or abs(news.used - known.used) >= NOTABLE
            if news.level != known.level or ((news.level != "calm" or away) and moved):
                use = news.used, news.text, news.resident, news.total, news.people
                tx.emit(PressureChanged(news.level, *use))
                tx.dirty()
        case ob.ObservedMachine():
            site, before = tx.site, tx.site.found
            found = Found(news.cpus, news.memory, devices=news.devices)
            now = before.updated(found, bool(site.started))
            if now != before:  # PEs that are gone get nothing new, what runs on them goes on
                tx.emit(MachineFound(now.cpus, now.memory, site.host, site.zone, now.offline, now.devices))
                tx.dirty()
                report_machine(tx, before)
        case ob.ObservedForeign():
            jobs = _on_pes(tx.site, news.jobs)
            if jobs != tx.site.foreign:
                tx.emit(ForeignChanged(jobs))
                tx.dirty()


def _on_pes(site: Site, jobs: Iterable[ForeignJob]) -> tuple[ForeignJob, ...]:
    """Return foreign jobs with their PEs instead of their CPUs, without those on no PE. If there are more PEs
    than CPUs, a PE is no CPU, so a job is on none."""
    pes = {cpu: pe for pe, cpu in enumerate(site.found.cpus[: site.pes()])}
    if site.pes() > len(site.found.cpus):
        return ()
    placed = (replace(job, pes=tuple(sorted(pes[cpu] for cpu in job.pes if cpu in pes))) for job in jobs)
    return tuple(job for job in placed if job.pes)


def report_machine(tx: Transaction, before: Found) -> None:
    """Raise an alarm if the machine has other CPUs than before, or a consumable other units."""
    now = tx.site.found
    old, new = ({c for pe, c in enumerate(found.cpus) if pe not in found.offline} for found in (before, now))
    if changed := _changed("CPU ", old, new):
        text = f"the machine has changed: {changed}; CPUs for PEs now: {len(new)}"
        more = "Requests on removed CPUs continue on the others. No request starts on a removed CPU."
        tx.alarm("machine", text, "the machine has changed", more if old - new else "")
    for each in tx.site.settings.consumables.values():
        has = set(units_of(each, now))
        if changed := _changed("", set(units_of(each, before)), has):
            text = f"the machine has changed: {each.name} {changed}; units now: {len(has)}"
            tx.alarm("machine", text, f"the units of {each.name} have changed")


def _changed(name: str, had: set[Any], has: set[Any]) -> str:
    changes = (sorted(had - has), "removed"), (sorted(has - had), "added")
    return " and ".join(f"{name}{', '.join(map(str, some))} {what}" for some, what in changes if some)


def _probe(tx: Transaction, news: ob.ObservedResource) -> None:
    known = tx.site.resources.get(news.name)
    probe = tried(tx.site).get(news.name)
    if probe is None or (known is not None and known.state == news.state):
        return
    tx.emit(ResourceChanged(news.name, news.state, news.text))
    tx.dirty()
    if news.state == "broken":
        detail = f": {news.text}" if news.text else ""
        text = f"resource {news.name} is broken{detail}"
        if probe.unit:
            effect = "no request gets it until it works again"
        else:
            queues = [q.name for q in tx.site.settings.queues.values() if probe.name in q.needs]
            effect = f"no request of queue {', '.join(queues)} starts, and none" if queues else "no request"
            effect += f" that needs {probe.name}" + (" starts" if not queues else "")
        more = f"{effect}; {_RUNNING[probe.running]}"
        tx.alarm(f"probe {news.name}", text, f"resource {news.name} is broken", more)
    elif known is not None:
        subject = f"resource {news.name} works again"
        text = f"{subject}, it was broken for {format_span(tx.now - known.since)}"
        tx.act(Notify("", f"nqspy: {subject}", text))


_RUNNING = {
    "hold": "running requests that need it continue",
    "suspend": "running requests that need it are suspended until it works again",
    "requeue": "running requests that need it are queued again, except those that cannot be rerun",
}
