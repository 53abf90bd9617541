"""Consumables: resources given out in single units, each with a name: GPUs, licences, barrier circuits. At
most one attempt holds a unit, from its start to its end."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from nqspy.model.health import ResourceState
from nqspy.model.ids import Seq
from nqspy.model.machine import Device, Found
from nqspy.model.tree import setting

POLICIES = ("lowest", "round_robin", "nearest")
AUTO = ("auto",)
"""Value of ``units`` that means the devices found on the machine."""
MOST = 4096
"""Units of one consumable at most."""

Units = tuple[tuple[str, tuple[str, ...]], ...]
"""Units of an attempt by consumable, in the order in which they were chosen."""
Wanted = tuple[tuple[str, int], ...]
"""Numbers of units that a request asks for, by consumable."""
UnitHolders = dict[str, dict[str, Seq]]
"""Holder of each held unit, by consumable and unit."""


@dataclass(slots=True)
class Consumable:
    """A resource given out in units: named ones (``units``), numbered ones (``count``), or devices found."""

    name: str
    units: tuple[str, ...] = setting(
        "names", (), "its units, like (0, 1, 2, 3); auto: the GPUs found", distinct=True
    )
    count: int | None = setting(
        "count", None, "number of units, numbered from 0", low=1, high=MOST, nothing="none"
    )
    env: str | None = setting(
        "name", None, "variable of the job that names the units it holds",
        guard="variables other than ..._VISIBLE_DEVICES may change what a job runs or reads, even root's",
        unguarded=r"[A-Z][A-Z0-9_]*_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL",
    )  # fmt: skip
    policy: str = setting("name", "lowest", "which free units a request gets", words=POLICIES)
    offline: tuple[str, ...] = setting("names", (), "units that no request gets", operator=True)

    @property
    def is_found(self) -> bool:
        """True if its units are the devices found on the machine."""
        return self.units == AUTO


VENDORS = {
    "CUDA_VISIBLE_DEVICES": "nvidia",
    "NVIDIA_VISIBLE_DEVICES": "nvidia",
    "ROCR_VISIBLE_DEVICES": "amd",
    "HIP_VISIBLE_DEVICES": "amd",
    "GPU_DEVICE_ORDINAL": "amd",
}
"""Vendor of the devices that a variable names."""


def vendor_of(consumable: Consumable, found: Found) -> str | None:
    """Return the vendor of a consumable's devices: by its variable, else that of all found; None: unknown."""
    if consumable.env in VENDORS:
        return VENDORS[consumable.env]
    vendors = {device.vendor for device in found.devices}
    return vendors.pop() if consumable.is_found and len(vendors) == 1 else None


def units_of(consumable: Consumable, found: Found) -> tuple[str, ...]:
    """Return the units of a consumable in their order, offline ones included."""
    if consumable.is_found:
        vendor = vendor_of(consumable, found)
        return tuple(device.unit for device in found.devices if device.vendor == vendor)
    return consumable.units or tuple(map(str, range(consumable.count or 0)))


def device_of(consumable: Consumable, unit: str, found: Found) -> Device | None:
    """Return the device found on the machine that a unit stands for; None: it stands for no device."""
    vendor = vendor_of(consumable, found)
    same = (each for each in found.devices if (each.vendor, each.unit) == (vendor, unit))
    return next(same, None)


def resource_of(name: str, unit: str) -> str:
    """Return the name of a unit as a resource for probes: ``gpu[0]``."""
    return f"{name}[{unit}]"


def resources_of(consumable: Consumable, found: Found) -> dict[str, str]:
    """Return the units of a consumable by their names as resources for probes (`resource_of`)."""
    return {resource_of(consumable.name, unit): unit for unit in units_of(consumable, found)}


def offline_of(consumable: Consumable, found: Found, resources: Mapping[str, ResourceState]) -> list[str]:
    """Return the units of a consumable that are not given out now, in their order: those set offline, and
    those found broken by a probe (``resources``)."""
    away = set(consumable.offline)
    for resource, unit in resources_of(consumable, found).items() if resources else ():
        state = resources.get(resource)
        away |= {unit} if state is not None and state.state == "broken" else set()
    return [unit for unit in units_of(consumable, found) if unit in away] if away else []


def hold(held: UnitHolders, seq: Seq, units: Units) -> None:
    """Record a request as the holder of these units."""
    for name, each in units:
        held.setdefault(name, {}).update(dict.fromkeys(each, seq))


def release(held: UnitHolders, seq: Seq, units: Units) -> None:
    """Remove a request as the holder of these units."""
    for name, each in units:
        mine = held.get(name, {})
        for unit in each:
            if mine.get(unit) == seq:
                del mine[unit]
        if not mine:
            held.pop(name, None)


def wrong(
    holders: Iterable[tuple[Seq, Units, Wanted]], held: UnitHolders, away: UnitHolders
) -> Iterator[str]:
    """Yield errors in the records of holders of units, in words. ``holders``: attempts with their units and
    the numbers that they asked for; ``away``: holders of units at the time when these went offline."""
    found: UnitHolders = {}
    for seq, units, wanted in holders:
        counts = {name: len(set(each)) for name, each in units}
        if counts != dict(wanted) or any(len(each) != counts[name] for name, each in units):
            yield f"{seq} has not the units it asked for"
        if any(unit in found.get(name, {}) for name, each in units for unit in each):
            yield f"{seq} has a unit that another one has"
        hold(found, seq, units)
    if held != found:
        yield "the holders of units are wrong"
    for name, before in away.items():
        for unit, seq in before.items():
            if held.get(name, {}).get(unit, seq) != seq:
                yield f"unit {unit} of {name} was given while it was offline"


def wanted_key(wanted: Iterable[tuple[str, int]]) -> list[str]:
    """Return the wanted units as texts such as ``gpu=2``."""
    return [f"{name}={count}" for name, count in wanted]


def wanted_in(key: str) -> Mapping[str, int]:
    """Return the numbers of units that a key of `columns.needs_key` asks for, by consumable."""
    pairs = (word.partition("=") for word in key.split("+"))
    return {name: int(count) for name, equals, count in pairs if equals}
