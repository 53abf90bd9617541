"""Consumables: their settings, requests for units, the choice of units, and their display."""

import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from nqspy.model import errors, tree
from nqspy.model.consumables import Consumable, Units, Wanted, device_of, offline_of, units_of, vendor_of
from nqspy.model.domains import spans
from nqspy.model.errors import BadValue, Refusal
from nqspy.model.errors import listed as in_words
from nqspy.model.events import Change
from nqspy.model.options import GPUS, resource_named
from nqspy.model.registry import ALL, SettingsObject, Words, brought, declare, split
from nqspy.model.requests import Ask
from nqspy.model.settings import Settings
from nqspy.model.site import Site
from nqspy.model.texts import some_of
from nqspy.model.tree import as_list

GPU = "gpu"
"""The consumable that ``-l gpus=2`` and ``ngpus=2`` mean if none has that name."""
_WORD, _VARIABLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,30}"), re.compile(r"(?!\d)[A-Z0-9_]*")
_OURS = ("PBS_", "QSUB_", "NQSPY_", "LD_", "PYTHON", "BASH_", "PERL", "RUBY", "JAVA_", "NODE_", "GCONV_")
_OTHERS = (
    "PATH", "HOME", "SHELL", "USER", "LOGNAME", "ENV", "IFS", "TZ", "LANG", "ENVIRONMENT", "TMPDIR",
    "SHELLOPTS", "BASHOPTS", "PS4", "CDPATH", "ZDOTDIR", "NCPUS", "OMP_NUM_THREADS",
)  # fmt: skip
"""Variables, and beginnings of variables, that a consumable must not set: they have another meaning."""


# ---------------------------------------------------------------- settings


def _check(settings: Settings, touched: Collection[str] | None) -> Iterable[str]:
    """Yield a line for each consumable with wrong units or variable, and for each limit on an unknown one."""
    changed = [split(path) for path in touched or ()]
    names = {name for kind, name, _ in changed if kind is CONSUMABLES}
    known = settings.consumables
    whole = touched is None or bool(names - known.keys())
    for each in known.values():
        if touched is None or each.name in names:
            yield from _wrong(each)
    scopes: dict[str, Any] = {f"queue {name}": queue for name, queue in settings.queues.items()}
    scopes |= {f"complex {name}": each for name, each in settings.complexes.items()}
    scopes["global"] = settings.global_
    places = {path.replace("/", " ") for path in touched or ()}
    for where, scope in scopes.items():
        if whole or where in places:
            yield from _wrong_limits(where, scope, known)


def _wrong_limits(where: str, scope: Any, known: Collection[str]) -> Iterator[str]:
    for setting in (name for name, info in tree.declared(type(scope)).items() if info.unit == "amounts"):
        for text in getattr(scope, setting):
            name = text.partition("=")[0]
            if name not in known:
                names = in_words(known)
                yield f"{where}: {setting}: there is no consumable {name}; consumables: {names}"


def _wrong(each: Consumable) -> Iterator[str]:
    if bool(each.units) == (each.count is not None):
        yield (
            f"consumable {each.name}: give its units, as a list or auto, or their count, not both"
            " (units=() or count=none deletes the former)"
        )
    for unit in () if each.is_found else each.units:
        if not _WORD.fullmatch(unit):
            yield f"consumable {each.name}: unit {unit!r}: a unit has up to 31 letters, digits, - _ ."
    variable = each.env
    if variable is not None and not _VARIABLE.fullmatch(variable):
        yield f"consumable {each.name}: env={variable} is not a variable; write it like CUDA_VISIBLE_DEVICES"
    elif variable is not None and (variable in _OTHERS or variable.startswith(_OURS)):
        yield f"consumable {each.name}: env={variable} has another meaning; choose another variable"


