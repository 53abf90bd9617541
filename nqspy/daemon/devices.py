"""Devices that requests can ask for by number, found by their device files: NVIDIA's ``/dev/nvidia0`` and
AMD's render nodes ``/dev/dri/renderD128``, with the CPUs near to each as ``/sys`` shows. If `ROOT` is set in
the daemon's environment, both are searched below that folder."""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from nqspy.executors.proc import text
from nqspy.model import domains
from nqspy.model.errors import BadValue
from nqspy.model.machine import Device

ROOT = "NQSPY_SYS_ROOT"
"""Variable of the daemon's environment: folder in which ``dev``, ``sys`` and ``proc`` lie."""
_AMD, _NVIDIA, _DISPLAY = "0x1002", "0x10de", "0x03"
"""Numbers of the vendors, and of the class of displays, in ``/sys``."""
_NVIDIA_FILE = re.compile(r"nvidia(\d+)")
_RENDER_FILE = re.compile(r"renderD(\d+)")
_CARD = re.compile(r"card\d+")


def found(environment: Mapping[str, str] = os.environ) -> tuple[Device, ...]:
    """Return the machine's GPUs: NVIDIA's by their numbers, then AMD's, numbered from 0."""
    root = Path(environment.get(ROOT) or "/")
    files = _files(root / "dev", _NVIDIA_FILE)
    places: dict[int, Path] = {}  # by the number of a device: the driver lists each under its address
    for each in _listed(root / "proc/driver/nvidia/gpus"):
        lines = text(each / "information").splitlines()
        minor = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("Device Minor")), "")
        if minor.isdigit():
            places[int(minor)] = root / "sys/bus/pci/devices" / each.name
    if not places:  # the driver lists none: in the order of their addresses, if there are as many
        cards = [each for each in _listed(root / "sys/bus/pci/devices") if text(each / "vendor") == _NVIDIA]
        shown = [each for each in cards if (text(each / "class") or _DISPLAY).startswith(_DISPLAY)]
        numbers = [number for number, _ in files]
        places = dict(zip(numbers, shown, strict=True)) if len(shown) == len(numbers) else {}
    nvidia = (_device(root, "nvidia", number, [file], places.get(number)) for number, file in files)
    return (*nvidia, *_amd(root))


def _amd(root: Path) -> Iterator[Device]:
    number = 0
    has_driver = (root / "dev/kfd").exists()
    for minor, file in _files(root / "dev/dri", _RENDER_FILE):
        place = root / f"sys/class/drm/renderD{minor}/device"
        vendor = text(place / "vendor")
        if vendor == _AMD or (not vendor and has_driver):
            names = filter(_CARD.fullmatch, (each.name for each in _listed(place / "drm")))
            cards = (root / "dev/dri" / name for name in names)
            yield _device(root, "amd", number, [file, *filter(Path.exists, cards)], place)
            number += 1


def _device(root: Path, vendor: str, number: int, files: list[Path], place: Path | None) -> Device:
    paths = tuple(f"/{file.relative_to(root)}" for file in files)
    numbers = [_numbers(file) for file in files]
    return Device(vendor, str(number), paths, _near(root, place), tuple(numbers) if all(numbers) else ())


def _numbers(file: Path) -> str:
    """Return major and minor number of a device file as text; empty if it is none."""
    try:
        found = file.stat()
    except OSError:
        return ""
    is_device = stat.S_ISCHR(found.st_mode)
    return f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}" if is_device else ""


def _files(folder: Path, name: re.Pattern[str]) -> list[tuple[int, Path]]:
    matches = ((name.fullmatch(file.name), file) for file in _listed(folder))
    return sorted((int(match[1]), file) for match, file in matches if match is not None)


def _near(root: Path, place: Path | None) -> tuple[int, ...]:
    """Return the CPUs of a device's NUMA node, or its local CPUs; none if ``/sys`` shows none."""
    if place is None:
        return ()
    node = text(place / "numa_node")
    of_node = text(root / f"sys/devices/system/node/node{node}/cpulist") if node.isdigit() else ""
    try:
        return domains.numbers(tuple((of_node or text(place / "local_cpulist")).split(",")))
    except BadValue:
        return ()


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
