"""Full disks of a home, and the processes that use their room by deleted files."""

import os
import pwd
from collections.abc import Iterator
from typing import NamedTuple

from nqspy.daemon.home import Home
from nqspy.model.texts import some_of

LEAST, PART = 100_000_000, 50
"""Free bytes below which a disk counts as full, or a fiftieth of a small one."""
_NAMED = 5


def full_disks(home: Home) -> Iterator[str]:
    """Yield a message for each full disk of home and spool; if there is one, also a message on processes that
    hold deleted files of the spool open."""
    places = {os.stat(path).st_dev: path for path in (home.spool, home.path) if path.exists()}
    full = [text for text in map(fullness, places.values()) if text]
    yield from full
    found = open_leftovers(str(home.spool)) if full else []
    if found:
        named = [
            f"pid {one.pid} of {name_of(one.uid, 'uid')} ({-(-one.size // 1_000_000)} MB)" for one in found
        ]
        text = some_of(named, _NAMED)
        yield f"deleted files of the spool still use space; it is freed when these processes end: {text}"


def fullness(path: "os.PathLike[str]") -> str:
    """Return a message about a full file system; empty if it has room."""
    found = os.statvfs(path)
    free, whole = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    if free < min(LEAST, whole // PART):
        return f"the disk of {path} is full: {free // 1_000_000} MB free"
    if found.f_files and not found.f_favail:
        return f"the disk of {path} is full: no more files can be created"
    return ""


def name_of(uid: int, word: str) -> str:
    """Return the name of a user, or ``word`` and the number if the user database has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"{word} {uid}"


_DELETED = " (deleted)"


class Leftover(NamedTuple):
    """A process that has deleted files of a folder open, its user's number, and the bytes of these files."""

    pid: int
    uid: int
    size: int


def open_leftovers(folder: str) -> list[Leftover]:
    """Return processes that hold deleted files below a folder open, most bytes first; only root sees all."""
    inside, found = os.path.realpath(folder).rstrip("/") + "/", []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            files = _deleted_files(pid, inside)
            if files:
                found.append(Leftover(int(pid), os.stat(f"/proc/{pid}").st_uid, sum(files.values())))
        except OSError:
            continue  # it has ended, or is another user's
    return sorted(found, key=lambda each: -each.size)


def _deleted_files(pid: str, inside: str) -> dict[tuple[int, int], int]:
    """Return the disk bytes of a process's open deleted files below ``inside``, by device and inode."""
    files = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            name = os.readlink(f"/proc/{pid}/fd/{fd}")
            if name.startswith(inside) and name.endswith(_DELETED):
                found = os.stat(f"/proc/{pid}/fd/{fd}")
                files[found.st_dev, found.st_ino] = found.st_blocks * 512
        except OSError:
            continue
    return files
