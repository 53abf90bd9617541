"""Preparing an attempt: the spawner reads the order, the shepherd claims it on the disk before the job."""

import contextlib
import json
import os
import stat
import time
from typing import Any

from nqspy.executors import cgroups, child, records, scratch
from nqspy.executors.attempt_reporter import Station

_ROOM = 64 << 20
"""Memory limit in bytes below which even the shepherd's own memory would exceed it."""


def read(data: bytes, fds: list[int], station: Station) -> dict[str, Any]:
    """Return the order in a message or in a file that comes with it, with this machine's data. Raises
    OSError, ValueError, KeyError."""
    order: dict[str, Any] = json.loads(os.pread(fds[0], os.fstat(fds[0]).st_size, 0) if fds else data)
    if not order.get("deliver"):
        order["scratch"] = scratch.name(order)
        order["oom_score_adj"] = station.oom_score_adj
        if os.geteuid() != 0:
            order["rlimits"] |= child.room_for_the_daemon()
    return order


def plain(order: dict[str, Any], station: Station) -> bool:
    """True if the job is spawned in its shepherd's cgroup, because no limit needs a cgroup of its own."""
    if not child.plain(order):
        return False
    memory = order["limits"]["memory"] is not None and not joins(order, station)
    asked = {"memory": memory, "pids": order.get("keep_processes"), "devices": order.get("denied")}
    found = station.cgroups.controls.found
    return not any(wish and controller in found for controller, wish in asked.items())


def joins(order: dict[str, Any], station: Station) -> bool:
    """True if the shepherd can enter the memory limit (cgroup1) of its job to spawn it (`control.joined`)."""
    place, limit = station.cgroups.controls.found.get("memory"), order["limits"]["memory"]
    return place is not None and place.version == 1 and limit is not None and limit >= _ROOM


def renumber_devices(order: dict[str, Any], group: cgroups.JobGroup) -> None:
    """If the kernel denies the job other devices, number its own from 0 in its variables, as programs do."""
    enforced = "devices" in group.held.places
    for variable, devices in order.get("devices", {}).items() if enforced else ():
        with contextlib.suppress(OSError):
            found = [os.stat(file) for file, _ in devices]
            numbers = [f"{os.major(each.st_rdev)}:{os.minor(each.st_rdev)}" for each in found]
            if all(stat.S_ISCHR(each.st_mode) for each in found) and numbers == [n for _, n in devices]:
                order["environment"][variable] = ",".join(map(str, range(len(devices))))


def claim(
    order: dict[str, Any], folder: str, holder: str, station: Station, born: cgroups.ShepherdCgroup | None
) -> bool:
    """Make and enter the attempt's folder, and claim the attempt; return False if another one has claimed it,
    or, after 2 s, if the disk is full."""
    more: dict[str, Any] = {"keeper": station.me}
    if born is not None and born.folder:
        more["cage"] = [born.kind, born.folder]
    if order.get("scratch"):
        more["scratch"] = [order["scratch"], order["uid"]]
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        os.chdir(folder)
        return records.claim(".", holder, records.PROTOCOL, **more)
    except OSError as error:
        if error.errno not in records.NO_ROOM:
            raise
        time.sleep(records.AGAIN)
        return False
