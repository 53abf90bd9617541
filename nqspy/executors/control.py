"""Limits of a whole request in the kernel: memory, PEs, processes, devices; by controllers in trees of their
own (version 1) or in one tree (version 2). Limits without a controller are measured (`meter`), kept by
affinity (`child`) or not enforced. Standard library only."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from nqspy.executors import device_filter, proc
from nqspy.executors.proc import Descriptor

CONTROLLERS = ("memory", "cpuset", "pids", "devices")


class ControllerPlace(NamedTuple):
    """Directory of this home in the tree of one controller: ``version`` of the tree, path ``base``."""

    version: int
    base: str


class JobLimits(NamedTuple):
    """Limits of a request, one for each of `CONTROLLERS`; None: no limit. ``memory`` in bytes, ``cpus``:
    their numbers, ``denied``: character devices (``MAJOR:MINOR``) that it must not open."""

    memory: int | None = None
    cpus: list[int] | None = None
    processes: int | None = None
    denied: list[str] | None = None


class Enforced:
    """Directories that limit one request, by controller (``places``). ``enter``: those that a process must be
    moved to (version 1), as it is not born in them; ``own``: those of this request alone, for `remove`."""

    __slots__ = ("enter", "own", "places")

    def __init__(self) -> None:
        self.places: dict[str, ControllerPlace] = {}
        self.enter: list[str] = []
        self.own: list[str] = []

    def peak(self) -> int:
        """Return the request's greatest memory in bytes; 0 if no controller knows."""
        text = self._text("memory", "memory.max_usage_in_bytes", "memory.peak")
        return int(text) if text.isdigit() else 0

    def killed(self) -> int:
        """Return how many of its processes the kernel has killed because its memory was full."""
        return proc.field(self._text("memory", "memory.oom_control", "memory.events"), "oom_kill")

    def refused(self) -> int:
        """Return how often the kernel refused to start another process of the request (``pids.max``)."""
        return proc.field(self._text("pids", "pids.events", "pids.events"), "max")

    def _text(self, controller: str, *names: str) -> str:
        """Return the text of a controller's file, by its names in the versions; "" if there is none."""
        place = self.places.get(controller)
        return "" if place is None else proc.text(f"{place.base}/{names[place.version - 1]}")

    def oom_event(self) -> tuple[int, bool] | None:
        """Return a descriptor that becomes ready when the request's memory is full, and True if it shows that
        by POLLPRI, False by POLLIN; None if the kernel offers none."""
        place = self.places.get("memory")
        with contextlib.suppress(OSError):
            if place is not None and place.version == 2:
                fd = os.open(f"{place.base}/memory.events", os.O_RDONLY)
                os.read(fd, 4096)
                return fd, True
            if place is not None:
                event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
                with Descriptor(os.open(f"{place.base}/memory.oom_control", os.O_RDONLY)) as control:
                    if write(f"{place.base}/cgroup.event_control", f"{event} {control}"):
                        return event, False
                os.close(event)
        return None

    def remove(self) -> None:
        """Remove the request's directories, which must be empty."""
        for folder in self.own:
            rmdir(folder)


class Controls:
    """Directories of this home's controllers, found once by the spawner. ``name``: of this home's
    directories; ``tree``: the one in cgroup2, "" if cgroups are not made there; ``places``: this process's
    own directory for each controller of version 1, "" without one."""

    def __init__(self, name: str, tree: str, places: dict[str, str]) -> None:
        self.found: dict[str, ControllerPlace] = {}
        for controller in CONTROLLERS:
            base = f"{places.get(controller)}/{name}"
            if tree and _enable(controller, tree):
                self.found[controller] = ControllerPlace(2, tree)
            elif places.get(controller):
                make(base)
                if controller == "cpuset" and not _copy_cpus(base):
                    rmdir(base)
                elif os.access(f"{base}/cgroup.procs", os.W_OK):
                    self.found[controller] = ControllerPlace(1, base)

    def hold(self, limits: JobLimits, name: str, folder: str) -> Enforced:
        """Set as many limits of a request as the kernel can enforce; return the directories that enforce
        them. ``folder``: the request's own in cgroup2, "" without one."""
        held = Enforced()
        for controller, value in zip(CONTROLLERS, limits, strict=True):
            place = self.found.get(controller)
            if value is None or place is None or (place.version == 2 and not folder):
                continue
            shared = controller == "cpuset" and place.version == 1
            label = _label(limits.cpus or []) if shared else name
            where = folder if place.version == 2 else f"{place.base}/{label}"
            made, done = _make(controller, place, where, value)
            if done:
                held.places[controller] = ControllerPlace(place.version, where)
                held.enter += [where] if place.version == 1 else []
                held.own += [where] if made and not shared else []
        return held

    def bases(self) -> list[str]:
        """Return this home's directories in trees of version 1."""
        return [place.base for place in self.found.values() if place.version == 1]


