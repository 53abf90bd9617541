"""Probes of resources, and the requests that a broken resource holds: neither an exit nor an operator can
start these. A probe that was never tried counts as ok."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from nqspy.model import errors
from nqspy.model.columns import Columns
from nqspy.model.consumables import resource_of, resources_of
from nqspy.model.errors import BadValue, Refusal, listed
from nqspy.model.events import Change
from nqspy.model.health import Probe, ResourceState, wrong_of
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.registry import ALL, SettingsObject, Words, brought, declare, split
from nqspy.model.requests import Request
from nqspy.model.settings import Settings
from nqspy.model.site import Site
from nqspy.model.texts import some_of

Mask = npt.NDArray[np.bool_]

WHO = "probe "
"""Prefix of a probe's name as the source of a reason, a suspension or a requeue."""

_BROKEN = "resource {name} is broken{since: since *}{text:: *}"
_STARTS, _GOES_ON = reason_kinds(
    ReasonCode.RESOURCE,
    starts_when_well=_BROKEN + "; it starts when {who} succeeds again",
    goes_on_when_well=_BROKEN + "; it resumes when {who} succeeds again",
)


# ---------------------------------------------------------------- probes


def _check(settings: Settings, touched: Collection[str] | None) -> Iterable[str]:
    """Yield a line for each error: a wrong probe, a needed one that is missing, a pipe queue with needs."""
    probes, queues = PROBES.all(settings), settings.queues
    changed = {name for kind, name, _ in map(split, touched or ()) if kind is PROBES}
    for name in sorted(changed - probes.keys()):
        if needing := ", ".join(queue.name for queue in queues.values() if name in queue.needs):
            yield f"probe {name} is needed by queue {needing}; take it out of its needs first"
    chosen = queues if touched is None else [path.removeprefix("queue/") for path in touched]
    for queue in (queues[name] for name in chosen if name in queues):
        for name in queue.needs:
            needs = f"queue {queue.name} needs probe {name}, which"
            if name not in probes:
                yield f"{needs} does not exist; probes: {listed(probes)}"
            elif probes[name].units is not None:
                yield f"{needs} tries units of {probes[name].units}: these are asked for"
        if queue.needs and queue.kind == "pipe":
            text = "a pipe queue runs nothing and needs nothing; set needs of batch queues"
            yield f"queue {queue.name}: {text}"
    for name, probe in probes.items():
        wrong = wrong_of(probe) if touched is None or f"{PROBES.head}/{name}" in touched else None
        if wrong is not None:
            yield f"probe {name}: {wrong}"
    by_consumable: dict[str, str] = {}
    for name, units in ((name, probe.units) for name, probe in probes.items() if probe.units is not None):
        if units not in settings.consumables:
            yield f"probe {name}: there is no consumable {units}; consumables: {listed(settings.consumables)}"
        if units in by_consumable:
            other = f"probe {by_consumable[units]} tries the units of {units} already"
            yield f"probe {name}: {other}; a consumable has one such probe"
        by_consumable[units] = name


def _settle(site: Site) -> bool:
    """Forget the results of removed probes. Return True if there were any."""
    removed = site.resources.keys() - tried(site).keys()
    for name in removed:
        del site.resources[name]
    site.note_away()
    return bool(removed)


def _vet(site: Site, settings: Settings, change: Change) -> None:
    """Raise BadValue for the deletion of a probe in use, a reserved name, and a URL without a host."""
    _, name, _ = split(change.path)
    if change.op == "delete":
        needing = sorted(seq for seq, request in site.requests.items() if name in request.spec.ask.needs)
        if needing:
            by = some_of(needing, 3, site.id_of)
            raise BadValue(f"probe {name} is needed by {by}; modify or delete them first")
    if change.op == "create" and name.lower() == "none":
        raise BadValue(f"{name!r} cannot be the name of a probe: it is the word for no needs")
    url = brought(change).get("http")
    if isinstance(url, str) and url.startswith(("http://", "https://")) and not _has_host(url):
        raise BadValue(f"http={url} names no host; write it like http=http://host:8080/alive")


