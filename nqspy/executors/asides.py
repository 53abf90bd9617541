"""What the daemon says to a shepherd beside orders to end, stop and go on: a line for the job's output, and
what was changed of the request. Standard library only."""

from __future__ import annotations

import os
import select
from typing import Any

from nqspy.executors import deliver, forks, patience, person

SINCE = 3
"""Version of the protocol (`records.PROTOCOL`) whose shepherds understand this."""
_PATIENCE = 2.0
"""Real seconds in which a line is to be written in place: no job's limits are looked at meanwhile."""


def obey(order: dict[str, Any], streams: tuple[int, int], home: str, message: dict[str, Any]) -> None:
    """Does it, as far as that can be done. ``streams``: both outputs in the spool, -1: written in place."""
    if message["do"] == "adjust":
        _adjust(order, message)
    elif message["do"] == "write":
        names = ["stdout"] if order["output"]["join"] else dict.fromkeys(message["streams"])
        for name in names:
            fd = streams[name == "stderr"]
            try:
                if fd >= 0:
                    os.write(fd, message["text"].encode())
                else:
                    _write_in_place(order, home, name, message["text"])
            except OSError:
                pass  # a full disk must not cost the job its shepherd


def _adjust(order: dict[str, Any], message: dict[str, Any]) -> None:
    """The meter and the delivery read the order."""
    order["limits"]["wall"] = message["wall"]
    for name, new in message["output"].items():
        stream = order["output"][name]
        if not stream["direct"]:
            stays = {"clash": stream.get("clash", "")} if new["path"] == stream["path"] else {}
            stream |= new | stays


def _write_in_place(order: dict[str, Any], home: str, name: str, text: str) -> None:
    """By a child that has become the owner; it is waited for, so lines keep their order. Raises OSError."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            person.become(person.find(order))
            forks.die_with_parent(parent)
            os.umask(order["umask"])
            deliver.append_line(deliver.destination(order["output"][name], home), text)
        finally:
            os._exit(0)
    fd = os.pidfd_open(pid)
    try:
        done = select.select([fd], [], [], _PATIENCE)[0]
    finally:
        os.close(fd)
    if done:
        os.waitpid(pid, 0)
    else:
        patience.end(pid)