def _vet(site: Site, settings: Settings, change: Change) -> None:
    """Raise BadValue for a name that `qsub -l` reads otherwise, a unit named twice, unknown units set
    offline, and the deletion of a consumable that requests ask for."""
    _, name, _ = split(change.path)
    if change.op == "create" and (other := resource_named(name)):
        text = f"{name!r} is not a name for a consumable: qsub reads -l {name}= as {other}="
        raise BadValue(text if name == other else f"{text} with a typing error")
    if change.op == "delete" and (
        asking := sorted(r.seq for r in site.requests.values() if name in dict(r.spec.ask.consumables))
    ):
        by = some_of(asking, 3, site.id_of)
        raise BadValue(f"{by} asked for consumable {name}; modify or delete them first")
    given = brought(change)
    units = as_list(given.get("units") or ())
    if twice := [unit for place, unit in enumerate(units) if unit in units[:place]]:
        raise BadValue(f"consumable {name}: unit {twice[0]} is named twice; name each unit once")
    there = change.op == "create" or name in settings.consumables
    if there and change.op in ("create", "set", "add") and (away := as_list(given.get("offline"))):
        present = settings.consumables.get(name) or Consumable(name)
        made = dataclasses.replace(present, **_as_units(given)) if change.op == "create" else present
        units = units_of(made, site.found)
        unknown = [unit for unit in away if unit not in units]
        if unknown and not made.is_found:  # a device may come back
            raise BadValue(f"consumable {name} has no unit {unknown[0]}; its units: {_few(units)}")