def _has_host(url: str) -> bool:
    with suppress(ValueError):
        parts = urlsplit(url)
        return bool(parts.hostname) and (parts.port is None or parts.port > 0)
    return False


_WORDS = Words(
    "Probes",
    "what a probe tries, how often",
    "what each probe found last, since when, and when it was tried last",
    create="a check of a resource that requests need, repeated beside the daemon",
    usage="NAME command=TEXT|tcp=HOST:PORT|http=URL|file=PATH",
    delete="a probe that no queue and no request needs",
    reserved="none",
)
PROBES = declare(
    SettingsObject(
        "probe",
        Probe,
        named=True,
        many="probes",
        joined=ALL,
        words=_WORDS,
        check=_check,
        settle=_settle,
        vet=_vet,
    )
)


def tried(site: Site) -> dict[str, Probe]:
    """Return the probes by the resource that they try. A probe of units appears once for each unit."""
    parts = (tried_by(site, probe) for probe in PROBES.all(site.settings).values())
    return {name: probe for part in parts for name, probe in part.items()}


def tried_by(site: Site, probe: Probe) -> dict[str, Probe]:
    """Return a probe by the name of the resource that it tries; of a probe of units a copy for each unit."""
    if probe.units is None:
        return {probe.name: probe}
    consumable = site.settings.consumables.get(probe.units)
    units = resources_of(consumable, site.found) if consumable is not None else {}
    return {name: replace(probe, name=name, unit=unit) for name, unit in units.items()}


errors.declare_refusals(
    "unknown_probe", 166, {"unknown_probe": "there is no probe {probe} to need; probes: {known}"}
)


def check_needs(site: Site, needs: Collection[str]) -> None:
    """Raise Refusal if a request needs a resource without a probe of that name (not one of units)."""
    probes = [name for name, probe in PROBES.all(site.settings).items() if probe.units is None]
    for name in needs:
        if name not in probes:
            raise Refusal("unknown_probe", probe=name, known=listed(probes))


# ---------------------------------------------------------------- what is broken


def broken(site: Site) -> dict[str, ResourceState]:
    """Return the resources that are broken now, by name."""
    return {name: state for name, state in site.resources.items() if state.state == "broken"}


def needs_of(site: Site, request: Request) -> Iterator[str]:
    """Yield the resources that a request needs: those of its queue, its own, then the units that it holds."""
    queue = site.settings.queues.get(request.queue)
    if queue is not None:
        yield from queue.needs
    yield from request.spec.ask.needs
    yield from (resource_of(name, unit) for name, units in request.units for unit in units)


def why_blocked(site: Site, request: Request) -> Reason | None:
    """Return the reason of the first broken resource that a waiting request needs; None: all work."""
    return first_of(broken(site), needs_of(site, request)) if site.resources else None


def first_of(resources: Mapping[str, ResourceState], needs: Iterator[str]) -> Reason | None:
    """Return the reason of the first of these needs that is broken; None: none is. ``resources``: the broken
    ones by name, as `broken` returns them."""
    name = next((each for each in needs if each in resources), None)
    return reason(name, resources[name]) if name is not None else None


def reason(name: str, state: ResourceState, *, goes_on: bool = False, since: str = "") -> Reason:
    """Return the reason of a request that waits for a broken resource. ``since``: time as text, to be shown;
    ``goes_on``: the request is suspended, not waiting to start."""
    return (_GOES_ON if goes_on else _STARTS)(WHO + name, name, since, state.text)


def blocked_mask(site: Site, columns: Columns) -> Mask | None:
    """Return the rows that ask for a broken resource; None: no row. What the queue needs does not count."""
    resources = broken(site)
    if not resources:
        return None
    keys = site.numbers.needs.names
    table = np.array([not resources.keys().isdisjoint(key.split("+")) for key in keys], dtype=bool)
    if not table.any():
        return None
    mask: Mask = table[columns.needs]
    return mask if mask.any() else None
