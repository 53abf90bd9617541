"""Outset of an attempt: made ready by the starter, claimed by its shepherd, on the disk before its job."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from typing import Any

from nqspy.executors import cage, child, records, scratch
from nqspy.executors.attempt_reporter import Station

_ROOM = 64 << 20
"""Bytes of a memory limit with which a shepherd cannot come near it."""


def read(data: bytes, fds: list[int], station: Station) -> dict[str, Any]:
    """An order as the starter got it, in a message or in the file of a long one, completed. Raises OSError,
    ValueError, KeyError."""
    if fds:
        with open(fds[0], "rb", closefd=False) as file:
            file.seek(0)
            data = file.read()
    order: dict[str, Any] = json.loads(data)
    if not order.get("deliver"):
        order["scratch"] = scratch.name(order)
        order["oom_score_adj"] = station.oom_score_adj
        if os.geteuid() != 0:
            order["rlimits"] |= child.room_for_the_daemon()
    return order


def in_own_cgroup(order: dict[str, Any], station: Station) -> bool:
    """True if its shepherd is one that was born in a cgroup for its job, where there are any."""
    return station.seat.kind != "none" and not order.get("deliver") and plain(order, station)


def plain(order: dict[str, Any], station: Station) -> bool:
    """True if the job is spawned by a shepherd that was born in the job's own cgroup: no limit was asked for
    that only a cgroup of the job's alone can keep, and does here. Memory by version 1 is an exception."""
    if not child.plain(order):
        return False
    memory = order["limits"]["memory"] is not None and not joins(order, station)
    asked = {"memory": memory, "pids": order.get("keep_processes"), "devices": order.get("denied")}
    return not any(wish and controller in station.seat.controls.found for controller, wish in asked.items())


def joins(order: dict[str, Any], station: Station) -> bool:
    """True if the shepherd is where the job's memory is held while it spawns it (`control.joined`): the limit
    leaves room for the little that it uses meanwhile."""
    place, limit = station.seat.controls.found.get("memory"), order["limits"]["memory"]
    return place is not None and place.version == 1 and limit is not None and limit >= _ROOM


def number_anew(order: dict[str, Any], held: cage.Cage) -> None:
    """Has the variables count the devices that the job can open from 0, as its programs do where the kernel
    keeps the others from them. Devices that are not those of this machine keep their names."""
    kept = "devices" in held.held.places
    for variable, devices in order.get("devices", {}).items() if kept else ():
        if all(_is_device(file, number) for file, number in devices):
            order["environment"][variable] = ",".join(map(str, range(len(devices))))


def _is_device(file: str, number: str) -> bool:
    try:
        found = os.stat(file)
    except OSError:
        return False
    device = found.st_rdev
    return stat.S_ISCHR(found.st_mode) and f"{os.major(device)}:{os.minor(device)}" == number


def claimed(
    order: dict[str, Any], folder: str, holder: str, station: Station, born: cage.Birthplace | None
) -> bool:
    """Makes the attempt's folder the current one and claims it. Where the disk is full: not, and not at once,
    for the daemon then orders another attempt."""
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


def secure() -> None:
    """Before the first instruction of a job its claim is on the disk. Raises child.Again."""
    try:
        records.make_durable(".")
    except OSError as error:
        raise child.Again(f"cannot write its claim to the disk: {error.strerror}") from None