def _as_units(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings of a new consumable that define its units and have a valid type."""
    units, count = given.get("units"), given.get("count")
    is_number = isinstance(count, int) and not isinstance(count, bool)
    valid: dict[str, Any] = {"count": count} if is_number else {}
    if isinstance(units, list | tuple) and all(isinstance(unit, str) for unit in units):
        valid["units"] = tuple(units)
    return valid


def _few(units: Sequence[str]) -> str:
    return in_words(units) if len(units) <= 16 else f"{', '.join(units[:15])}, ... {units[-1]}"


def _settle(site: Site) -> bool:
    site.note_away()
    return False


_WORDS = Words(
    "Consumables",
    "units of a consumable, which of them are offline, and how they are given",
    "consumables: their units, which are offline, and which request holds which",
    create="units that requests ask for: GPUs, licences, barrier circuits",
    usage="NAME units=(0, 1, 2, 3)|auto|count=N [env=VARIABLE] [policy=lowest|round_robin|nearest]",
    delete="a consumable that no request asks for",
)
CONSUMABLES = declare(
    SettingsObject(
        "consumable",
        Consumable,
        "consumables",
        named=True,
        many="consumables",
        joined=ALL,
        words=_WORDS,
        check=_check,
        settle=_settle,
        vet=_vet,
    )
)

errors.declare_refusals(
    "unknown_resource",
    187,
    {"unknown_consumable": "unknown resource {name}; consumables: {known}"},
)
errors.declare_refusals("above_limit", 188, {"too_many_units": "needs {asked} {name}, the site has {most}"})
errors.declare_refusals(
    "bad_resource", 1, {"no_unit_asked": "{name} must be a number of units from 1 upward, not {asked}"}
)
errors.declare_refusals(
    "unit_is_held",
    1,
    {"unit_is_held": "unit {unit} of {name} is held by {holder}; only a free unit can be removed"},
)


def check_held(site: Site, after: Settings, touched: Collection[str]) -> None:
    """Raise Refusal if new settings (``after``; ``touched``: changed paths) remove a unit that is held."""
    for path in touched:
        kind, name, _ = split(path)
        if kind is CONSUMABLES and (held := site.units.get(name)):
            units = units_of(after.consumables[name], site.found) if name in after.consumables else ()
            removed = [unit for unit in held if unit not in units]
            if removed:
                holder = site.id_of(held[removed[0]])
                raise Refusal("unit_is_held", unit=removed[0], name=name, holder=holder)


# ---------------------------------------------------------------- asking


def resolved(site: Site, ask: Ask) -> Ask:
    """Return what a request asks for with the names of the site's consumables, each once with its whole
    count. ``gpus`` and ``ngpus`` stand for ``gpu`` if no consumable has that name."""
    if not ask.consumables:
        return ask
    counts: dict[str, int] = {}
    for given, count in ask.consumables:
        name = _own_name(site, given)
        counts[name] = counts.get(name, 0) + count
    return replace(ask, consumables=tuple(sorted(counts.items())))


def _own_name(site: Site, given: str) -> str:
    known = site.settings.consumables
    return GPU if given in GPUS and given not in known and GPU in known else given


def with_units(site: Site, wanted: Wanted, given: str, count: Any) -> Wanted:
    """Return ``wanted`` (counts by consumable) with ``count`` as the new count of the consumable ``given``; 0
    removes it. Raises Refusal for an unknown consumable."""
    name = _own_name(site, given)
    if name not in site.settings.consumables:
        raise Refusal("unknown_consumable", name=given[:80], known=in_words(site.settings.consumables))
    others = tuple(each for each in wanted if each[0] != name)
    return others if count == 0 else tuple(sorted((*others, (name, count))))


def sets_variables(site: Site, before: Ask, after: Ask) -> bool:
    """True if two asks differ in a consumable that sets an environment variable of the job."""
    known = site.settings.consumables
    differing = set(before.consumables) ^ set(after.consumables)
    return any(name in known and known[name].env is not None for name, _ in differing)


def check_wanted(site: Site, wanted: Wanted) -> None:
    """Raise Refusal for an unknown consumable, a count below 1, and more units than the site has."""
    known = site.settings.consumables
    for name, asked in wanted:
        if name not in known:
            raise Refusal("unknown_consumable", name=name[:80], known=in_words(known))
        if asked < 1:
            raise Refusal("no_unit_asked", name=name, asked=asked)
        if asked > (most := len(units_of(known[name], site.found))):
            raise Refusal("too_many_units", asked=asked, name=name, most=most)


# ---------------------------------------------------------------- giving


def open_units(site: Site) -> dict[str, list[str]]:
    """Return the units of each consumable that are neither held nor offline, in the order of `units_of`."""
    found, free = site.found, {}
    for name, each in site.settings.consumables.items():
        away = {*site.units.get(name, ()), *offline_of(each, found, site.resources)}
        free[name] = [unit for unit in units_of(each, found) if unit not in away]
    return free


def may_have(site: Site, wanted: Wanted, units: Units) -> bool:
    """True if these units are as many of each consumable as wanted, none named twice, and all are free."""
    counts = {name: len(set(each)) for name, each in units}
    if counts != dict(wanted) or sum(counts.values()) != sum(len(each) for _, each in units):
        return False
    free = open_units(site) if units else {}
    return all(set(each) <= set(free.get(name, ())) for name, each in units)


class UnitBoard:
    """Free units of all consumables in a pass (`Draft.units`); each start takes its units away."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._open = open_units(site)
        self._turns = dict(site.turns)

    def give(self, wanted: Wanted, pes: Sequence[int]) -> Units:
        """Choose free units for a request that starts on these PEs, by the ``policy`` of each consumable;
        take them off the board and return them. The caller makes sure that enough are free."""
        given = []
        for name, count in wanted:
            each, free = self._site.settings.consumables[name], self._open[name]
            if each.policy == "round_robin":
                units, last = units_of(each, self._site.found), self._turns.get(name)
                start = units.index(last) + 1 if last in units else 0
                chosen = [unit for unit in units[start:] + units[:start] if unit in free][:count]
            elif each.policy == "nearest":
                near = {unit: self._nearness(each, unit, pes) for unit in free}
                chosen = sorted(sorted(free, key=near.__getitem__, reverse=True)[:count], key=free.index)
            else:
                chosen = free[:count]
            self._open[name] = [unit for unit in free if unit not in chosen]
            self._turns[name] = chosen[-1]
            given.append((name, tuple(chosen)))
        return tuple(given)

    def _nearness(self, each: Consumable, unit: str, pes: Sequence[int]) -> int:
        """Return how many CPUs of these PEs are near to the device of a unit."""
        site, device = self._site, device_of(each, unit, self._site.found)
        if device is None or site.pes() > len(site.found.cpus):
            return 0
        return len({site.found.cpus[pe] for pe in pes if pe < len(site.found.cpus)}.intersection(device.cpus))


# ---------------------------------------------------------------- display


def rows(site: Site, chosen: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return consumables (named in ``chosen``; empty: all) as JSON objects: units, those offline, holders."""
    return [
        {
            "name": each.name,
            "units": list(units_of(each, site.found)),
            "offline": offline_of(each, site.found, site.resources),
            "used": {unit: site.id_of(seq) for unit, seq in sorted(site.units.get(each.name, {}).items())},
        }
        for each in site.settings.consumables.values()
        if not chosen or each.name in chosen
    ]


def text(site: Site, chosen: Collection[str] = ()) -> str:
    """Return the consumables named in ``chosen`` (empty: all) as text for people."""
    lines, opened = [], open_units(site)
    for row in rows(site, chosen):
        each = site.settings.consumables[row["name"]]
        free = len(opened[each.name])
        away = f", {len(row['offline'])} offline ({_few(row['offline'])})" if row["offline"] else ""
        variable = f" env={each.env}" if each.env is not None else ""
        lines += [
            f"{each.name} [policy={each.policy}{variable}]",
            f"  units {_few(row['units'])}: {len(row['units'])}, {free} free, {len(row['used'])} held{away}",
        ]
        lines += [f"  {unit} held by {id}" for unit, id in row["used"].items()]
        lines += [f"  {line}" for line in device_lines(site, each)]
    return "\n".join(lines) if lines else "no consumables"


def device_lines(site: Site, each: Consumable) -> list[str]:
    """Return a line for each device of the machine (`Site.found`) that is a unit of a consumable, or, with
    ``units=auto``, that there is none; no line if its named units are no devices."""
    vendor = vendor_of(each, site.found)
    devices = [device for device in site.found.devices if device.vendor == vendor]
    if not each.is_found:
        units = units_of(each, site.found)
        devices = [device for device in devices if device.unit in units]
    elif not devices:
        vendors = sorted({device.vendor for device in site.found.devices})
        several = f": there are devices of {' and of '.join(vendors)}, env= must name the vendor's variable"
        return [f"found no device{several if len(vendors) > 1 else ''}"]
    lines = []
    for device in devices:
        files = f" ({', '.join(device.files)})" if device.files else ""
        near = f", near CPUs {', '.join(spans(device.cpus))}" if device.cpus else ""
        lines.append(f"found {_NAMES.get(device.vendor, device.vendor)} {device.unit}{files}{near}")
    return lines


_NAMES = {"nvidia": "NVIDIA", "amd": "AMD"}


def found_lines(site: Site, settings: Settings, changes: Iterable[Change]) -> str:
    """Return the lines of `found_now`, as one text, for consumables that these changes create or set."""
    names = dict.fromkeys(split(change.path)[1] for change in changes if split(change.path)[0] is CONSUMABLES)
    made = (settings.consumables[name] for name in names if name in settings.consumables)
    return "".join(f"{line}\n" for line in found_now(site, made))


def found_now(site: Site, consumables: Iterable[Consumable] | None = None) -> list[str]:
    """Return a line for each device found for these consumables (None: for all), or that none was found.
    Only consumables with ``units=auto`` count: the others' units are named by a person."""
    some = site.settings.consumables.values() if consumables is None else consumables
    return [f"{each.name}: {line}" for each in some if each.is_found for line in device_lines(site, each)]
