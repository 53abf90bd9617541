"""Finds files that were deleted and are still open: they take room on a disk, and no listing shows them."""

import os
from typing import NamedTuple

_DELETED = " (deleted)"


class Leftover(NamedTuple):
    """A process that keeps deleted files of a folder open, its user's number, and the bytes they take."""

    pid: int
    uid: int
    size: int


def open_leftovers(folder: str) -> list[Leftover]:
    """Return the processes that keep deleted files below a folder open, the greatest first. Only root sees
    the processes of others."""
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
    """Bytes on the disk of each deleted file that a process keeps open, by device and inode."""
    files = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            name = os.readlink(f"/proc/{pid}/fd/{fd}")
            if name.startswith(inside) and name.endswith(_DELETED):
                seen = os.stat(f"/proc/{pid}/fd/{fd}")
                files[seen.st_dev, seen.st_ino] = seen.st_blocks * 512
        except OSError:
            continue
    return files