def _enable(controller: str, tree: str) -> bool:
    """Enable a controller in ``tree``; return False if refused, as below a directory with processes."""
    if controller == "devices":
        return device_filter.deny(tree, [], keep=False)
    above = os.path.dirname(tree)
    if controller not in proc.text(f"{above}/cgroup.controllers").split():
        return False
    write(f"{above}/cgroup.subtree_control", f"+{controller}")
    return write(f"{tree}/cgroup.subtree_control", f"+{controller}")


def _make(controller: str, place: ControllerPlace, where: str, value: Any) -> tuple[bool, bool]:
    """Make a directory (version 1) and set its limit; return True if made, and True if the limit is set."""
    made = place.version == 1 and make(where)
    there = place.version == 1 and controller == "cpuset" and not made and proc.text(f"{where}/cpuset.cpus")
    done = bool(there) or _set(controller, place, where, value)
    if made and not done:
        rmdir(where)
    return made, done


def _set(controller: str, place: ControllerPlace, where: str, value: Any) -> bool:
    """Set the limit of one controller in the directory ``where``; return True if the kernel accepts it."""
    match controller, place.version:
        # Memory and swap together may not pass the limit: swapping must not hide it.
        case "memory", 1:
            done = write(f"{where}/memory.limit_in_bytes", str(value))
            write(f"{where}/memory.memsw.limit_in_bytes", str(value))
            return done
        case "memory", _:
            write(f"{where}/memory.swap.max", "0")
            return write(f"{where}/memory.max", str(value))
        case "pids", _:
            return write(f"{where}/pids.max", str(value))
        case "devices", 1:
            return all(write(f"{where}/devices.deny", f"c {device} rwm") for device in value)
        case "devices", _:
            return device_filter.deny(where, value)
    cpus, path = ",".join(map(str, value)), f"{where}/cpuset.cpus"
    if place.version == 2:
        return write(path, cpus)
    if not write(f"{where}/cpuset.mems", proc.text(f"{place.base}/cpuset.mems")):
        return False
    # The kernel does not give a CPU that was offline back to the directory above.
    return write(path, cpus) or (_copy_cpus(place.base) and write(path, cpus))


@contextlib.contextmanager
def joined(held: Enforced) -> Iterator[None]:
    """Move this process into a request's directories while the block spawns a job, then back: a fork costs
    ten times as much. Raises OSError."""
    try:
        for folder in held.enter:
            if not write(f"{folder}/cgroup.procs", "0"):
                raise OSError(f"cannot enter {folder}")
        yield
    finally:
        for folder in held.enter:
            write(f"{os.path.dirname(os.path.dirname(folder))}/cgroup.procs", "0")


def move_cpus(held: Enforced, cpus: list[int], pids: list[int]) -> None:
    """Give a running request other CPUs: change its cpuset (version 2), or move it to another (version 1)."""
    place = held.places.get("cpuset")
    if place is None:
        return
    if place.version == 2:
        _set("cpuset", place, place.base, cpus)
        return
    base = os.path.dirname(place.base)
    where = f"{base}/{_label(cpus)}"
    if _make("cpuset", ControllerPlace(1, base), where, cpus)[1]:
        held.places["cpuset"] = ControllerPlace(1, where)
        for pid in pids:
            write(f"{where}/cgroup.procs", str(pid))


def _label(cpus: list[int]) -> str:
    """Return the name of the cpuset that all requests on these CPUs share: each directory costs 0.5 ms."""
    return "cpus" + "-".join(map(str, cpus))


def _copy_cpus(base: str) -> bool:
    """Copy CPUs and memory nodes from the parent to a new cpuset of version 1, which is empty at first."""
    above, names = os.path.dirname(base), ("cpuset.mems", "cpuset.cpus")
    return all(write(f"{base}/{name}", proc.text(f"{above}/{name}")) for name in names)


def write(path: str, text: str) -> bool:
    """Write to a kernel's file in one piece; return True if it was accepted."""
    try:
        with Descriptor(os.open(path, os.O_WRONLY)) as fd:
            os.write(fd, text.encode("ascii"))
    except OSError:
        return False
    return True


def make(folder: str) -> bool:
    """Make a directory; return True if it was made, False if that fails or if it exists."""
    try:
        os.mkdir(folder, 0o755)
    except OSError:
        return False
    return True


def rmdir(folder: str) -> None:
    """Remove a cgroup's directory if it is empty."""
    with contextlib.suppress(OSError):
        os.rmdir(folder)
