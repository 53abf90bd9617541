"""Disks of a home that are full, and what takes their room without being seen."""

import os
import pwd
from collections.abc import Iterator

from nqspy.daemon.home import Home
from nqspy.system.leftovers import open_leftovers

LEAST, PART = 100_000_000, 50
"""A disk is full with less than this free, on a small one with less than a fiftieth."""
_NAMED = 5


def full_disks(home: Home) -> Iterator[str]:
    """Name the disks of the home and of the spool that are full, and the processes that keep deleted files of
    the spool open: nothing else shows these."""
    places = {os.stat(path).st_dev: path for path in (home.spool, home.path) if path.exists()}
    full = [text for text in map(fullness, places.values()) if text]
    yield from full
    left = open_leftovers(str(home.spool)) if full else []
    if left:
        named = ", ".join(
            f"pid {each.pid} of {_name_of(each.uid)} ({-(-each.size // 1_000_000)} MB)"
            for each in left[:_NAMED]
        )
        more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
        yield f"deleted files of the spool are kept open by {named}{more}; the room is free once these end"


def fullness(path: "os.PathLike[str]") -> str:
    """Return what to say of a file system that has no room left; empty while it has."""
    found = os.statvfs(path)
    free, whole = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    if free < min(LEAST, whole // PART):
        return f"the disk of {path} is full: {free // 1_000_000} MB free"
    if found.f_files and not found.f_favail:
        return f"the disk of {path} is full: no more files can be made"
    return ""


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
